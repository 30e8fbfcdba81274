/** `sandbus trust init | add | remove | list | revoke | renew | rotate`. */
import type { Command } from 'commander';
import { define, exitsWith, many, once } from './command.ts';
import { parseCount, parseEnd, parseInstant } from './quantities.ts';
import type { AddOptions, ChangeOption, StoreOption } from './trust-actions.ts';

const actions = () => import('./trust-actions.ts');

const storeHelp = 'default: SANDBUS_TRUST_STORE, or trust.json in the state folder';
const rootKeyHelp =
  'private key of the root, a file or fd:N (default: SANDBUS_ROOT_KEY, or root.pem beside the store)';
const year = '365d';

export function registerTrust(program: Command): void {
  const trust = program
    .command('trust')
    .summary('whose signatures count, for what, until when')
    .description(
      'Changes the trust store file, and signs each version with the root key. Services notice a new one by themselves.',
    );
  registerInit(trust);
  registerAdd(trust);
  registerRemove(trust);
  registerList(trust);
  registerRevoke(trust);
  registerRenew(trust);
  registerRotate(trust);
}

const when = (option: string) => once(option, (text) => parseInstant(text, Date.now()));
const end = (option: string) => once(option, (text) => parseEnd(text, Date.now()));
const aYearOn = (): number => parseInstant(year, Date.now());

function registerInit(trust: Command): void {
  define(trust, {
    usage: 'init',
    summary: 'make a trust store that trusts nobody yet, and its root key',
    description:
      'Makes the root key pair root.pem and root.pub beside the store, unless they are there or --root-key names one, ' +
      'and a first store that it signs. Services pin root.pub; root.pem is needed for changes only.',
    examples: ['sandbus trust init', 'sandbus trust init --threshold 2 --expires 180d'],
  })
    .option('--store <file>', storeHelp)
    .option(
      '--root-key <key>',
      'an existing root key, a file or fd:N (default: SANDBUS_ROOT_KEY, or a new one)',
    )
    .option(
      '--expires <when>',
      `nothing runs after this time until renewed (default: ${year})`,
      end('--expires'),
    )
    .option(
      '--threshold <number>',
      'different owners that must sign a plugin (default: 1)',
      once('--threshold', parseCount),
    )
    .action(
      exitsWith(async (options: ChangeOption & { expires?: number; threshold?: number }) =>
        (await actions()).init({ ...options, expires: options.expires ?? aYearOn() }),
      ),
    );
}

function registerAdd(trust: Command): void {
  const text = (value: string) => value;
  define(trust, {
    usage: 'add <publickey>',
    summary: 'trust a public key, or change what a trusted one may sign',
    description:
      'Trusts a public key. With --replace a key that is listed gets the owner, scope and dates of this command instead of ' +
      'those that it had: what the command leaves out has its default. A revoked key stays revoked.',
    examples: [
      "sandbus trust add me.pem.pub --owner 'Ada Lovelace'",
      "sandbus trust add ci.pub --owner CI --plugins 'build-*' --plugins 'test-*' --expires 30d",
      "sandbus trust add ci.pub --owner CI --plugins 'build-*' --expires 90d --replace",
    ],
  })
    .requiredOption('--owner <name>', 'who holds the key')
    .option('--replace', 'change the entry of a key that is listed; says what it was and is')
    .option('--store <file>', storeHelp)
    .option('--root-key <key>', rootKeyHelp)
    .option(
      '--plugins <pattern>',
      'plugin files that it may sign, * and ? allowed; repeatable (default: *)',
      many('--plugins', text),
    )
    .option(
      '--tenants <pattern>',
      'tenants that it may sign for; repeatable (default: *)',
      many('--tenants', text),
    )
    .option('--gpu', 'it may sign GPU plugins')
    .option('--network', 'it may sign plugins that use the network')
    .option('--not-before <when>', 'counts only from this time (default: now)', when('--not-before'))
    .option('--expires <when>', `counts no more at this time (default: ${year})`, end('--expires'))
    .action(
      exitsWith(async (publicKey: string, options: AddOptions) =>
        (await actions()).add(publicKey, { ...options, expires: options.expires ?? aYearOn() }),
      ),
    );
}

function registerRemove(trust: Command): void {
  define(trust, {
    usage: 'remove <keyid>',
    summary: 'take a key off the list; it may be added again',
    description:
      'Takes a key off the list. What it signed is refused, and its jobs that wait or run are ended, as if it were revoked; ' +
      'but it may be added again. A revoked key that is taken off stays revoked.',
    examples: ['sandbus trust remove 1f3c…'],
  })
    .option('--store <file>', storeHelp)
    .option('--root-key <key>', rootKeyHelp)
    .action(
      exitsWith(async (keyId: string, options: ChangeOption) => (await actions()).remove(keyId, options)),
    );
}

function registerList(trust: Command): void {
  define(trust, { usage: 'list', summary: 'the keys, and what is revoked', examples: ['sandbus trust list'] })
    .option('--store <file>', storeHelp)
    .action(exitsWith(async (options: StoreOption) => (await actions()).list(options)));
}

function registerRevoke(trust: Command): void {
  define(trust, {
    usage: 'revoke [keyid]',
    summary: 'revoke a key, or one plugin file whoever signed it, for good',
    description:
      'Counts at once: jobs that wait are rejected, and running ones are ended. There is no way back: a key that may ' +
      'count again later is taken off with `sandbus trust remove`.',
    examples: ['sandbus trust revoke 1f3c…', 'sandbus trust revoke --digest 9b74…'],
  })
    .option('--digest <sha256>', 'SHA-256 of a plugin file')
    .option('--store <file>', storeHelp)
    .option('--root-key <key>', rootKeyHelp)
    .action(
      exitsWith(async (keyId: string | undefined, options: ChangeOption & { digest?: string }) =>
        (await actions()).revoke(keyId, options),
      ),
    );
}

function registerRenew(trust: Command): void {
  define(trust, {
    usage: 'renew',
    summary: 'give the trust store a later end date',
    description:
      'Gives the trust store a later end date. That of a key is its own: `sandbus trust add --replace` changes it.',
    examples: ['sandbus trust renew --expires 365d'],
  })
    .option('--store <file>', storeHelp)
    .option('--root-key <key>', rootKeyHelp)
    .option('--expires <when>', `the new end date (default: ${year})`, end('--expires'))
    .action(
      exitsWith(async (options: ChangeOption & { expires?: number }) =>
        (await actions()).renew({ ...options, expires: options.expires ?? aYearOn() }),
      ),
    );
}

function registerRotate(trust: Command): void {
  define(trust, {
    usage: 'rotate',
    summary: 'hand the trust store to a new root key',
    description:
      'The old root and the new one both sign the rotation. Services that pin the old root follow it by themselves; ' +
      'what the old root signs from now on is refused.',
    examples: ['sandbus keygen --out root-2.pem', 'sandbus trust rotate --new-root-key root-2.pem'],
  })
    .requiredOption('--new-root-key <key>', 'private key of the new root, a file or fd:N')
    .option('--root-key <key>', rootKeyHelp)
    .option('--store <file>', storeHelp)
    .action(
      exitsWith(async (options: ChangeOption & { newRootKey: string }) => (await actions()).rotate(options)),
    );
}
