/**
 * The frames of `launcher serve` as bytes; sandbox-runtime/README.md documents each. A header of 16 bytes (u32 length of
 * the payload, u8 type, three zeros, u64 number of the job, all little-endian), then the payload. Pure.
 */

/** What goes to the launcher. */
export type ClientFrame =
  | { readonly type: 'start'; readonly job: number; readonly words: readonly string[] }
  | { readonly type: 'credit'; readonly job: number; readonly stream: OutputName; readonly bytes: number }
  | { readonly type: 'cancel'; readonly job: number }
  | { readonly type: 'discard'; readonly job: number };

/** What comes from it. */
export type LauncherFrame =
  | { readonly type: 'hello'; readonly version: number; readonly mostJobs: number }
  | { readonly type: OutputName; readonly job: number; readonly bytes: Buffer }
  | { readonly type: 'inputCredit'; readonly job: number; readonly bytes: number }
  | { readonly type: 'result'; readonly job: number; readonly text: string }
  | { readonly type: 'error'; readonly text: string };

export type OutputName = 'stdout' | 'stderr';

/** The version of these frames, said in HELLO. */
export const framesVersion = 1;
const headerBytes = 16;
const longestStreamBytes = 64 * 1024;

const clientTypes = { start: 1, credit: 3, cancel: 4, discard: 5 } as const;

interface Rule {
  readonly name: LauncherFrame['type'];
  readonly least: number;
  readonly most: number;
  readonly read: (payload: Buffer, job: number) => LauncherFrame;
}

const launcherTypes: ReadonlyMap<number, Rule> = new Map<number, Rule>([
  [
    16,
    {
      name: 'hello',
      least: 8,
      most: 8,
      read: (payload) => ({
        type: 'hello',
        version: payload.readUInt32LE(0),
        mostJobs: payload.readUInt32LE(4),
      }),
    },
  ],
  [17, outputRule('stdout')],
  [18, outputRule('stderr')],
  [
    19,
    {
      name: 'inputCredit',
      least: 4,
      most: 4,
      read: (payload, job) => ({ type: 'inputCredit', job, bytes: payload.readUInt32LE(0) }),
    },
  ],
  [
    20,
    {
      name: 'result',
      least: 2,
      most: 32 * 1024 * 1024,
      read: (payload, job) => ({ type: 'result', job, text: payload.toString('utf8') }),
    },
  ],
  [
    21,
    {
      name: 'error',
      least: 2,
      most: longestStreamBytes,
      read: (payload) => ({ type: 'error', text: payload.toString('utf8') }),
    },
  ],
]);

function outputRule(name: OutputName): Rule {
  return { name, least: 1, most: longestStreamBytes, read: (bytes, job) => ({ type: name, job, bytes }) };
}

/** Bytes that are no frames of a launcher. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault';
}

export function encodeFrame(frame: ClientFrame): Buffer {
  const payload = payloadOf(frame);
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt8(clientTypes[frame.type], 4);
  header.writeBigUInt64LE(BigInt(frame.job), 8);
  return Buffer.concat([header, payload]);
}

function payloadOf(frame: ClientFrame): Buffer {
  switch (frame.type) {
    case 'start':
      return Buffer.from(frame.words.map((word) => `${word}\0`).join(''), 'utf8');
    case 'credit': {
      const payload = Buffer.alloc(8);
      payload.writeUInt32LE(frame.stream === 'stdout' ? 1 : 2, 0);
      payload.writeUInt32LE(frame.bytes, 4);
      return payload;
    }
    default:
      return Buffer.alloc(0);
  }
}

/** Puts frames together from pieces of any size. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #length = 0;
  /** Of the frame that is being received: known as soon as its header is. */
  #rule: { readonly rule: Rule; readonly job: number; readonly bytes: number } | null = null;

  /** The frames that are whole with this piece. Throws FrameFault; after that nothing can be read any more. */
  *push(piece: Buffer): Generator<LauncherFrame, void> {
    this.#pieces.push(piece);
    this.#length += piece.length;
    for (;;) {
      if (this.#rule === null) {
        if (this.#length < headerBytes) return;
        this.#rule = readHeader(this.#take(headerBytes));
      }
      const { rule, job, bytes } = this.#rule;
      if (this.#length < bytes) return;
      this.#rule = null;
      yield rule.read(this.#take(bytes), job);
    }
  }

  #take(bytes: number): Buffer {
    const [first] = this.#pieces;
    const all =
      first !== undefined && (first.length >= bytes || this.#pieces.length === 1)
        ? first
        : Buffer.concat(this.#pieces);
    const rest = all === first ? this.#pieces.slice(1) : [];
    this.#pieces = all.length > bytes ? [all.subarray(bytes), ...rest] : rest;
    this.#length -= bytes;
    return all.subarray(0, bytes);
  }
}

function readHeader(header: Buffer) {
  const type = header.readUInt8(4);
  const bytes = header.readUInt32LE(0);
  const job = header.readBigUInt64LE(8);
  const rule = launcherTypes.get(type);
  if (rule === undefined || header.readUIntLE(5, 3) !== 0)
    throw new FrameFault(`a launcher sends no frame of type ${type}`);
  if (bytes < rule.least || bytes > rule.most)
    throw new FrameFault(`${rule.name} has ${bytes} bytes and takes ${rule.least} to ${rule.most}`);
  if (job > BigInt(Number.MAX_SAFE_INTEGER)) throw new FrameFault(`${rule.name} is about job ${job}`);
  return { rule, job: Number(job), bytes };
}
