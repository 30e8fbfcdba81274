// Do the tables notice? Each comparison and condition of the code is turned round, one at a time, and the attack tables
// run against that version. A version that passes everything is a check that no test guards.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ENVELOPE_ATTACKS } from './attacks/envelopes.ts';
import { JOB_ATTACKS } from './attacks/jobs.ts';
import { JSON_BOUNDS, JSON_CASES } from './attacks/json.ts';
import { type Mutant, mutantsOf, openMutantLoader, type Trust, unchanged } from './attacks/mutants.ts';
import { PERMITTED } from './attacks/permitted.ts';
import { REVOCATIONS } from './attacks/revocations.ts';
import { STATEMENT_ATTACKS } from './attacks/statements.ts';
import { RELOAD_CASES, ROOT, STORE_CASES } from './attacks/stores.ts';
import { BOB, envelopeFor, PLUGIN_SHA256, plugin, store } from './fixture.ts';

/** Runs tables against a version of the code: the row that went wrong, or null. */
type Check = (trust: Trust) => string | null;

function checkDecisions(trust: Trust): string | null {
  for (const { name, expected, request, facts, says } of [
    ...JOB_ATTACKS,
    ...STATEMENT_ATTACKS,
    ...ENVELOPE_ATTACKS,
  ]) {
    const decision = trust.decideTrust(request, facts);
    if (decision.ok || decision.reason !== expected) return name;
    if (!says.every((text) => decision.detail.includes(text))) return name;
  }
  for (const { name, request, facts, expected, limits } of PERMITTED) {
    const decision = trust.decideTrust(request, facts);
    if (!decision.ok || !holds(decision, expected) || !holds(decision.limits, limits)) return name;
  }
  return null;
}

function checkStores(trust: Trust): string | null {
  for (const { name, expected, file, pinned, mark } of STORE_CASES) {
    const opened = trust.openTrustStore(file, pinned);
    const refusal = opened.ok ? trust.checkFollows(opened.value, mark) : opened;
    if ((refusal?.reason ?? null) !== expected) return name;
  }
  for (const { name, current, bytes, mark, version, problem } of RELOAD_CASES) {
    const reload = trust.reloadTrustStore(current, bytes, { pinnedRoot: ROOT, mark });
    if ((reload.inForce?.store.version ?? null) !== version) return name;
    if ((reload.problem?.reason ?? null) !== problem) return name;
  }
  return null;
}

function checkJson(trust: Trust): string | null {
  for (const [text, expected] of JSON_CASES) {
    const read = trust.parseStrictJson(Buffer.from(text), JSON_BOUNDS);
    if (JSON.stringify(read.ok ? read.value : undefined) !== JSON.stringify(expected)) return text;
  }
  return null;
}

function checkRevocations(trust: Trust): string | null {
  for (const [name, goesOn, keyIds, changes] of REVOCATIONS) {
    const revocation = trust.findRevocation({ pluginSha256: PLUGIN_SHA256, keyIds }, store(changes));
    if ((revocation === null) !== goesOn) return name;
  }
  return null;
}

function checkWriting(trust: Trust): string | null {
  for (const facts of [plugin(), plugin({ fileName: 'hello', runtime: 'native', architecture: 'aarch64' })]) {
    const bytes = trust.statementFor(facts);
    const read = bytes.ok ? trust.parseStatement(bytes.value) : bytes;
    if (!read.ok || !holds(read.value, facts)) return 'a statement is written and read';
  }
  const unhinted = Buffer.from(envelopeFor(plugin()))
    .toString()
    .replace(/"keyid.*,/, '');
  const envelope = trust.parseEnvelope(Buffer.from(unhinted));
  const cosigned = envelope.ok ? trust.parseEnvelope(trust.cosignEnvelope(envelope.value, BOB)) : envelope;
  const hints = cosigned.ok ? cosigned.value.signatures.map(({ keyIdHint }) => keyIdHint) : [];
  return hints.length === 2 && hints[0] === null && hints[1] === BOB.keyId
    ? null
    : 'a second signature is added';
}

function holds(actual: object, expected: object): boolean {
  const found = Object.keys(expected).map((key) => [key, actual[key as keyof typeof actual]]);
  return JSON.stringify(found) === JSON.stringify(Object.entries(expected));
}

const MUTATED: { readonly [file: string]: readonly Check[] } = {
  'decide.ts': [checkDecisions],
  'authenticate.ts': [checkDecisions],
  'limits.ts': [checkDecisions],
  'scope.ts': [checkDecisions],
  'statement.ts': [checkDecisions, checkWriting],
  'dsse.ts': [checkDecisions, checkWriting],
  'strict-json.ts': [checkJson, checkDecisions],
  'signed-trust-store.ts': [checkStores],
  'trust-store.ts': [checkStores],
  'revocation.ts': [checkRevocations],
};

const loader = openMutantLoader();
after(() => loader.close());

/** Null where the version passes all its tables. An exception is a fault as well: this code must not throw. */
async function findFault(mutant: Mutant, checks: readonly Check[]): Promise<string | null> {
  try {
    const trust = await loader.load(mutant);
    return checks.map((check) => check(trust)).find((fault) => fault !== null) ?? null;
  } catch (error) {
    return String(error);
  }
}

for (const [file, checks] of Object.entries(MUTATED)) {
  const mutants = mutantsOf(file);
  test(`${file}: each of ${mutants.length} mutants fails some row`, { timeout: 180_000 }, async () => {
    assert.equal(await findFault(unchanged(file), checks), null);
    const survivors: string[] = [];
    for (const mutant of mutants) {
      if ((await findFault(mutant, checks)) === null) survivors.push(mutant.label);
    }
    assert.deepEqual(survivors, []);
  });
}
