/**
 * Which runtime runs a plugin? The signed statement, the file's extension and its first bytes are asked; each may be
 * silent, none may contradict. Pure. The router decides by it; `sign` and `verify` ask it first.
 */
import type { EvidenceSource, Runtime, RuntimeEvidence } from '../../schemas/generated/events.ts';

/** How much of a file's beginning is asked, and travels with its job. */
export const contentHeadBytes = 256;

export interface DetectFacts {
  readonly fileName: string;
  readonly head: Uint8Array;
  readonly signedRuntime: Runtime;
  readonly signedArchitecture: string | null;
  /** What this machine runs: x86_64 or aarch64. */
  readonly machine: string;
}

export type Detection =
  | {
      readonly ok: true;
      readonly runtime: Runtime;
      readonly decidedBy: EvidenceSource;
      readonly evidence: readonly RuntimeEvidence[];
    }
  | {
      readonly ok: false;
      readonly reason: 'RUNTIME_MISMATCH' | 'RUNTIME_UNSUPPORTED';
      readonly detail: string;
    };

const byExtension: Readonly<Record<string, Runtime>> = {
  '.py': 'python',
  '.js': 'node',
  '.mjs': 'node',
  '.cjs': 'node',
  '.ts': 'node',
  '.rb': 'ruby',
  '.sh': 'bash',
};

/** Interpreters of a `#!` line, by the name of the program without its version. */
const byInterpreter: Readonly<Record<string, Runtime>> = {
  python: 'python',
  node: 'node',
  nodejs: 'node',
  tsx: 'node',
  'ts-node': 'node',
  ruby: 'ruby',
  bash: 'bash',
  sh: 'bash',
  dash: 'bash',
};

/** e_machine of the ELF header (elf(5)). */
const elfMachines: Readonly<Record<number, string>> = { 62: 'x86_64', 183: 'aarch64' };

export function detectRuntime(facts: DetectFacts): Detection {
  const content = readContent(facts.head);
  if (content.unsupported !== null) return unsupported(facts, content.unsupported);
  const evidence = [statementEvidence(facts), extensionEvidence(facts.fileName), content.evidence];
  const told = evidence.filter((e) => e.runtime !== null);
  if (told.some((e) => e.runtime !== facts.signedRuntime)) {
    const all = told.map((e) => `${e.source} says ${e.runtime} (${e.detail})`).join(', ');
    return { ok: false, reason: 'RUNTIME_MISMATCH', detail: `${facts.fileName}: ${all}` };
  }
  if (facts.signedRuntime === 'native') {
    const fault = nativeFault(facts, content.machine);
    if (fault !== null) return fault;
  }
  return { ok: true, runtime: facts.signedRuntime, decidedBy: told.at(-1)?.source ?? 'statement', evidence };
}

function statementEvidence({ signedRuntime, signedArchitecture }: DetectFacts): RuntimeEvidence {
  const detail = signedArchitecture === null ? signedRuntime : `${signedRuntime} for ${signedArchitecture}`;
  return { source: 'statement', runtime: signedRuntime, detail };
}

function extensionEvidence(fileName: string): RuntimeEvidence {
  const dot = fileName.lastIndexOf('.');
  const extension = dot > 0 ? fileName.slice(dot) : '';
  const runtime = byExtension[extension] ?? null;
  return { source: 'extension', runtime, detail: runtime === null ? 'none that names a runtime' : extension };
}

interface ContentFacts {
  readonly evidence: RuntimeEvidence;
  /** Of an ELF file. */
  readonly machine: string | null;
  readonly unsupported: string | null;
}

function readContent(head: Uint8Array): ContentFacts {
  const bytes = Buffer.from(head);
  const magic = bytes.subarray(0, 4).toString('latin1');
  if (magic === '\x7fELF') return elfContent(bytes);
  if (magic.startsWith('#!')) return shebangContent(bytes);
  const foreign = magic.startsWith('MZ') ? 'a Windows program' : isMachO(bytes) ? 'a macOS program' : null;
  return {
    evidence: { source: 'content', runtime: null, detail: 'plain text or data' },
    machine: null,
    unsupported: foreign,
  };
}

function elfContent(bytes: Buffer): ContentFacts {
  const is64LittleEndian = bytes[4] === 2 && bytes[5] === 1;
  const number = bytes.length >= 20 ? bytes.readUInt16LE(18) : 0;
  const machine = is64LittleEndian
    ? (elfMachines[number] ?? `ELF machine ${number}`)
    : 'a 32-bit or big-endian machine';
  return {
    evidence: { source: 'content', runtime: 'native', detail: `ELF for ${machine}` },
    machine,
    unsupported: null,
  };
}

function shebangContent(bytes: Buffer): ContentFacts {
  const line = (bytes.toString('utf8').split('\n')[0] ?? '').slice(2).trim();
  const interpreter = interpreterOf(line);
  const runtime = byInterpreter[interpreter.replace(/[\d.]+$/, '')] ?? null;
  const unsupported = runtime === null ? `a script for ${JSON.stringify(interpreter.slice(0, 40))}` : null;
  return {
    evidence: { source: 'content', runtime, detail: `#!${line.slice(0, 80)}` },
    machine: null,
    unsupported,
  };
}

/** `python3` of `/usr/bin/env -S python3 -u` or of `/usr/bin/python3`. */
function interpreterOf(line: string): string {
  const words = line.split(/\s+/).filter((word) => word !== '');
  const program = baseName(words[0] ?? '');
  if (program !== 'env') return program;
  return baseName(words.slice(1).find((word) => !word.startsWith('-') && !word.includes('=')) ?? '');
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function isMachO(bytes: Buffer): boolean {
  const magic = bytes.length >= 4 ? bytes.readUInt32BE(0) : 0;
  return [0xfeedface, 0xfeedfacf, 0xcffaedfe, 0xcefaedfe, 0xcafebabe].includes(magic);
}

function nativeFault(facts: DetectFacts, machine: string | null): Detection | null {
  const { fileName, signedArchitecture } = facts;
  if (machine === null)
    return {
      ok: false,
      reason: 'RUNTIME_MISMATCH',
      detail: `${fileName}: signed as native, its content is no ELF file`,
    };
  if (machine !== signedArchitecture)
    return {
      ok: false,
      reason: 'RUNTIME_MISMATCH',
      detail: `${fileName}: signed for ${signedArchitecture}, its ELF header says ${machine}`,
    };
  return machine === facts.machine
    ? null
    : unsupported(facts, `built for ${machine}, executors run ${facts.machine}`);
}

function unsupported(facts: DetectFacts, what: string): Detection {
  return { ok: false, reason: 'RUNTIME_UNSUPPORTED', detail: `${facts.fileName}: ${what}` };
}
