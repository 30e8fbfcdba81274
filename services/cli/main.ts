/** The `sandbus` command: runs what its arguments say, and makes an exit code of whatever comes of it. */
import { CommanderError } from 'commander';
import { messageOf, OperationalError, UsageError } from '../platform/errors.ts';
import { exitCode } from './exit-codes.ts';
import { outputFault, say } from './output.ts';
import { buildProgram, readHelp } from './program.ts';

async function main(words: readonly string[]): Promise<void> {
  try {
    const program = await buildProgram(words);
    await program.parseAsync(readHelp(program, words), { from: 'user' });
  } catch (error) {
    process.exitCode = exitCodeFor(error, words);
    if (!(error instanceof CommanderError)) tell(error, words);
  }
}

/** `run` keeps the low codes for the plugin, as env(1) and timeout(1) do. */
function exitCodeFor(error: unknown, words: readonly string[]): number {
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  if (words[0] === 'run') return exitCode(codeOf(error) === 'BUS_FULL' ? 'busFull' : 'notRun');
  if (error instanceof CommanderError) return exitCode('usage');
  if (error instanceof UsageError) return error.exitCode;
  if (!(error instanceof OperationalError)) return exitCode('failed');
  if (error.code === 'BUS_FULL') return exitCode('busFull');
  return /NOT_FOUND|NO_SUCH/.test(error.code) ? exitCode('notFound') : exitCode('unavailable');
}

function codeOf(error: unknown): string {
  if (error instanceof OperationalError) return error.code;
  return error instanceof UsageError || error instanceof CommanderError ? 'USAGE' : 'BUG';
}

function tell(error: unknown, words: readonly string[]): void {
  const own = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  const code = codeOf(error);
  if (own.includes('--json')) say(JSON.stringify({ error: { code, message: messageOf(error) } }));
  else say(`sandbus: ${messageOf(error)}`);
  if (code === 'BUG' && error instanceof Error) say(error.stack ?? '');
}

const words = process.argv.slice(2);

/** A reader that has seen enough, as in `sandbus ps | head`, is no fault. Commands that must act on it do so first. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCode('brokenPipe'));
  const failure = new OperationalError('OUTPUT_FAILED', outputFault('output', error));
  tell(failure, words);
  process.exit(exitCodeFor(failure, words));
});
/** Nobody can be told of that. What the command found still is what it exits with. */
process.stderr.on('error', () => undefined);

await main(words);
