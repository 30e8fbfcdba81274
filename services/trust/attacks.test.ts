import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Attack } from './attacks/attack.ts';
import { ENVELOPE_ATTACKS } from './attacks/envelopes.ts';
import { JOB_ATTACKS } from './attacks/jobs.ts';
import { PERMITTED } from './attacks/permitted.ts';
import { STATEMENT_ATTACKS } from './attacks/statements.ts';
import { createEnvelopeMemory, decideTrust, type TrustDecision } from './index.ts';

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
