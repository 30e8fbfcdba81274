/** The picture in ARCHITECTURE.md, read from the imports: who may know whom. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { describe, test } from 'node:test';

const root = join(import.meta.dirname, '..');
const sources = listSources(join(root, 'services')).map((file) => ({
  file: relative(root, file),
  ...readSource(file),
}));

/** Folder under services/ → the folders that it may import from. Its own is always allowed. */
const allowed: Record<string, readonly string[]> = {
  platform: ['schemas'],
  trust: [],
  'trust-store': ['platform', 'trust'],
  verifier: ['platform', 'trust', 'trust-store', 'schemas'],
  router: ['platform', 'schemas'],
  executor: ['platform', 'trust', 'trust-store', 'schemas'],
  audit: ['platform', 'ledger', 'schemas'],
  ledger: ['platform', 'schemas'],
  client: ['platform', 'schemas'],
};
/** The command line starts the services, each by one lazy import, and builds on everything else. */
const cliMayStart = /^services\/cli\/service\.ts$/;

/** A module → the only places that know it. */
const confined: [module: string, where: RegExp][] = [
  ['nats', /^services\/platform\/nats\//],
  ['avsc', /^services\/platform\/codec\.ts$/],
  ['node:child_process', /^services\/platform\/process\.ts$/],
  [
    'node:sqlite',
    /^services\/(ledger\/sqlite\/|platform\/process-lock\.ts$|ledger\/verify-fixture\.ts$|audit\/fixture\.ts$)/,
  ],
  ['pg', /^services\/ledger\/(postgres\/|verify-fixture\.ts$)/],
  ['fastify', /^services\/audit\/query\//],
  ['@fastify', /^services\/audit\/query\//],
  ['pino', /^services\/platform\/log\.ts$/],
  ['@noble/ed25519', /^services\/trust\//],
  ['sodium-native', /^services\/platform\/signature-check-thread\.ts$/],
  ['@opentelemetry/sdk-metrics', /^services\/platform\/metrics\.ts$/],
  ['@opentelemetry/sdk-node', /^services\/platform\/telemetry\.ts$/],
  ['commander', /^services\/cli\//],
];

describe('imports', () => {
  for (const { file, imports } of sources) {
    if (file.endsWith('.test.ts')) continue;
    test(file, () => {
      for (const specifier of imports) {
        const fault = specifier.startsWith('.') ? folderFault(file, specifier) : moduleFault(file, specifier);
        assert.equal(fault, null, `${file} imports ${specifier}`);
      }
    });
  }
});

describe('process.env is read in config files only', () => {
  for (const { file } of sources.filter(({ text }) => /process\s*\.\s*env\b|process\[['"]env/.test(text)))
    test(file, () => assert.match(file, /(^|\/)config\.ts$|\.test\.ts$/, 'read it in a config.ts'));
});

describe('trust is pure', () => {
  for (const { file, imports } of sources.filter(({ file }) =>
    /^services\/trust\/(?!attacks|.*\.test)/.test(file),
  ))
    test(file, () => {
      for (const specifier of imports.filter((s) => !s.startsWith('.')))
        assert.match(specifier, /^(node:crypto|node:buffer|zod|@noble\/ed25519)$/);
    });
});

function folderFault(file: string, specifier: string): string | null {
  const from = topFolder(file);
  const to = topFolder(relative(root, resolve(root, file, '..', specifier)));
  if (from === to || to === 'schemas') return null;
  if (from === 'cli') {
    const services = ['verifier', 'router', 'executor', 'audit'];
    return services.includes(to) && !cliMayStart.test(file)
      ? `only services/cli/service.ts starts ${to}`
      : null;
  }
  return allowed[from]?.includes(to) ? null : `${from} must not know ${to}`;
}

function moduleFault(file: string, specifier: string): string | null {
  const rule = confined.find(([module]) => specifier === module || specifier.startsWith(`${module}/`));
  return rule === undefined || rule[1].test(file) ? null : `only ${rule[1].source} knows ${rule[0]}`;
}

/** `platform` of services/platform/…, `schemas` of schemas/…, `test` of test/…. */
function topFolder(file: string): string {
  const [first = '', second = ''] = file.split('/');
  return first === 'services' ? second : first;
}

function listSources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}

function readSource(file: string): { text: string; imports: string[] } {
  const text = readFileSync(file, 'utf8');
  const imports = [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|\bimport\s+)'([^']+)'/g)].map(
    (match) => match[1] ?? '',
  );
  return { text: text.replace(/\/\/.*|\/\*[\s\S]*?\*\//g, ''), imports };
}
