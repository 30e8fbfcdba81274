/**
 * The log as monitors of transparency logs read it (c2sp.org/tlog-tiles): /checkpoint, /tile/<L>/<N> and /tile/entries/<N>.
 * For operators: entries name the jobs of every tenant. Tiles are of the newest checkpoint's tree and no larger, so that
 * whoever reads them can check them against what was signed.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { LedgerReader } from '../../ledger/store.ts';
import type { Tile } from '../../ledger/tlog/tile.ts';
import { entryBundle, isInTree, parseTilePath, tileBytes, tileWidth } from '../../ledger/tlog/tile.ts';
import type { QueryToken } from '../../platform/query-tokens.ts';
import { Problem } from './problems.ts';
import { problem } from './shapes.ts';

/** Payloads are read with their leaves, and let go. */
const bundleBytes = 64 * 1024 * 1024;

/** For the document. */
const described = {
  checkpoint: {
    summary: 'The newest checkpoint as a signed note, for monitors; takes the token of an operator',
    produces: ['text/plain'],
    response: { 200: z.string().describe('C2SP tlog-checkpoint'), default: problem },
  },
  tile: {
    summary: 'A tile of hashes or of entries, for monitors; takes the token of an operator',
    params: z.strictObject({
      path: z
        .string()
        .describe('<L>/<N>, or entries/<N>; .p/<W> behind it for a partial one (C2SP tlog-tiles)'),
    }),
    produces: ['application/octet-stream'],
    response: { 200: z.string().meta({ format: 'binary' }), default: problem },
  },
};

export function addTiles(
  app: FastifyInstance,
  store: LedgerReader,
  tokenOf: (request: object) => QueryToken,
): void {
  app.get('/checkpoint', { schema: described.checkpoint }, async (request, reply) => {
    mustBeOperator(tokenOf(request));
    const { note } = await newest(store);
    return reply.type('text/plain; charset=utf-8').send(Buffer.from(note));
  });
  app.get('/tile/*', { schema: described.tile }, async (request, reply) => {
    mustBeOperator(tokenOf(request));
    const path = request.url.slice(1).split('?')[0] ?? '';
    const tile = parseTilePath(path);
    if (tile === null)
      throw new Problem(404, 'NOT_FOUND', `/${path} is no path of a tile (c2sp.org/tlog-tiles)`);
    const { treeSize } = await newest(store);
    const bytes =
      tile.level === null ? await bundle(store, tile, treeSize) : await tileBytes(store, tile, treeSize);
    if (bytes === null)
      throw new Problem(404, 'NOT_FOUND', `the tree of ${treeSize} records has not all of /${path}`);
    return binary(reply, bytes);
  });
}

async function newest(store: LedgerReader) {
  const checkpoint = await store.newestCheckpoint();
  if (checkpoint === null) throw new Problem(404, 'NOT_FOUND', 'no checkpoint is signed yet');
  return checkpoint;
}

async function bundle(store: LedgerReader, tile: Tile, size: number): Promise<Uint8Array | null> {
  if (!isInTree(tile, size)) return null;
  const first = tile.number * tileWidth;
  const records = [];
  while (records.length < tile.width) {
    const limit = { records: tile.width - records.length, bytes: bundleBytes };
    const more = await store.records(first + records.length, limit);
    if (more.length === 0) return null;
    records.push(...more);
  }
  return entryBundle(records);
}

const binary = (reply: FastifyReply, bytes: Uint8Array) =>
  reply.type('application/octet-stream').send(Buffer.from(bytes));

function mustBeOperator({ tenant }: QueryToken): void {
  if (tenant !== null)
    throw new Problem(403, 'FORBIDDEN', 'the log names every tenant: it takes the token of an operator');
}
