/** The tree of commands. Only the group that a command belongs to is loaded; for the list of all, all are. */
import { Command } from 'commander';
import { say } from './output.ts';
import { version } from './version.ts';

interface Group {
  readonly commands: readonly string[];
  readonly heading: string;
  readonly register: (program: Command) => Promise<void>;
}

/** What `help` explains beside the commands. */
const topics = ['environment', 'exit-codes'];

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
    commands: ['tenant'],
    heading: 'Running it:',
    register: async (program) => (await import('./access.ts')).registerTenant(program),
  },
  {
    commands: ['access'],
    heading: 'Running it:',
    register: async (program) => (await import('./access.ts')).registerAccess(program),
  },
  {
    commands: ['service-keys'],
    heading: 'Running it:',
    register: async (program) => (await import('./service-keys.ts')).registerServiceKeys(program),
  },
  {
    commands: ['query-token'],
    heading: 'Running it:',
    register: async (program) => (await import('./query-tokens.ts')).registerQueryTokens(program),
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
    commands: ['submit', 'wait', 'logs', 'artifacts', 'cancel', 'ps', 'show'],
    heading: 'Jobs:',
    register: async (program) => (await import('./jobs.ts')).registerJobs(program),
  },
  {
    commands: ['audit'],
    heading: 'Jobs:',
    register: async (program) => (await import('./audit.ts')).registerAudit(program),
  },
  {
    commands: ['dead-letters'],
    heading: 'Jobs:',
    register: async (program) => (await import('./dead-letters.ts')).registerDeadLetters(program),
  },
  {
    commands: topics,
    heading: 'Help:',
    register: async (program) => (await import('./topics.ts')).registerTopics(program),
  },
];

/** The program with the commands that `words`, the arguments, may mean. */
export async function buildProgram(words: readonly string[]): Promise<Command> {
  const program = new Command('sandbus')
    .description(
      'Runs signed programs in any language in one identical sandbox, driven by events on NATS JetStream.',
    )
    .version(version)
    .enablePositionalOptions()
    .helpCommand('help [command]', 'help for a command; `help environment` and `help exit-codes` list those')
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

/**
 * The arguments as commander is to read them. `help a b` and `a help b` are `a b --help`; the topics of the help are
 * commands, so that they are there for machines too. Help for a command that is not there is that command alone, which
 * says so: commander would give the help of the one above it.
 */
export function readHelp(program: Command, words: readonly string[]): readonly string[] {
  const names: string[] = [];
  let command = program;
  let asked = false;
  let at = 0;
  for (; command.commands.length > 0 && at < words.length; at++) {
    const word = words[at] ?? '';
    if (word.startsWith('-')) break;
    if (word === 'help') {
      asked = true;
      continue;
    }
    names.push(word);
    const named = command.commands.find((inner) => inner.name() === word);
    if (named === undefined)
      return [...names, ...words.slice(at + 1).filter((more) => !/^(-h|--help)$/.test(more))];
    command = named;
  }
  const asks = asked && !topics.includes(names[0] ?? '');
  return [...names, ...(asks ? ['--help'] : []), ...words.slice(at)];
}
