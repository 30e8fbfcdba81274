import assert from 'node:assert/strict';
import { it } from 'node:test';
import { printable, renderTable } from './table.ts';

it('columns are as wide as their widest cell, numbers stand to the right, no line ends in spaces', () => {
  const columns = [{ title: 'PLUGIN' }, { title: 'WALL', align: 'right' as const }, { title: '' }];
  const rows = [
    ['hello.py', '3 ms', 'ok'],
    ['grüße', '12.5 s', ''],
  ];
  assert.deepEqual(renderTable(columns, rows).split('\n'), [
    'PLUGIN      WALL',
    'hello.py    3 ms  ok',
    'grüße     12.5 s',
    '',
  ]);
});

it('a table without rows is its titles', () => {
  assert.equal(renderTable([{ title: 'A' }, { title: 'B' }], []), 'A  B\n');
});

const strange: readonly (readonly [name: string, text: string, shown: string])[] = [
  ['plain text', 'hello.py', 'hello.py'],
  ['other letters', 'naïve 数', 'naïve 数'],
  ['an escape sequence that clears the screen', '\u001b[2J', '\\u001b[2J'],
  ['a line that is overwritten', 'bad\rgood', 'bad\\u000dgood'],
  ['C1 control', '\u009b31m', '\\u009b31m'],
  ['right-to-left override', 'a\u202etxt.exe', 'a\\u202etxt.exe'],
];
for (const [name, text, shown] of strange)
  it(`on a terminal, ${name} is shown as ${shown}`, () => assert.equal(printable(text), shown));
