/** Tables for people, and text of strangers made fit for a terminal. */

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
}

/** Lines of a table: cells padded to the widest of their column, two spaces between, nothing at the end of a line. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => row.map(printable))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => width(row[index] ?? ''))));
  const lines = cells.map((row) =>
    columns
      .map(({ align }, index) => pad(row[index] ?? '', widths[index] ?? 0, align ?? 'left'))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

function pad(text: string, to: number, align: 'left' | 'right'): string {
  const spaces = ' '.repeat(Math.max(0, to - width(text)));
  return align === 'left' ? text + spaces : spaces + text;
}

/** Counts characters, not UTF-16 units. */
function width(text: string): number {
  return [...text].length;
}

/** Control and direction-changing characters, which could rewrite what a terminal shows, as \u escapes. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
