/** What `sandbus dead-letters list | show | replay` do. */
import type { DeadLetter, SandbusClient } from '../client/index.ts';
import { decode } from '../platform/codec.ts';
import { UsageError } from '../platform/errors.ts';
import { loadCliConfig } from './config.ts';
import { deadLettersOfAll } from './dead-letters-operator.ts';
import { exitCode } from './exit-codes.ts';
import { print, printJson, toJson } from './output.ts';
import { withClient } from './session.ts';
import { printable, renderTable } from './table.ts';

interface Json {
  readonly json?: true;
}

/** Those of one tenant are named by its numbers; those of all by the one numbering that they have in common. */
const columnsFor = (allTenants: boolean) =>
  [
    { title: allTenants ? 'LEDGER SEQUENCE' : 'NUMBER', align: 'right' },
    { title: 'TIME' },
    { title: 'BY' },
    { title: 'REASON' },
    { title: 'SUBJECT' },
  ] as const;

interface Whose extends Json {
  readonly allTenants?: true;
}

export async function list({ json, allTenants }: Whose): Promise<number> {
  const letters = allTenants ? await deadLettersOfAll(loadCliConfig()) : await withClient(ownLetters);
  if (json) for (const letter of letters) printJson(letterJson(letter));
  else if (letters.length === 0) print('there are no dead letters\n');
  else print(renderTable(columnsFor(allTenants === true), letters.map(row)));
  return exitCode('ok');
}

async function ownLetters(client: SandbusClient): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  for await (const letter of client.deadLetters()) letters.push(letter);
  return letters;
}

function row({ sequence, recordedAtMs, letter }: DeadLetter): string[] {
  const at = new Date(recordedAtMs).toISOString().slice(0, 19).replace('T', ' ');
  return [String(sequence), at, letter.service, letter.reason, letter.subject];
}

export async function show(number: number, { json, allTenants }: Whose): Promise<number> {
  const letter = allTenants
    ? await foundAmongAll(number)
    : await withClient((client) => found(client, number));
  const value = letterJson(letter);
  if (json) printJson(value);
  else
    print(
      `${JSON.stringify(JSON.parse(toJson(value)), null, 2)
        .split('\n')
        .map(printable)
        .join('\n')}\n`,
    );
  return exitCode('ok');
}

async function foundAmongAll(sequence: number): Promise<DeadLetter> {
  const letters = await deadLettersOfAll(loadCliConfig());
  const letter = letters.find((one) => one.sequence === sequence);
  if (letter === undefined)
    throw new UsageError(
      `the record of ledger sequence ${sequence} is no dead letter of the last days: ` +
        '`sandbus dead-letters list --all-tenants` has the sequences',
      exitCode('notFound'),
    );
  return letter;
}

export function replay(number: number, { json }: Json): Promise<number> {
  return withClient(async (client) => {
    const replayed = await client.replay(await found(client, number));
    if (json) printJson(replayed);
    else print(`${replayed.jobId}\n`);
    return exitCode('ok');
  });
}

async function found(client: SandbusClient, number: number): Promise<DeadLetter> {
  const letter = await client.deadLetter(number);
  if (letter === null)
    throw new UsageError(
      `the record of the number ${number} of tenant ${client.tenant} is no dead letter: \`sandbus dead-letters list\` has the numbers`,
      exitCode('notFound'),
    );
  return letter;
}

function letterJson({ sequence, recordedAtMs, letter }: DeadLetter): object {
  const { payload, ...rest } = letter;
  return { sequence, recordedAtMs, ...rest, payloadBytes: payload.length, ...contentOf(payload) };
}

/** The event, or the first bytes of what is none. */
function contentOf(payload: Uint8Array): object {
  try {
    const { name, value } = decode(payload);
    return { event: { name, ...value } };
  } catch {
    return { payloadHex: Buffer.from(payload.subarray(0, 256)).toString('hex') };
  }
}
