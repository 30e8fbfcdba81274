// For tests only: the form of the attack tables.

import type { TrustFacts, TrustRequest } from '../decide.ts';
import { bend, envelopeFor, facts, type JsonObject, PLUGIN_SHA256, plugin, request } from '../fixture.ts';
import type { RejectReason } from '../reasons.ts';

export type Attack = {
  readonly name: string;
  readonly expected: RejectReason;
  readonly request: TrustRequest;
  readonly facts: TrustFacts;
  /** What the detail must name. */
  readonly says: readonly string[];
};

type Job = {
  readonly request?: Partial<TrustRequest>;
  readonly facts?: Partial<TrustFacts>;
  readonly says?: string[];
};

export function attack(expected: RejectReason, name: string, job: Job): Attack {
  return { name, expected, request: request(job.request), facts: facts(job.facts), says: job.says ?? [] };
}

/** The valid envelope as JSON, changed in one place. */
export function bentEnvelope(path: string, value: unknown): Uint8Array {
  const json: JsonObject = JSON.parse(Buffer.from(envelopeFor(plugin())).toString());
  return Buffer.from(JSON.stringify(bend(json, path, value)));
}

/** The digest of some other file. */
export const OTHER_SHA256 = PLUGIN_SHA256.replace(/^./, PLUGIN_SHA256.startsWith('0') ? '1' : '0');
