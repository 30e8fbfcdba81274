/** Making keys, signing plugins, and checking signatures: what the commands and the demo do with the trust component. */
import { createHash } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { contentHeadBytes, detectRuntime } from '../platform/detect-runtime.ts';
import { UsageError } from '../platform/errors.ts';
import type {
  Architecture,
  Checked,
  Network,
  PluginStatement,
  Policy,
  Rejection,
  Runtime,
  SigningKey,
  Trusted,
  TrustStore,
} from '../trust/index.ts';
import {
  adviceFor,
  cosignEnvelope,
  decideTrust,
  encodePolicy,
  extensionOf,
  generateKey,
  openTrustStore,
  parseEnvelope,
  parsePolicy,
  parseStatement,
  privateKeyToPem,
  publicKeyToPem,
  reject,
  runtimeOfFileName,
  STATEMENT_PAYLOAD_TYPE,
  signEnvelope,
  statementFor,
} from '../trust/index.ts';
import { readPinnedRoot } from '../trust-store/root-key.ts';
import { readBytes, streamBytes, writeAtomically, writeNew } from './files.ts';

/** Where the envelope of a plugin lies unless somebody says otherwise. */
export const envelopePath = (plugin: string): string => `${plugin}.dsse.json`;
export const publicKeyPath = (privateKey: string): string => `${privateKey}.pub`;

/** The value, or a sentence that says what is wrong and what to do. */
export function expectValue<T>(checked: Checked<T>, where: string): T {
  if (checked.ok) return checked.value;
  throw new UsageError(`${where}: ${checked.detail}`);
}

/** Makes a key pair in two new files; neither is overwritten. */
export async function makeKeyPair(
  privatePath: string,
  publicPath = publicKeyPath(privatePath),
): Promise<{ keyId: string; publicPath: string }> {
  const exists = await stat(publicPath).then(
    () => true,
    () => false,
  );
  if (exists) throw new UsageError(`cannot write ${publicPath}: it is there already, and is not overwritten`);
  const key = generateKey();
  await writeNew(privatePath, privateKeyToPem(key), 0o600);
  try {
    await writeNew(publicPath, publicKeyToPem(key.publicKey), 0o644);
  } catch (error) {
    await rm(privatePath, { force: true });
    throw error;
  }
  return { keyId: key.keyId, publicPath };
}

/** What the person who signs decides; the rest is taken from the file. */
export interface SignOptions {
  readonly name?: string | undefined;
  readonly version?: string | undefined;
  readonly runtime?: Runtime | undefined;
  readonly gpu?: boolean | undefined;
  readonly network?: Network | undefined;
  readonly memoryBytes?: number | undefined;
  readonly cpuMillis?: number | undefined;
  readonly wallMs?: number | undefined;
  readonly processes?: number | undefined;
  readonly notBeforeMs?: number | undefined;
  readonly expiresMs?: number | undefined;
}

/** The most that a job may ask for, unless whoever signs says otherwise. */
export const signedDefaults = {
  version: '1.0.0',
  memoryBytes: 512 * 1024 * 1024,
  cpuMillis: 2000,
  wallMs: 60_000,
  processes: 256,
  validMs: 90 * 86_400_000,
} as const;

/** The envelope for a plugin: a statement about exactly these bytes under this file name. */
export function signPlugin(
  plugin: { readonly fileName: string; readonly bytes: Uint8Array },
  key: SigningKey,
  options: SignOptions,
  nowMs: number,
): { readonly statement: PluginStatement; readonly envelope: Uint8Array } {
  const sha256 = createHash('sha256').update(plugin.bytes).digest('hex');
  const file = { fileName: plugin.fileName, sha256, head: plugin.bytes.subarray(0, contentHeadBytes) };
  return signDescribed(describePlugin(file, options, nowMs), file.head, key);
}

function signDescribed(statement: PluginStatement, head: Uint8Array, key: SigningKey) {
  const payload = expectValue(statementFor(statement), `cannot sign ${statement.fileName}`);
  expectRunnable(statement, head);
  return { statement, envelope: signEnvelope(STATEMENT_PAYLOAD_TYPE, payload, [key]) };
}

/** Nobody should sign what every job would be refused for. */
function expectRunnable(statement: PluginStatement, head: Uint8Array): void {
  const fault = contentFault(statement, head);
  if (fault !== null)
    throw new UsageError(`${fault.detail}; every job of it would be refused as ${fault.reason}`);
}

/** What the router would say about the content, on a machine of the plugin's own architecture. */
function contentFault(statement: PluginStatement, head: Uint8Array): Rejection | null {
  const { fileName, runtime: signedRuntime, architecture: signedArchitecture } = statement;
  const machine = signedArchitecture ?? '';
  const found = detectRuntime({ fileName, head, signedRuntime, signedArchitecture, machine });
  return found.ok ? null : reject(found.reason, found.detail);
}

/** What a statement needs to know of a file. */
interface DigestedFile {
  readonly fileName: string;
  readonly sha256: string;
  /** Its first bytes, which tell an ELF file's machine and a script's interpreter. */
  readonly head: Uint8Array;
}

/** Reads a file from beginning to end, keeping no more than a piece of it at a time. */
async function digestFile(path: string): Promise<DigestedFile> {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  for await (const chunk of streamBytes(path, 'plugin')) {
    hash.update(chunk);
    if (head.length < contentHeadBytes) head = Buffer.concat([head, chunk]).subarray(0, contentHeadBytes);
  }
  return { fileName: basename(path), sha256: hash.digest('hex'), head };
}

function describePlugin(
  { fileName, sha256, head }: DigestedFile,
  options: SignOptions,
  nowMs: number,
): PluginStatement {
  const runtime = options.runtime ?? runtimeOfFileName(fileName);
  const extension = extensionOf(fileName);
  return {
    fileName,
    sha256,
    name: options.name ?? (extension === '' ? fileName : fileName.slice(0, -extension.length)),
    version: options.version ?? signedDefaults.version,
    runtime,
    architecture: runtime === 'native' ? architectureOf(fileName, head) : null,
    requiresGpu: options.gpu ?? false,
    network: options.network ?? 'none',
    limits: {
      memoryBytes: options.memoryBytes ?? signedDefaults.memoryBytes,
      cpuMillis: options.cpuMillis ?? signedDefaults.cpuMillis,
      wallMs: options.wallMs ?? signedDefaults.wallMs,
      processes: options.processes ?? signedDefaults.processes,
    },
    notBeforeMs: options.notBeforeMs ?? nowMs,
    expiresMs: options.expiresMs ?? nowMs + signedDefaults.validMs,
  };
}

/** Numbers of e_machine, ELF-64 little-endian. */
const machines: Readonly<Record<number, Architecture>> = { 62: 'x86_64', 183: 'aarch64' };

/** Native plugins are ELF files for a known machine. */
export function architectureOf(fileName: string, bytes: Uint8Array): Architecture {
  const head = Buffer.from(bytes.subarray(0, 20));
  const isElf64 = head.length === 20 && head.readUInt32BE(0) === 0x7f454c46 && head[4] === 2 && head[5] === 1;
  const machine = isElf64 ? machines[head.readUInt16LE(18)] : undefined;
  if (machine !== undefined) return machine;
  const what = isElf64 ? 'an ELF file for another machine than x86_64 and aarch64' : 'not a 64-bit ELF file';
  throw new UsageError(
    `${fileName} is ${what}; a script needs its extension: .py, .js, .mjs, .cjs, .ts, .rb or .sh`,
  );
}

/** Signs a plugin file and writes the envelope; with `add`, adds a signature to the envelope that is there. */
export async function signFile(
  path: string,
  key: SigningKey,
  outPath: string,
  options: SignOptions & { readonly add?: boolean | undefined },
): Promise<{ statement: PluginStatement }> {
  const file = await digestFile(path);
  const signed = options.add
    ? await addSignature(path, file, key, outPath)
    : signDescribed(describePlugin(file, options, Date.now()), file.head, key);
  await writeAtomically(outPath, signed.envelope, 0o644);
  return { statement: signed.statement };
}

/** The statement stays byte for byte what the others signed; it must be about this very file. */
async function addSignature(path: string, { sha256, head }: DigestedFile, key: SigningKey, outPath: string) {
  const envelope = expectValue(parseEnvelope(await readBytes(outPath, 'envelope')), outPath);
  const statement = expectValue(parseStatement(envelope.payload), outPath);
  if (statement.sha256 !== sha256)
    throw new UsageError(
      `${outPath} is about a file with SHA-256 ${statement.sha256}; ${path} has ${sha256}`,
    );
  expectRunnable(statement, head);
  return { statement, envelope: cosignEnvelope(envelope, key) };
}

/** The root that the configuration pins, a file or the key itself. */
export const pinnedRoot = readPinnedRoot;

export async function loadTrustStore(path: string, root: string): Promise<TrustStore> {
  const pinned = expectValue(readPinnedRoot(root), path);
  return expectValue(openTrustStore(await readBytes(path, 'trust store'), pinned), path).store;
}

export async function loadPolicy(path: string): Promise<Policy> {
  return expectValue(parsePolicy(await readBytes(path, 'policy')), path);
}

export interface VerifyRequest {
  readonly path: string;
  readonly envelopePath: string;
  readonly tenant: string;
  readonly trustStore: TrustStore;
  /** The operator's policy; null looks at the signature alone. */
  readonly policy: Policy | null;
}

/** The decision that verifier, router and executor would come to, for a job that asks for nothing special. */
export async function verifyFile(
  request: VerifyRequest,
): Promise<Trusted | (Rejection & { readonly advice: string })> {
  const { sha256, head } = await digestFile(request.path);
  const envelope = await readBytes(request.envelopePath, 'envelope');
  const decision = decideTrust(
    {
      tenant: request.tenant,
      pluginName: basename(request.path),
      pluginSha256: sha256,
      envelope,
      requested: { limits: {}, requiresGpu: false, network: 'none' },
    },
    { now: Date.now(), trustStore: request.trustStore, policy: request.policy ?? boundlessPolicy() },
  );
  if (!decision.ok) return advised(decision);
  const fault = contentFault(decision.statement, head);
  return fault === null ? decision : advised(fault);
}

const advised = (refusal: Rejection) => ({ ...refusal, advice: adviceFor(refusal.reason) });

/** Ceilings that stop nothing. */
function boundlessPolicy(): Policy {
  const most = Number.MAX_SAFE_INTEGER;
  const numbers = { memoryBytes: most, cpuMillis: most, wallMs: most, cpuTimeMs: null, processes: most };
  const more = {
    outputBytes: most,
    tmpBytes: most,
    network: true,
    gpu: true,
    concurrency: most,
    maxAttempts: most,
  };
  const encoded = expectValue(encodePolicy({ default: { ...numbers, ...more }, tenants: {} }), 'policy');
  return expectValue(parsePolicy(encoded), 'policy');
}
