/**
 * What the worst envelopes cost to judge, and the ordinary ones: `sh deploy/node test/bench/envelopes.ts`. The aim is
 * 50 ms for any refusal, on an idle machine. A timing is a benchmark, never a test.
 */
import { randomBytes } from 'node:crypto';
import {
  ALICE,
  BOB,
  envelopeFor,
  facts,
  plugin,
  request,
  signPayload,
  store,
  storedKey,
  testKey,
} from '../../services/trust/fixture.ts';
import {
  createEnvelopeMemory,
  decideTrust,
  MAX_SIGNATURES,
  type TrustFacts,
} from '../../services/trust/index.ts';
import { signingKeyFromSeed } from '../../services/trust/keys.ts';

const rounds = 31;
const aimMs = 50;

/** Signatures of the right form that no key of the store has made, over a statement of `bytes` bytes. */
function forged(bytes: number, names: readonly string[]): Uint8Array {
  const payload = Buffer.alloc(bytes, ' ');
  const json = JSON.parse(Buffer.from(signPayload(payload, [ALICE])).toString());
  json.signatures = names.map((keyid) => ({ keyid, sig: plausible().toString('base64') }));
  return Buffer.from(JSON.stringify(json));
}

/** A point that decodes and a scalar below the group's order: no cheap check refuses it. */
function plausible(): Buffer {
  const point = signingKeyFromSeed(randomBytes(32)).publicKey;
  const scalar = randomBytes(32);
  scalar[31] = (scalar[31] ?? 0) & 0x0f;
  return Buffer.concat([point, scalar]);
}

const manyKeys = Array.from({ length: 1024 }, (_, index) => testKey(`key ${index}`));
const crowded: TrustFacts = facts({
  trustStore: store({ keys: manyKeys.map((key, index) => storedKey(key, `owner ${index}`)) }),
});
const all = Array.from({ length: MAX_SIGNATURES });
const lastKeys = manyKeys.slice(-MAX_SIGNATURES);

const cases: readonly [name: string, envelope: Uint8Array, facts: TrustFacts][] = [
  ['accepted, one signature', envelopeFor(plugin()), facts()],
  ['accepted, two signatures', envelopeFor(plugin(), [ALICE, BOB]), facts()],
  [
    '8 forged signatures, 2 keys',
    forged(
      1000,
      all.map(() => ALICE.keyId),
    ),
    facts(),
  ],
  [
    '8 forged signatures, 1024 keys',
    forged(
      1000,
      all.map(() => 'nobody'),
    ),
    crowded,
  ],
  [
    '8 forged signatures, 1024 keys, 45 KiB',
    forged(
      45_000,
      all.map(() => 'nobody'),
    ),
    crowded,
  ],
  ['8 valid signatures of 1024 keys', envelopeFor(plugin(), lastKeys), crowded],
  ['8 valid signatures without hints', unhinted(envelopeFor(plugin(), manyKeys.slice(0, 8))), crowded],
  ['10,000 signatures', Buffer.from(`{"signatures":[${'{},'.repeat(10_000)}{}]}`), facts()],
  ['100 MB', new Uint8Array(100_000_000), facts()],
  ['64 KiB of brackets', Buffer.alloc(64 * 1024, '['), facts()],
];

function unhinted(envelope: Uint8Array): Uint8Array {
  return Buffer.from(
    Buffer.from(envelope)
      .toString()
      .replaceAll(/"keyid": "[0-9a-f]+",/g, ''),
  );
}

/** Medians of the clock on the wall, and of the processor's time: that one hardly depends on what else runs here. */
function measure(work: () => void): { wallMs: number; cpuMs: number } {
  const wall: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedMs = performance.now();
    const used = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(used);
    wall.push(performance.now() - startedMs);
    cpu.push((user + system) / 1000);
  }
  return { wallMs: median(wall), cpuMs: median(cpu) };
}

const median = (numbers: number[]): number => numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? 0;

let missed = false;
for (const [name, envelope, judging] of cases) {
  const job = request({ envelope });
  const decision = decideTrust(job, judging);
  const { wallMs, cpuMs } = measure(() => void decideTrust(job, judging));
  missed ||= cpuMs > aimMs;
  const what = decision.ok ? 'accepted' : decision.reason;
  const times = `median ${wallMs.toFixed(2)} ms, of the processor ${cpuMs.toFixed(2)} ms`;
  console.log(`${name.padEnd(42)} ${what.padEnd(14)} ${times}`);
}
const memory = createEnvelopeMemory();
const job = request();
const known = facts();
const thousand = measure(() => {
  for (let time = 0; time < 1000; time += 1) decideTrust(job, known, memory);
});
console.log(`${'remembered'.padEnd(42)} ${'accepted'.padEnd(14)} median ${thousand.wallMs.toFixed(2)} µs`);
process.exitCode = missed ? 1 : 0;
