import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { buildProgram, readHelp } from './program.ts';

/** Every command that does something, with its whole name. */
function leaves(command: Command, before = ''): [string, Command][] {
  const name = `${before} ${command.name()}`.trim();
  return command.commands.length === 0
    ? [[name, command]]
    : command.commands.flatMap((inner) => leaves(inner, name));
}

/** What `--help` prints, added text included. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

/** These run until they are stopped, and print nothing on standard output that a machine would read. */
const withoutJson = /^sandbus (up|topology|service)$/;

const commands = leaves(await buildProgram([]));

describe('every command', () => {
  for (const [name, command] of commands) {
    it(`${name} shows an example in its help`, () => assert.match(helpOf(command), /Examples?:\n {2}\S/));
    if (withoutJson.test(name)) continue;
    it(`${name} has --json and says its exit codes`, () => {
      assert.match(helpOf(command), /--json/);
      assert.match(helpOf(command), /Exit codes:\n +0 {2}done/);
    });
  }

  for (const [name, command] of commands.filter(([name]) => /audit (tail|list|show)|dead-letters/.test(name)))
    it(`${name} calls a record's number nothing but that`, () =>
      assert.doesNotMatch(helpOf(command), /<sequence>|with a sequence|a sequence of/));

  it('is in the list', () => {
    const names = commands.map(([name]) => name.replace('sandbus ', ''));
    const expected = [
      'up',
      'topology',
      'service',
      'demo',
      'doctor',
      'keygen',
      'sign',
      'verify',
      'trust init',
      'trust add',
    ];
    const more = [
      'trust list',
      'trust revoke',
      'trust renew',
      'run',
      'submit',
      'wait',
      'logs',
      'cancel',
      'ps',
      'show',
    ];
    for (const name of [
      ...expected,
      ...more,
      'audit tail',
      'audit list',
      'audit show',
      'environment',
      'exit-codes',
    ])
      assert.ok(names.includes(name), name);
  });
});

describe('only what is needed is loaded', () => {
  const cases: readonly (readonly [words: readonly string[], loaded: readonly string[]])[] = [
    [['run', 'x.py'], ['run']],
    [['help', 'run'], ['run']],
    [['service', 'audit'], ['service']],
    [['trust', 'list'], ['trust']],
  ];
  for (const [words, loaded] of cases)
    it(words.join(' '), async () => {
      const program = await buildProgram(words);
      assert.deepEqual(
        program.commands.map((command) => command.name()),
        loaded,
      );
    });
});

describe('help is read as the option of the command that it is about', () => {
  const cases: readonly (readonly [words: string, read: string])[] = [
    ['help', '--help'],
    ['help run', 'run --help'],
    ['help trust add', 'trust add --help'],
    ['trust help add', 'trust add --help'],
    ['trust help', 'trust --help'],
    ['trust add --help', 'trust add --help'],
    ['help environment', 'environment'],
    ['help exit-codes --json', 'exit-codes --json'],
    ['run x.py -- help --help', 'run x.py -- help --help'],
    // Nothing is there to help with: the command that is unknown says so.
    ['help nothere', 'nothere'],
    ['nothere --help', 'nothere'],
    ['help trust nothere', 'trust nothere'],
    ['trust nothere -h', 'trust nothere'],
    ['audit nothere --json --help', 'audit nothere --json'],
  ];
  for (const [words, read] of cases)
    it(words, async () => {
      const list = words.split(' ');
      assert.equal(readHelp(await buildProgram(list), list).join(' '), read);
    });
});
