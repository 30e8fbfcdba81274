/** Whether the signature that the ledger keeps is the service's own, over subject, id and bytes of the event. Pure. */
import { contentFault } from '../../platform/authorship.ts';
import type { AuditLeaf } from '../../platform/codec.ts';
import type { Keyring } from '../../platform/event-keys.ts';
import { checkMessage } from '../../platform/event-keys.ts';
import { headerNames } from '../../platform/topology.ts';

export interface SignedEvent extends Pick<AuditLeaf, 'subject' | 'eventId' | 'signer'> {
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

/** What the ledger adds to an id that another event has already, in a place of its own. */
const placeSuffix = /~[A-Z]+\.\d+:\d+$/;

/** Null when it is; else a sentence. */
export function signatureFault(event: SignedEvent, keyring: Keyring): string | null {
  const headers = {
    [headerNames.signature]: Buffer.from(event.signature).toString('base64'),
    [headerNames.eventId]: event.eventId.replace(placeSuffix, ''),
  };
  const verdict = checkMessage({ subject: event.subject, headers, data: event.payload }, keyring);
  if (!verdict.ok) return verdict.detail;
  if (verdict.signer !== event.signer)
    return `it is recorded as said by ${event.signer}, and signed by ${verdict.signer}`;
  return contentFault(verdict.signer, event.subject, event.payload);
}
