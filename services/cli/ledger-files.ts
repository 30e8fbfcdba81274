/** Files about the ledger that a person keeps: the key of the log, checkpoints, the keys of the services. */
import type { SignedCheckpoint } from '../ledger/tlog/checkpoint.ts';
import { openCheckpoint } from '../ledger/tlog/checkpoint.ts';
import type { VerifierKey } from '../ledger/tlog/note.ts';
import { parseVerifierKey } from '../ledger/tlog/note.ts';
import { UsageError } from '../platform/errors.ts';
import type { Keyring } from '../platform/event-keys.ts';
import { parseKeyring } from '../platform/event-keys.ts';
import { loadCliConfig } from './config.ts';
import { readBytes } from './files.ts';

/** The log's public key. Throws UsageError. */
export async function readLogKey(file: string = loadCliConfig().ledgerKey): Promise<VerifierKey> {
  const text = Buffer.from(await readBytes(file, 'key of the log')).toString('utf8');
  const parsed = parseVerifierKey(text);
  if (parsed.ok) return parsed.value;
  throw new UsageError(`${file}: ${parsed.reason}`);
}

/** A checkpoint that was kept, if the log signed it. Throws UsageError. */
export async function readCheckpoint(file: string, key: VerifierKey): Promise<SignedCheckpoint> {
  const opened = openCheckpoint(await readBytes(file, 'checkpoint'), key);
  if (opened.ok) return opened.value;
  throw new UsageError(`${file} is no checkpoint of this log: ${opened.reason}`);
}

/** The services' public keys. Throws UsageError. */
export async function readKeyringFile(file: string = loadCliConfig().serviceKeys): Promise<Keyring> {
  const parsed = parseKeyring(await readBytes(file, 'keys of the services'));
  if (parsed.ok) return parsed.value;
  throw new UsageError(`${file}: ${parsed.detail}`);
}
