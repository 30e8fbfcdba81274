// For tests only: statements that were changed after signing, and statements that a listed key really signed but that
// say what they must not.

import { ALICE, bend, PLUGIN_SHA256, signPayload, statementJson } from '../fixture.ts';
import { type Attack, attack, bentEnvelope, OTHER_SHA256 } from './attack.ts';

/** Every field of the statement, each to another value that would be fine had it been signed. */
const OTHER_VALUES: readonly [string, unknown][] = [
  ['_type', 'https://in-toto.io/Statement/v0.1'],
  ['subject.0.name', 'hello2.py'],
  ['subject.0.digest.sha256', OTHER_SHA256],
  ['predicateType', 'urn:sandbus:plugin:v2'],
  ['predicate.name', 'hello.py'],
  ['predicate.version', '1.0.1'],
  ['predicate.runtime', 'bash'],
  ['predicate.requiresGpu', true],
  ['predicate.network', 'host'],
  ['predicate.limits.memoryBytes', 2 ** 40],
  ['predicate.limits.cpuMillis', 64_000],
  ['predicate.limits.wallMs', 86_400_000],
  ['predicate.limits.processes', 10_000],
  ['predicate.notBefore', '2025-01-01T00:00:00Z'],
  ['predicate.expires', '2099-01-01T00:00:00Z'],
];

/** The payload changed after signing; the signatures stay. */
function tampered([path, value]: readonly [string, unknown]): Attack {
  const payload = Buffer.from(JSON.stringify(bend(statementJson(), path, value))).toString('base64');
  return attack('BAD_SIGNATURE', `${path} changed after signing`, {
    request: { envelope: bentEnvelope('payload', payload) },
    says: ['hello.py', PLUGIN_SHA256, ALICE.keyId],
  });
}

/** Statements that a listed key really signed, but that say what they must not. */
const BAD_STATEMENTS: readonly [string, unknown][] = [
  ['_type', 'https://in-toto.io/Statement/v0.1'],
  ['_type', undefined],
  ['subject', []],
  [
    'subject',
    [
      { name: 'hello.py', digest: { sha256: PLUGIN_SHA256 } },
      { name: 'b.py', digest: { sha256: OTHER_SHA256 } },
    ],
  ],
  ['subject.0.name', '../hello.py'],
  ['subject.0.name', undefined],
  ['subject.0.digest', {}],
  ['subject.0.digest.sha256', PLUGIN_SHA256.toUpperCase()],
  ['subject.0.digest.sha512', PLUGIN_SHA256.repeat(2)],
  ['subject.0.uri', 'file:///etc/passwd'],
  ['predicateType', 'https://slsa.dev/provenance/v1'],
  ['predicateType', undefined],
  ['predicate', null],
  ['predicate.name', 'payroll'],
  ['predicate.name', 'hel'],
  ['predicate.version', ''],
  ['predicate.version', '1.0\u001b[2J'],
  ['predicate.runtime', 'perl'],
  ['predicate.runtime', undefined],
  ['predicate.architecture', 'x86_64'],
  ['predicate.requiresGpu', 'false'],
  ['predicate.requiresGpu', undefined],
  ['predicate.network', 'bridge'],
  ['predicate.network', undefined],
  ['predicate.limits', undefined],
  ['predicate.limits.memoryBytes', 0],
  ['predicate.limits.memoryBytes', -1],
  ['predicate.limits.cpuMillis', 0.5],
  ['predicate.limits.wallMs', '60000'],
  ['predicate.limits.processes', undefined],
  ['predicate.limits.outputBytes', 5],
  ['predicate.notBefore', '2026-01-01'],
  ['predicate.expires', '2026-06-31T00:00:00Z'],
  ['predicate.expires', '2026-01-01T00:00:00.000Z'],
  ['predicate.expires', undefined],
  ['predicate.priority', 1],
  ['comment', 'hello'],
];

const statementText = JSON.stringify(statementJson());

const ODD_PAYLOADS: readonly [string, Uint8Array | string][] = [
  ['an empty statement', ''],
  ['a statement that is a list', '[]'],
  ['a statement twice', statementText + statementText],
  ['two predicates', statementText.replace('"predicate":', '"predicate":{},"predicate":')],
  ['two limits of memory', statementText.replace('"memoryBytes":', '"memoryBytes":1,"memoryBytes":')],
  ['a limit beyond 2^53-1', statementText.replace('"wallMs":60000', '"wallMs":9007199254740993')],
  ['a limit with an exponent', statementText.replace('"wallMs":60000', '"wallMs":6e4')],
  ['a limit with a leading zero', statementText.replace('"wallMs":60000', '"wallMs":060000')],
  ['a lone surrogate', statementText.replace('1.0.0', '\\ud800')],
  ['a control character', statementText.replace('1.0.0', '1\u0000')],
  ['a bad escape', statementText.replace('1.0.0', '\\x41')],
  ['an unfinished statement', statementText.slice(0, -1)],
  ['an unfinished string', '{"_type'],
  ['a comma too many', statementText.replace(/}$/, ',}')],
  ['a comment', `/* signed */${statementText}`],
  ['a deep nest', `${'['.repeat(10_000)}${']'.repeat(10_000)}`.slice(0, 16_000)],
  ['a statement of 16 KiB and one byte', statementText + ' '.repeat(16 * 1024 + 1 - statementText.length)],
];

const nativeWithoutArchitecture = bend(
  statementJson({ fileName: 'hello', runtime: 'native', architecture: 'x86_64' }),
  'predicate.architecture',
  undefined,
);

export const STATEMENT_ATTACKS: readonly Attack[] = [
  ...OTHER_VALUES.map(tampered),
  ...BAD_STATEMENTS.map(([path, value]) =>
    attack('MALFORMED', `${path} signed as ${JSON.stringify(value)}`, {
      request: { envelope: signPayload(bend(statementJson(), path, value)) },
    }),
  ),
  ...ODD_PAYLOADS.map(([name, payload]) =>
    attack('MALFORMED', name, { request: { envelope: signPayload(payload) } }),
  ),
  attack('MALFORMED', 'native without architecture', {
    request: { envelope: signPayload(nativeWithoutArchitecture) },
  }),
];
