// The plugin statement: an in-toto Statement v1 whose predicate says what a plugin is and the most that a job may ask
// for it. Signed once, checked before every run. schemas/plugin-statement.schema.json is made from the shapes below.

import { z } from 'zod';
import {
  formatInstant,
  instant,
  instantMs,
  parseDocument,
  pluginFileName,
  positiveInteger,
  sha256Hex,
} from './formats.ts';
import { accept, type Checked, reject } from './reasons.ts';

export const STATEMENT_PAYLOAD_TYPE = 'application/vnd.in-toto+json';
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PREDICATE_TYPE = 'urn:sandbus:plugin:v1';
export const MAX_STATEMENT_BYTES = 16 * 1024;

export const RUNTIMES = ['native', 'python', 'node', 'ruby', 'bash'] as const;
export type Runtime = (typeof RUNTIMES)[number];

export const ARCHITECTURES = ['x86_64', 'aarch64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

export const NETWORKS = ['none', 'host'] as const;
export type Network = (typeof NETWORKS)[number];

const signedLimits = z
  .strictObject({
    memoryBytes: positiveInteger.describe('Memory in bytes'),
    cpuMillis: positiveInteger.describe('Thousandths of one processor'),
    wallMs: positiveInteger.describe('Wall-clock time in milliseconds'),
    processes: positiveInteger.describe('Processes and threads at once'),
  })
  .describe('The most that a job may ask for');

const commonPredicate = {
  name: pluginFileName.describe("The plugin's name: the file name, or its beginning up to a . - or _"),
  version: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$/,
      'must be 1 to 64 of A-Z a-z 0-9 . + _ -, the first a letter or digit',
    ),
  requiresGpu: z.boolean().describe('Whether a job may ask for a GPU'),
  network: z.enum(NETWORKS).describe('The most that a job may ask for: none, or the network of the host'),
  limits: signedLimits,
  notBefore: instant.describe('The plugin does not run before this time'),
  expires: instant.describe('The plugin does not start at or after this time'),
};

const predicate = z.discriminatedUnion('runtime', [
  z.strictObject({ ...commonPredicate, runtime: z.literal('native'), architecture: z.enum(ARCHITECTURES) }),
  z.strictObject({ ...commonPredicate, runtime: z.enum(['python', 'node', 'ruby', 'bash']) }),
]);

export const statementShape = z.strictObject({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.tuple([z.strictObject({ name: pluginFileName, digest: z.strictObject({ sha256: sha256Hex }) })]),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate,
});

export type SignedLimits = z.infer<typeof signedLimits>;

/** What a signature says about a plugin, flat and with times as numbers. */
export type PluginStatement = {
  readonly fileName: string;
  readonly sha256: string;
  readonly name: string;
  readonly version: string;
  readonly runtime: Runtime;
  /** Set for native plugins only. */
  readonly architecture: Architecture | null;
  readonly requiresGpu: boolean;
  readonly network: Network;
  readonly limits: Readonly<SignedLimits>;
  readonly notBeforeMs: number;
  readonly expiresMs: number;
};

/** Reads a statement strictly. The bytes should already be authenticated: nothing here checks a signature. */
export function parseStatement(payload: Uint8Array): Checked<PluginStatement> {
  const bounds = { maxBytes: MAX_STATEMENT_BYTES, maxDepth: 5, maxValues: 64 };
  const document = parseDocument(payload, bounds, statementShape, 'statement');
  return document.ok ? checkStatement(flatten(document.value)) : document;
}

/**
 * The exact bytes to sign for a plugin. The answer is a refusal where the facts would make a statement that nobody
 * accepts, so that the person who signs learns it, not the one who runs.
 */
export function statementFor(plugin: PluginStatement): Checked<Uint8Array> {
  const { limits } = plugin;
  const text = JSON.stringify({
    _type: STATEMENT_TYPE,
    subject: [{ name: plugin.fileName, digest: { sha256: plugin.sha256 } }],
    predicateType: PREDICATE_TYPE,
    predicate: {
      name: plugin.name,
      version: plugin.version,
      runtime: plugin.runtime,
      ...(plugin.architecture === null ? {} : { architecture: plugin.architecture }),
      requiresGpu: plugin.requiresGpu,
      network: plugin.network,
      limits: {
        memoryBytes: limits.memoryBytes,
        cpuMillis: limits.cpuMillis,
        wallMs: limits.wallMs,
        processes: limits.processes,
      },
      notBefore: formatInstant(plugin.notBeforeMs),
      expires: formatInstant(plugin.expiresMs),
    },
  });
  const bytes = new Uint8Array(Buffer.from(text));
  const parsed = parseStatement(bytes);
  return parsed.ok ? accept(bytes) : parsed;
}

const EXTENSIONS: ReadonlyMap<string, Runtime> = new Map([
  ['.py', 'python'],
  ['.js', 'node'],
  ['.mjs', 'node'],
  ['.cjs', 'node'],
  ['.ts', 'node'],
  ['.rb', 'ruby'],
  ['.sh', 'bash'],
]);

/** The runtime that a file's extension stands for; everything else can only be native. */
export function runtimeOfFileName(fileName: string): Runtime {
  return EXTENSIONS.get(extensionOf(fileName)) ?? 'native';
}

/** `.py` of `resize.py`; empty where there is none. */
export function extensionOf(fileName: string): string {
  const dot = fileName.lastIndexOf('.');
  return dot === -1 ? '' : fileName.slice(dot);
}

function flatten(document: z.infer<typeof statementShape>): PluginStatement {
  const [subject] = document.subject;
  const { predicate } = document;
  return {
    fileName: subject.name,
    sha256: subject.digest.sha256,
    name: predicate.name,
    version: predicate.version,
    runtime: predicate.runtime,
    architecture: predicate.runtime === 'native' ? predicate.architecture : null,
    requiresGpu: predicate.requiresGpu,
    network: predicate.network,
    limits: { ...predicate.limits },
    notBeforeMs: instantMs(predicate.notBefore),
    expiresMs: instantMs(predicate.expires),
  };
}

/** What a schema cannot say: how the fields of one statement must agree with each other. */
function checkStatement(statement: PluginStatement): Checked<PluginStatement> {
  if (!(statement.notBeforeMs < statement.expiresMs)) {
    return reject('MALFORMED', 'statement: "expires" must be later than "notBefore"');
  }
  if (!startsWithName(statement.fileName, statement.name)) {
    const detail = `statement: the file ${statement.fileName} must begin with the plugin's name ${statement.name}`;
    return reject('MALFORMED', detail);
  }
  const implied = runtimeOfFileName(statement.fileName);
  if (implied !== statement.runtime) {
    const detail = `statement: the file name ${statement.fileName} means ${implied}, the signed runtime is ${statement.runtime}`;
    return reject('RUNTIME_MISMATCH', detail);
  }
  return accept(statement);
}

/** Scopes are bound to file names; this keeps the name that people read from claiming to be another plugin. */
function startsWithName(fileName: string, name: string): boolean {
  return fileName === name || (fileName.startsWith(name) && '.-_'.includes(fileName.charAt(name.length)));
}
