import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Attack } from './attacks/attack.ts';
import { ENVELOPE_ATTACKS } from './attacks/envelopes.ts';
import { JOB_ATTACKS } from './attacks/jobs.ts';
import { PERMITTED } from './attacks/permitted.ts';
import { STATEMENT_ATTACKS } from './attacks/statements.ts';
import { envelopeFor, expectValue, facts, plugin, request } from './fixture.ts';
import { createEnvelopeMemory, decideTrust, parseEnvelope, type TrustDecision } from './index.ts';

/** The time that a refusal may take; a damaged machine or a busy one gets some more. */
const REFUSAL_MS = 50;
const ROOM_FOR_A_BUSY_MACHINE = 10;

function checkRefused(attack: Attack, decision: TrustDecision): void {
  assert.ok(!decision.ok, 'it was allowed');
  assert.equal(decision.reason, attack.expected, decision.detail);
  for (const text of attack.says)
    assert.ok(decision.detail.includes(text), `${decision.detail} names ${text}`);
  assert.match(decision.detail, /^[\x20-\x7e…]{1,1000}$/, 'the detail is one readable line');
}

for (const [title, attacks] of Object.entries({ ENVELOPE_ATTACKS, STATEMENT_ATTACKS, JOB_ATTACKS })) {
  describe(`refused: ${title.toLowerCase().replace('_', ' ')}`, () => {
    for (const attack of attacks) {
      test(`${attack.name}: ${attack.expected}`, () => {
        const startedMs = performance.now();
        const decision = decideTrust(attack.request, attack.facts);
        const tookMs = performance.now() - startedMs;
        checkRefused(attack, decision);
        assert.ok(tookMs < REFUSAL_MS * ROOM_FOR_A_BUSY_MACHINE, `it took ${tookMs} ms`);
      });
    }
  });
}

describe('permitted', () => {
  for (const { name, request, facts, expected, limits } of PERMITTED) {
    test(name, () => {
      const decision = decideTrust(request, facts);
      assert.ok(decision.ok, decision.ok ? '' : `${decision.reason}: ${decision.detail}`);
      assert.partialDeepStrictEqual(decision, { ...expected, limits });
    });
  }
});

test('a remembered envelope is judged anew by everything but its signature', () => {
  const memory = createEnvelopeMemory();
  for (const { request, facts } of PERMITTED) assert.ok(decideTrust(request, facts, memory).ok);
  for (const attack of JOB_ATTACKS) {
    checkRefused(attack, decideTrust(attack.request, attack.facts, memory));
    checkRefused(attack, decideTrust(attack.request, attack.facts, memory));
  }
});

/** The same numbers every time, so that a failure can be repeated. */
function* numbersFrom(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

test('an envelope damaged at random is refused, or says the same as before', () => {
  const numbers = numbersFrom(2026);
  const random = (below: number): number => Math.floor(numbers.next().value * below);
  const envelope = envelopeFor(plugin());
  const { payload } = expectValue(parseEnvelope(envelope));
  const job = request();
  const judging = facts();
  for (let round = 0; round < 3000; round += 1) {
    const damaged = Buffer.from(envelope);
    for (let change = 0; change <= random(3); change += 1) damaged[random(damaged.length)] = random(256);
    const decision = decideTrust({ ...job, envelope: damaged }, judging);
    if (decision.ok) assert.deepEqual(expectValue(parseEnvelope(damaged)).payload, payload, `round ${round}`);
  }
});
