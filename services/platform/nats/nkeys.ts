/** User keys of NATS: the public half stands in the server's configuration, the seed in a credentials file. */
import { nkeys } from 'nats';

export interface UserKey {
  readonly publicKey: string;
  /** Content of a credentials file; what `nats --nkey FILE` and the clients of all languages read. */
  readonly credentials: string;
}

export function newUserKey(): UserKey {
  const pair = nkeys.createUser();
  const seed = Buffer.from(pair.getSeed()).toString('ascii');
  const credentials = `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
  return { publicKey: pair.getPublicKey(), credentials };
}

/** The seed in a file of that kind, or null where there is none. */
export function seedIn(text: string): string | null {
  return /^SU[A-Z2-7]{56}$/m.exec(text)?.[0] ?? null;
}
