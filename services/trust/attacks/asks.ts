// For tests only: jobs that ask for more than was signed or than the operator allows.

import type { TrustRequest } from '../decide.ts';
import { BOB, envelopeFor, plugin, policy } from '../fixture.ts';
import type { RequestedLimits } from '../limits.ts';
import { type Attack, attack } from './attack.ts';

function asking(changes: Partial<TrustRequest['requested']>, tenant = 'acme'): Partial<TrustRequest> {
  return { tenant, requested: { limits: {}, requiresGpu: false, network: 'none', ...changes } };
}

function exceeding(field: keyof RequestedLimits, asked: number, allowed: number, by: string): Attack {
  return attack('LIMIT_EXCEEDED', `${field} beyond what ${by} allows`, {
    request: asking({ limits: { [field]: asked } }),
    says: [field, String(asked), String(allowed), by],
  });
}

const bobSigns = (changes: Parameters<typeof plugin>[0]): Partial<TrustRequest> => ({
  envelope: envelopeFor(plugin(changes), [BOB]),
});

const MIB = 1024 * 1024;
const smallPolicy = policy({
  default: {
    memoryBytes: MIB,
    cpuMillis: 10,
    wallMs: 20,
    cpuTimeMs: 30,
    processes: 4,
    outputBytes: 5,
    tmpBytes: 6,
    network: false,
    gpu: false,
    concurrency: 1,
    maxAttempts: 1,
  },
});

function beyondPolicy(field: keyof RequestedLimits, allowed: number): Attack {
  return attack('LIMIT_EXCEEDED', `${field} one more than the policy allows`, {
    request: asking({ limits: { [field]: allowed + 1 } }),
    facts: { policy: smallPolicy },
    says: [field, String(allowed + 1), String(allowed), 'policy'],
  });
}

export const ASK_ATTACKS: readonly Attack[] = [
  attack('GPU_NOT_SIGNED', 'the GPU flag raised by the job', { request: asking({ requiresGpu: true }) }),
  attack('NETWORK_NOT_SIGNED', 'the network raised by the job', { request: asking({ network: 'host' }) }),
  attack('NETWORK_NOT_SIGNED', 'a network that does not exist', {
    request: { ...bobSigns({ network: 'host' }), ...asking({ network: 'bridge' as 'host' }) },
  }),
  attack('LIMIT_EXCEEDED', 'a GPU against the policy', {
    request: { ...bobSigns({ requiresGpu: true }), ...asking({ requiresGpu: true }, 'small') },
    says: ['gpu', 'tenant small'],
  }),
  attack('LIMIT_EXCEEDED', 'the network against the policy', {
    request: { ...bobSigns({ network: 'host' }), ...asking({ network: 'host' }, 'small') },
    says: ['network', 'tenant small'],
  }),
  exceeding('memoryBytes', 512 * MIB + 1, 512 * MIB, 'signature'),
  exceeding('cpuMillis', 2001, 2000, 'signature'),
  exceeding('wallMs', 60_001, 60_000, 'signature'),
  exceeding('processes', 257, 256, 'signature'),
  beyondPolicy('memoryBytes', MIB),
  beyondPolicy('cpuMillis', 10),
  beyondPolicy('wallMs', 20),
  beyondPolicy('cpuTimeMs', 30),
  beyondPolicy('processes', 4),
  beyondPolicy('outputBytes', 5),
  beyondPolicy('tmpBytes', 6),
  attack('LIMIT_EXCEEDED', 'memory against the policy of one tenant', {
    request: asking({ limits: { memoryBytes: 64 * MIB + 1 } }, 'small'),
  }),
  attack('LIMIT_EXCEEDED', 'too many attempts', {
    request: asking({ maxAttempts: 4 }),
    says: ['maxAttempts', '3'],
  }),
  attack('MALFORMED', 'no attempt at all', { request: asking({ maxAttempts: 0 }) }),
  attack('MALFORMED', 'no memory at all', { request: asking({ limits: { memoryBytes: 0 } }) }),
  attack('MALFORMED', 'less than no memory', { request: asking({ limits: { memoryBytes: -1 } }) }),
  attack('MALFORMED', 'a memory that is no number', {
    request: asking({ limits: { memoryBytes: Number.NaN } }),
  }),
  attack('MALFORMED', 'memory without end', {
    request: asking({ limits: { tmpBytes: Number.POSITIVE_INFINITY } }),
  }),
  attack('MALFORMED', 'half a process', { request: asking({ limits: { processes: 1.5 } }) }),
];
