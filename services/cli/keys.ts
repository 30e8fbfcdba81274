/** `sandbus keygen`, `sign`, `verify`. */
import type { Command } from 'commander';
import { UsageError } from '../platform/errors.ts';
import type { Network, PluginStatement, Runtime, SigningKey } from '../trust/index.ts';
import { choice, define, exitsWith, once } from './command.ts';
import { exitCode } from './exit-codes.ts';
import {
  formatBytes,
  formatMs,
  formatTime,
  parseCount,
  parseCpus,
  parseDuration,
  parseInstant,
  parseMemory,
} from './quantities.ts';

export function registerKeys(program: Command): void {
  registerKeygen(program);
  registerSign(program);
  registerVerify(program);
}

function registerKeygen(program: Command): void {
  define(program, {
    usage: 'keygen',
    summary: 'make a key pair to sign plugins with',
    description:
      'Makes an Ed25519 key pair: FILE (PKCS#8 PEM, for you alone) and FILE.pub (SPKI PEM, for the trust store).',
    examples: ['sandbus keygen --out me.pem'],
  })
    .requiredOption('--out <file>', 'the private key; the public one is FILE.pub')
    .action(exitsWith(keygen));
}

async function keygen(options: { out: string; json?: true }): Promise<undefined> {
  const { makeKeyPair } = await import('./signing.ts');
  const { print, printJson } = await import('./output.ts');
  const { keyId, publicPath } = await makeKeyPair(options.out);
  if (options.json) printJson({ keyId, privateKey: options.out, publicKey: publicPath });
  else print(`key ${keyId}\nprivate key: ${options.out} (keep it to yourself)\npublic key:  ${publicPath}\n`);
}

interface SignCommandOptions {
  readonly key?: string;
  readonly out?: string;
  readonly add?: true;
  readonly name?: string;
  readonly version?: string;
  readonly runtime?: Runtime;
  readonly gpu?: true;
  readonly network?: Network;
  readonly memory?: number;
  readonly cpus?: number;
  readonly wall?: number;
  readonly processes?: number;
  readonly notBefore?: number;
  readonly expires?: number;
  readonly json?: true;
}

function registerSign(program: Command): void {
  const nowMs = Date.now();
  define(program, {
    usage: 'sign <plugin>',
    summary: 'sign a plugin file',
    description:
      'Signs a statement about the file: its name and digest, its runtime, and the most that a job may ask for. ' +
      'A renamed extension, another byte or a raised limit breaks the signature. A file whose extension and first line or ' +
      'bytes disagree is not signed.',
    examples: [
      'sandbus sign hello.py --key me.pem',
      'sandbus sign train.py --key me.pem --gpu --memory 8G --wall 2h --expires 2027-01-31',
      'sandbus sign hello.py --key second.pem --add',
      'SANDBUS_SIGNING_KEY=me.pem sandbus sign hello.py',
      'sandbus sign hello.py --key fd:3 3<me.pem',
    ],
  })
    .option('--key <key>', 'private key, a file (PKCS#8 PEM) or fd:N (default: SANDBUS_SIGNING_KEY)')
    .option('--out <file>', 'where the envelope goes (default: PLUGIN.dsse.json)')
    .option('--add', "add this key's signature to the envelope that is there")
    .option('--name <name>', 'name of the plugin (default: the file name without extension)')
    .option('--version <version>', 'version of the plugin (default: 1.0.0)')
    .option('--runtime <runtime>', 'default: by the file extension, else native', once('--runtime', runtime))
    .option('--gpu', 'jobs may ask for a GPU')
    .option(
      '--network <network>',
      'the most that a job may ask for: none or host (default: none)',
      once('--network', network),
    )
    .option('--memory <size>', 'most memory (default: 512M)', once('--memory', parseMemory))
    .option('--cpus <number>', 'most processors (default: 2)', once('--cpus', parseCpus))
    .option('--wall <duration>', 'most wall-clock time (default: 60s)', once('--wall', parseDuration))
    .option(
      '--processes <number>',
      'most processes and threads (default: 256)',
      once('--processes', parseCount),
    )
    .option(
      '--expires <when>',
      'starts no more at this time (default: 90d)',
      once('--expires', (text) => parseInstant(text, nowMs)),
    )
    .option(
      '--not-before <when>',
      'starts only from this time (default: now)',
      once('--not-before', (text) => parseInstant(text, nowMs)),
    )
    .action(exitsWith(sign));
}

const runtime = choice<Runtime>(['native', 'python', 'node', 'ruby', 'bash']);
const network = choice<Network>(['none', 'host']);

async function sign(plugin: string, options: SignCommandOptions): Promise<undefined> {
  const { envelopePath, signFile } = await import('./signing.ts');
  const { print, printJson } = await import('./output.ts');
  const out = options.out ?? envelopePath(plugin);
  const key = await signingKey(options.key);
  const { statement } = await signFile(plugin, key, out, {
    ...options,
    memoryBytes: options.memory,
    cpuMillis: options.cpus,
    wallMs: options.wall,
    notBeforeMs: options.notBefore,
    expiresMs: options.expires,
  });
  if (options.json) printJson({ envelope: out, keyId: key.keyId, statement });
  else print(`${describe(statement)}signed by  key ${key.keyId}\nenvelope   ${out}\n`);
}

async function signingKey(given: string | undefined): Promise<SigningKey> {
  const { loadPrivateKey } = await import('./private-keys.ts');
  const { loadCliConfig } = await import('./config.ts');
  const source = given ?? loadCliConfig().signingKey;
  if (source === null) throw new UsageError('no key to sign with: give --key, or set SANDBUS_SIGNING_KEY');
  return loadPrivateKey(source);
}

function describe(statement: PluginStatement): string {
  const { limits } = statement;
  const kind =
    statement.architecture === null ? statement.runtime : `${statement.runtime}, ${statement.architecture}`;
  const most = `${formatBytes(limits.memoryBytes)}, ${limits.cpuMillis / 1000} CPUs, ${formatMs(limits.wallMs)}, ${limits.processes} processes`;
  const grants = [statement.requiresGpu ? 'GPU' : 'no GPU', `network ${statement.network}`].join(', ');
  return [
    `plugin     ${statement.fileName} (${statement.name} ${statement.version}, ${kind})`,
    `SHA-256    ${statement.sha256}`,
    `at most    ${most}, ${grants}`,
    `valid      ${formatTime(statement.notBeforeMs)} to ${formatTime(statement.expiresMs)} UTC\n`,
  ].join('\n');
}

interface VerifyCommandOptions {
  readonly envelope?: string;
  readonly trustStore?: string;
  readonly trustRoot?: string;
  readonly policy?: string;
  readonly tenant?: string;
  readonly json?: true;
}

function registerVerify(program: Command): void {
  define(program, {
    usage: 'verify <plugin>',
    summary: "check a plugin's signature and content as the services do",
    description:
      'Decides as the verifier, the router and the executor would, for a job that asks for nothing special, on a machine of ' +
      "the plugin's architecture.",
    examples: ['sandbus verify hello.py --trust-store trust.json'],
    exits: ['failed'],
  })
    .option('--envelope <file>', 'default: PLUGIN.dsse.json')
    .option('--trust-store <file>', 'default: SANDBUS_TRUST_STORE, or trust.json in the state folder')
    .option(
      '--trust-root <key>',
      "public key of the store's root (default: SANDBUS_TRUST_ROOT, or root.pub there)",
    )
    .option('--policy <file>', "hold it against the operator's policy too")
    .option('--tenant <tenant>', 'for this tenant (default: SANDBUS_TENANT)')
    .action(exitsWith(verify));
}

async function verify(plugin: string, options: VerifyCommandOptions): Promise<number> {
  const signing = await import('./signing.ts');
  const { loadCliConfig } = await import('./config.ts');
  const { print, printJson } = await import('./output.ts');
  const config = loadCliConfig();
  const decision = await signing.verifyFile({
    path: plugin,
    envelopePath: options.envelope ?? signing.envelopePath(plugin),
    tenant: options.tenant ?? config.tenant,
    trustStore: await signing.loadTrustStore(
      options.trustStore ?? config.trustStore,
      options.trustRoot ?? config.trustRoot,
    ),
    policy: options.policy === undefined ? null : await signing.loadPolicy(options.policy),
  });
  if (options.json) printJson(decision);
  else if (decision.ok)
    print(`${describe(decision.statement)}signed by  ${decision.owners.join(', ')}\nverified\n`);
  else print(`${decision.reason}: ${decision.detail}\n${decision.advice}\n`);
  return exitCode(decision.ok ? 'ok' : 'failed');
}
