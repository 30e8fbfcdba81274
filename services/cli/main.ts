/** The `sandbus` command: finds the group that a command belongs to, loads that group alone, and runs it. */
import { Command, CommanderError } from 'commander';
import { messageOf, OperationalError, UsageError } from '../platform/errors.ts';
import { exitCode } from './exit-codes.ts';
import { say } from './output.ts';
import { version } from './version.ts';

interface Group {
  readonly commands: readonly string[];
  readonly heading: string;
  readonly register: (program: Command) => Promise<void>;
}

/** In the order of the help. */
const groups: readonly Group[] = [
  {
    commands: ['up', 'topology'],
    heading: 'Running it:',
    register: async (program) => (await import('./up.ts')).registerUp(program),
  },
  {
    commands: ['service'],
    heading: 'Running it:',
    register: async (program) => (await import('./service.ts')).registerService(program),
  },
  {
    commands: ['demo'],
    heading: 'Running it:',
    register: async (program) => (await import('./demo.ts')).registerDemo(program),
  },
  {
    commands: ['doctor'],
    heading: 'Running it:',
    register: async (program) => (await import('./doctor.ts')).registerDoctor(program),
  },
  {
    commands: ['keygen', 'sign', 'verify'],
    heading: 'Signing:',
    register: async (program) => (await import('./keys.ts')).registerKeys(program),
  },
  {
    commands: ['trust'],
    heading: 'Signing:',
    register: async (program) => (await import('./trust.ts')).registerTrust(program),
  },
  {
    commands: ['run'],
    heading: 'Jobs:',
    register: async (program) => (await import('./run.ts')).registerRun(program),
  },
  {
    commands: ['submit', 'wait', 'logs', 'cancel', 'ps', 'show'],
    heading: 'Jobs:',
    register: async (program) => (await import('./jobs.ts')).registerJobs(program),
  },
  {
    commands: ['audit'],
    heading: 'Jobs:',
    register: async (program) => (await import('./audit.ts')).registerAudit(program),
  },
  {
    commands: ['environment'],
    heading: 'Help:',
    register: async (program) => (await import('./environment.ts')).registerEnvironment(program),
  },
];

async function buildProgram(words: readonly string[]): Promise<Command> {
  const program = new Command('sandbus')
    .description(
      'Runs signed programs in any language in one identical sandbox, driven by events on NATS JetStream.',
    )
    .version(version)
    .enablePositionalOptions()
    .helpCommand('help [command]', 'help for a command; `help environment` lists the variables')
    .exitOverride()
    .configureOutput({ outputError: (text) => say(text.trimEnd().replace(/^error:/, 'sandbus:')) })
    .addHelpText('after', '\nEach command has --help with an example, and --json for machines.');
  const wanted = words[0] === 'help' ? words[1] : words[0];
  const known = groups.filter(({ commands }) => wanted !== undefined && commands.includes(wanted));
  for (const { heading, register } of known.length > 0 ? known : groups) {
    program.commandsGroup(heading);
    await register(program);
  }
  return program;
}

async function main(words: readonly string[]): Promise<void> {
  try {
    const program = await buildProgram(words);
    await program.parseAsync(words, { from: 'user' });
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

/** A reader that has seen enough, as in `sandbus ps | head`, is no fault. Commands that must act on it do so first. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCode('brokenPipe'));
  throw error;
});

/** The variables are a topic of the help, and a command, so that they are there for machines too. */
const words = process.argv.slice(2);
await main(words[0] === 'help' && words[1] === 'environment' ? words.slice(1) : words);
