// Every reason for which a job is refused before it runs, each with what to do about it. The list is shared by the
// verifier, the router and the executor, and is printed as a table in the documentation.

const ADVICE = {
  MALFORMED:
    'The envelope, the statement or the request is not in the documented form: correct in the request what the detail names, or sign the plugin again with `sandbus sign` and submit it unchanged.',
  UNSIGNED:
    'The job carries no signature: sign the plugin with `sandbus sign` and submit it with its envelope.',
  BAD_SIGNATURE:
    'The signature does not belong to this statement and key: something was changed after signing, so get the plugin again from its author or sign it again.',
  UNKNOWN_KEY:
    'No key of the trust store made this signature: ask the operator to add the public key with `sandbus trust add`, or sign with a listed key.',
  REVOKED:
    'The operator has revoked this key or this plugin: sign with a key in good standing, or submit a repaired version of the plugin.',
  EXPIRED:
    'The statement or the signing key is past its end date: sign the plugin again with a valid key and a later date, or ask the operator to give the key a later one with `sandbus trust add --replace`.',
  NOT_YET_VALID:
    'The statement or the signing key is not valid yet: wait for the date that the detail names, or correct the clock that was used for signing.',
  THRESHOLD_NOT_MET:
    'Too few different owners have signed: collect the missing signatures with `sandbus sign --add` and submit again.',
  OUT_OF_SCOPE:
    'The signing key may not sign this plugin for this tenant: use a key whose scope covers it, or ask the operator to widen the scope with `sandbus trust add --replace`.',
  DIGEST_MISMATCH:
    'The file is not the one that was signed: submit the file with the signed digest, or sign the new file.',
  NAME_MISMATCH:
    'The file was renamed after signing: submit it under the signed name, or sign it again under the new one.',
  RUNTIME_MISMATCH:
    'Signed runtime, file extension and content do not agree: restore the file name, or sign the plugin again with the right runtime.',
  RUNTIME_UNSUPPORTED:
    'No executor can run this runtime or architecture: start one that can, or build the plugin for a supported one.',
  PLUGIN_UNAVAILABLE: 'The plugin file is not in the store: upload it again, then submit the job again.',
  PLUGIN_TOO_LARGE:
    'The file is larger than the 256 MiB that a plugin, a standard input or an input file may have: make it smaller, or bring its data in several input files.',
  GPU_NOT_SIGNED:
    'The job asks for a GPU, the signature does not: sign the plugin with `--gpu`, or submit without it.',
  NETWORK_NOT_SIGNED:
    'The job asks for the network, the signature does not: sign the plugin with `--network host`, or submit without it.',
  LIMIT_EXCEEDED:
    'The job asks for more than its signature or the policy of its tenant allows: ask for less, sign a higher limit, or have the policy changed.',
  DEADLINE_PASSED:
    'The deadline of the job passed before it could start: submit it again with a later deadline.',
  RETRIES_EXHAUSTED:
    'Sandbus itself failed each time it handled the job: see the log of the service that the stage names, mend the cause, and send the job again with `sandbus dead-letters replay`.',
  NO_TRUST_STORE:
    'This service has no usable trust store, so nothing may run: the operator must provide one with `sandbus trust init` and `sandbus trust add`.',
  TRUST_STORE_EXPIRED:
    'The trust store is past its end date, so nothing may run: the operator must publish a new version with `sandbus trust renew`.',
  TRUST_STORE_UNTRUSTED:
    'The trust store file is not signed by the pinned root key: get the file from the operator again, or pin the right root key.',
  TRUST_STORE_OUTDATED:
    'The trust store is older than one that is already in use, or has its version but not its content: the operator must bring the newest file to every machine.',
  NO_POLICY: 'This service has no usable policy file, so nothing may run: the operator must provide one.',
} as const;

export type RejectReason = keyof typeof ADVICE;

/** All reason codes, in the order in which the documentation lists them. */
export const REJECT_REASONS = Object.freeze(Object.keys(ADVICE)) as readonly RejectReason[];

/** What a person should do about a reason: one sentence. */
export function adviceFor(reason: RejectReason): string {
  return ADVICE[reason];
}

/** A refusal is a value, never thrown: the code for machines, the detail for the person who must mend it. */
export type Rejection = { readonly ok: false; readonly reason: RejectReason; readonly detail: string };

/** Something read from untrusted bytes: either the value or why it was refused. */
export type Checked<T> = { readonly ok: true; readonly value: T } | Rejection;

export function reject(reason: RejectReason, detail: string): Rejection {
  return { ok: false, reason, detail };
}

export function accept<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

const QUOTED_CHARACTERS = 80;

/** Text of strangers inside a detail: escaped, so that it cannot forge log lines, and cut, so that it cannot fill them. */
export function quote(text: string): string {
  const cut = text.length > QUOTED_CHARACTERS ? `${text.slice(0, QUOTED_CHARACTERS)}…` : text;
  return JSON.stringify(cut).replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    escapeCodeUnit,
  );
}

function escapeCodeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
