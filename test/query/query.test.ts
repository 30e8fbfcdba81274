/** The query API of a running system: who sees what, by which filter, in which pages; and that it can change nothing. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CliFixture } from '../../services/cli/cli-process.ts';
import type { JobResult } from '../../services/client/index.ts';
import { readVerifierKey } from '../../services/ledger/log-key.ts';
import { openCheckpoint } from '../../services/ledger/tlog/checkpoint.ts';
import { CompactRange } from '../../services/ledger/tlog/compact-range.ts';
import { checkConsistency } from '../../services/ledger/tlog/merkle.ts';
import { readAll } from '../../services/platform/process.ts';
import { encodeTokens, newToken, parseTokens } from '../../services/platform/query-tokens.ts';
import { freePorts } from '../free-ports.ts';
import { eventually } from '../with-nats.ts';

type Json = Record<string, unknown>;

let cli: CliFixture;
let base = '';
const tokens = { operator: '', acme: '', other: '', expired: '', removed: '' };
const results: JobResult[] = [];
let betweenMs = 0;

before(async () => {
  const [port] = await freePorts(1);
  base = `http://127.0.0.1:${port}`;
  cli = await CliFixture.start({ queryAddress: `127.0.0.1:${port}` });
  const make = async (name: string, ...args: string[]) => {
    const { stdout, stderr, code } = await cli.sandbus(['query-token', 'add', name, '--json', ...args]);
    assert.equal(code, 0, stderr);
    return (JSON.parse(stdout.toString()) as { token: string }).token;
  };
  tokens.operator = await make('auditor', '--operator');
  tokens.acme = await make('dashboard', '--tenant', 'acme', '--expires', '1h');
  tokens.other = await make('spy', '--tenant', 'other');
  tokens.removed = await make('gone', '--operator');
  assert.equal((await cli.sandbus(['query-token', 'remove', 'gone'])).code, 0);
  tokens.expired = await addExpired(join(cli.system.stateDir, 'query-tokens.json'));
  results.push(await cli.system.run('well.sh', 'echo well\n'));
  betweenMs = Date.now();
  results.push(await cli.system.run('seven.py', 'import sys; sys.exit(7)\n'));
  const { jobId } = await cli.system.client.submit({
    plugin: { name: 'x.sh', bytes: Buffer.from('exit\n') },
  });
  results.push(await cli.system.client.wait(jobId));
  const last = results.at(-1)?.record.sequence ?? 0;
  await eventually(
    'a checkpoint covers all',
    async () => (await cli.system.client.standing(last)).covering !== null,
  );
});
after(() => cli?.stop());

/** One that was made in time: the command makes none that is over already. Returns its secret. */
async function addExpired(file: string): Promise<string> {
  const parsed = parseTokens(await readFile(file));
  assert.ok(parsed.ok);
  const { secret, token } = newToken({ name: 'old', tenant: 'acme', createdMs: 0, expiresMs: 1 });
  await writeFile(file, encodeTokens([...parsed.value, token]));
  return secret;
}

async function get(path: string, token = tokens.operator, init: RequestInit = {}) {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const reply = await fetch(`${base}${path}`, { headers, ...init });
  const text = await reply.text();
  return {
    status: reply.status,
    headers: reply.headers,
    body: (text === '' ? {} : JSON.parse(text)) as Json,
  };
}

const keyFile = () => join(cli.system.stateDir, 'ledger.pub');
const idOf = (index: number): string => results[index]?.event.jobId ?? '';
const job = (index: number, tenant = 'acme'): string => `/v1/tenants/${tenant}/jobs/${idOf(index)}`;

const unknownJob = '/v1/tenants/acme/jobs/0198c2f0-0000-7000-8000-000000000000';

describe('who may see', () => {
  const cases: [what: string, token: keyof typeof tokens | '', path: () => string, status: number][] = [
    ['nobody without a token', '', () => '/v1/head', 401],
    ['a token that expired', 'expired', () => '/v1/head', 401],
    ['a token that was removed', 'removed', () => '/v1/head', 401],
    ['a tenant its own job', 'acme', () => job(0), 200],
    ['a tenant its own records', 'acme', () => '/v1/tenants/acme/records', 200],
    ['another tenant nothing of it', 'other', () => job(0), 403],
    ['another tenant nothing of its records', 'other', () => '/v1/tenants/acme/records', 403],
    ['another tenant nothing by a filter', 'other', () => '/v1/jobs?tenant=acme', 403],
    ['another tenant nothing by a job under its own name', 'other', () => job(0, 'other'), 404],
    ['an operator all', 'operator', () => job(0), 200],
    ['everybody the document', '', () => '/openapi.json', 200],
    ['nobody what is not there', 'operator', () => '/v1/nothing', 404],
    ['nobody what is not there, without a token', '', () => '/v1/nothing', 401],
    ['nobody why a path is none, without a token', '', () => '/v1/jobs/%', 401],
    ['whoever has a token why a path is none', 'acme', () => '/v1/jobs/%', 400],
    [
      'nothing under a name that is too long',
      'operator',
      () => `/v1/tenants/${'a'.repeat(300)}/records`,
      414,
    ],
    ['nobody a job that is not there', 'operator', () => unknownJob, 404],
    ['nobody its records', 'operator', () => `${unknownJob}/records`, 404],
    ['nobody its spans', 'operator', () => `${unknownJob}/spans`, 404],
    ['nobody its proof', 'operator', () => `${unknownJob}/proof`, 404],
    ['an empty page behind the last record of a job', 'acme', () => `${job(0)}/records?after=99999`, 200],
  ];
  for (const [what, token, path, status] of cases)
    test(what, async () => {
      const reply = await get(path(), token === '' ? '' : tokens[token]);
      assert.equal(reply.status, status, JSON.stringify(reply.body));
      assert.equal(reply.headers.get('cache-control'), 'no-store');
      if (status >= 400) {
        assert.match(reply.headers.get('content-type') ?? '', /^application\/problem\+json/);
        const { title, code, detail } = reply.body as Record<string, unknown>;
        assert.equal(reply.body.status, status);
        assert.ok(title && code && detail);
      }
      if (status === 401) assert.match(reply.headers.get('www-authenticate') ?? '', /^Bearer/);
    });

  test('the jobs of a tenant only, unless an operator asks', async () => {
    const count = async (token: string) => ((await get('/v1/jobs', token)).body.jobs as unknown[]).length;
    assert.deepEqual(
      [await count(tokens.acme), await count(tokens.other), await count(tokens.operator)],
      [3, 0, 3],
    );
  });

  test('a wrong secret of the right form', async () => {
    const wrong = `${tokens.operator.slice(0, -1)}${tokens.operator.endsWith('A') ? 'B' : 'A'}`;
    assert.equal((await get('/v1/head', wrong)).status, 401);
  });

  test('no secret is in the file of tokens', async () => {
    const file = await readFile(join(cli.system.stateDir, 'query-tokens.json'), 'utf8');
    for (const secret of Object.values(tokens)) assert.ok(!file.includes(secret.slice(8)));
    const { stdout } = await cli.sandbus(['query-token', 'list']);
    assert.match(stdout.toString(), /^dashboard {2}tenant acme /m);
    assert.match(stdout.toString(), /^old .* \(over\)$/m);
  });
});

test('nothing can be written', async () => {
  const before = (await get('/v1/head')).body;
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    for (const path of ['/v1/jobs', '/v1/jobs/%', job(0), '/openapi.json', '/v1/checkpoints'])
      assert.equal(
        (
          await get(path, tokens.operator, {
            method,
            headers: { authorization: `Bearer ${tokens.operator}` },
          })
        ).status,
        405,
        `${method} ${path}`,
      );
  assert.deepEqual((await get('/v1/head')).body, before);
});

test('what is no HTTP is answered by a problem document too', async () => {
  const { hostname, port } = new URL(base);
  const socket = connect(Number(port), hostname);
  socket.end('no request\r\n\r\n');
  const reply = (await readAll(socket)).toString();
  assert.match(reply, /^HTTP\/1\.1 400 Bad Request\r\ncontent-type: application\/problem\+json\r\n/);
  assert.equal(JSON.parse(reply.split('\r\n\r\n')[1] ?? '').code, 'BAD_REQUEST');
});

describe('a token that would be good for nothing is not made', () => {
  const cases: [args: string[], says: RegExp][] = [
    [['late', '--operator', '--expires', '2020-01-01'], /^sandbus: --expires: 2020-01-01 is over: it was /],
    [['bad', '--tenant', 'Bad!'], /^sandbus: token bad: tenant must be 1 to 63 of a-z, 0-9, _ and -\n$/],
    [['a/b', '--operator'], /^sandbus: token a\/b: name must be 1 to 64 letters, digits, /],
  ];
  for (const [args, says] of cases)
    test(args.join(' '), async () => {
      const { code, stderr } = await cli.sandbus(['query-token', 'add', ...args]);
      assert.match(stderr, says);
      assert.equal(code, 2);
    });
});

describe('filters and pages', () => {
  const cases: [query: () => string, names: string[]][] = [
    [() => '', ['x.sh', 'seven.py', 'well.sh']],
    [() => `since=${new Date(betweenMs).toISOString()}`, ['x.sh', 'seven.py']],
    [() => `until=${new Date(betweenMs).toISOString()}`, ['well.sh']],
    [() => 'state=rejected', ['x.sh']],
    [() => 'outcome=exited', ['seven.py', 'well.sh']],
    [() => 'outcome=memory-exceeded', []],
    [() => 'runtime=python', ['seven.py']],
    [() => 'plugin=well.sh', ['well.sh']],
    [() => `keyId=${cli.system.key.keyId}`, ['seven.py', 'well.sh']],
    [() => `keyId=${'0'.repeat(64)}`, []],
    [() => `pluginSha256=${digestOf(0)}`, ['well.sh']],
    [() => 'tenant=acme&state=finished&runtime=bash', ['well.sh']],
  ];
  const digestOf = (index: number): string => {
    const event = results[index];
    return event?.kind === 'finished' ? (digests.get(event.event.jobId) ?? '') : '';
  };
  const digests = new Map<string, string>();
  before(async () => {
    for await (const { event } of cli.system.client.records({ follow: false }))
      if (event?.name === 'JobVerified') digests.set(event.value.jobId, event.value.plugin.sha256);
  });
  for (const [query, names] of cases)
    test(`${query}`.slice(6), async () => {
      const { status, body } = await get(`/v1/jobs?${query()}`);
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(
        (body.jobs as { plugin: string }[]).map(({ plugin }) => plugin),
        names,
      );
    });

  test('pages of jobs and of records join without gap or double', async () => {
    const jobs: unknown[] = [];
    for (let next: number | null | undefined; next !== null; ) {
      const { body } = await get(`/v1/jobs?limit=1${next === undefined ? '' : `&before=${next}`}`);
      jobs.push(...(body.jobs as { jobId: string }[]).map(({ jobId }) => jobId));
      next = body.next as number | null;
    }
    assert.deepEqual(jobs, [idOf(2), idOf(1), idOf(0)]);
    const sequences: number[] = [];
    for (let next: number | null = -1; next !== null; ) {
      const { body }: { body: Json } = await get(`/v1/tenants/acme/records?limit=5&after=${next}`);
      sequences.push(
        ...(body.records as { tenantSequence: number }[]).map((record) => record.tenantSequence),
      );
      next = body.next as number | null;
    }
    assert.deepEqual(sequences, [...sequences.keys()]);
    assert.equal(sequences.length, 12);
  });

  const wrong = [
    'limit=0',
    'limit=1001',
    'limit=x',
    'limit=',
    'limit=1e2',
    'limit=1.5',
    'limit=1&limit=2',
    'before=',
    'before=99999999999999999999',
    'since=yesterday',
    'keyId=abc',
    'unknown=1',
    'state=odd',
    'tenant=NO',
  ];
  for (const query of wrong)
    test(`${query} is refused`, async () => {
      const { status, body } = await get(`/v1/jobs?${query}`);
      assert.deepEqual([status, body.code], [400, 'BAD_REQUEST']);
      assert.match(String(body.detail), new RegExp(query.split('=')[0] ?? ''));
    });

  test('an empty number is no 0, and said', async () => {
    const { status, body } = await get('/v1/tenants/acme/records?after=&limit=1');
    assert.deepEqual([status, body.code], [400, 'BAD_REQUEST']);
    assert.match(String(body.detail), /is empty: leave it out, or give a number\n.*after/);
  });
});

describe('one job', () => {
  test('its record has every event decoded and as bytes, and stands under a checkpoint', async () => {
    const { body } = await get(job(1));
    const records = body.records as { kind: string; payload: string; event: { name: string; value: Json } }[];
    assert.deepEqual(
      records.map(({ kind, event }) => [kind, event.name]),
      [
        ['submitted', 'JobSubmitted'],
        ['verified', 'JobVerified'],
        ['routed', 'JobRouted'],
        ['started', 'JobStarted'],
        ['finished', 'JobFinished'],
      ],
    );
    assert.equal(body.more, false);
    assert.equal(records[4]?.event.value.exitCode, 7);
    assert.ok(records.every(({ payload }) => Buffer.from(payload, 'base64').length > 10));
    const { covering } = body.standing as { covering: { treeSize: number; note: string } };
    assert.ok(covering.treeSize > (results[1]?.record.sequence ?? 0));
    assert.match(covering.note, /^sandbus-ledger\//);
  });

  test('its spans are those of its trace', async () => {
    await eventually(
      'they are stored',
      async () => ((await get(`${job(0)}/spans`)).body.spans as unknown[]).length >= 8,
    );
    const spans = (await get(`${job(0)}/spans`)).body.spans as { traceId: string; name: string }[];
    assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
    assert.ok(spans.some(({ name }) => name === 'plugin'));
  });

  test('its proof is one that the offline check takes, and a changed one is not', async () => {
    const { status, body } = await get(`${job(0)}/proof`, tokens.acme);
    assert.equal(status, 200, JSON.stringify(body));
    const file = join(cli.folder, 'proof.json');
    await writeFile(file, JSON.stringify(body));
    const verify = () => cli.sandbus(['audit', 'verify', '--proof', file, '--log-key', keyFile()]);
    const good = await verify();
    assert.equal(good.code, 0, good.stderr);
    const leaves = body.leaves as { payload: string }[];
    await writeFile(
      file,
      JSON.stringify({ ...body, leaves: [{ ...leaves[0], payload: 'AAAA' }, ...leaves.slice(1)] }),
    );
    assert.equal((await verify()).code, 1);
  });
});

test('the proof that one checkpoint goes on from another, for any two', async () => {
  const { checkpoints } = (await get('/v1/checkpoints')).body as unknown as {
    checkpoints: { treeSize: number; rootHash: string }[];
  };
  const heads = checkpoints.map(({ treeSize, rootHash }) => ({
    size: treeSize,
    root: Buffer.from(rootHash, 'hex'),
  }));
  for (const newer of heads)
    for (const older of heads.filter(({ size }) => size <= newer.size)) {
      const { body } = await get(`/v1/consistency?older=${older.size}&newer=${newer.size}`, tokens.acme);
      const path = (body.consistency as string[]).map((text) => Buffer.from(text, 'base64'));
      assert.deepEqual(checkConsistency(older, newer, path), { ok: true });
    }
  assert.equal((await get('/v1/consistency?older=3&newer=2')).status, 404);
  assert.equal((await get('/v1/consistency?older=1&newer=1000000')).status, 404);
});

test('checkpoints are those that the ledger signed, newest and by size', async () => {
  const { checkpoints } = (await get('/v1/checkpoints')).body as unknown as {
    checkpoints: { treeSize: number }[];
  };
  const newest = (await get('/v1/checkpoints/newest')).body as unknown as { treeSize: number };
  assert.deepEqual(checkpoints.at(-1), newest);
  const some = (await get(`/v1/checkpoints?covering=${newest.treeSize}`)).body.checkpoints as unknown[];
  assert.equal(some.length, 1);
});

describe('tiles, as monitors of transparency logs read them', () => {
  const fetched = async (path: string, token = tokens.operator) => {
    const reply = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return { status: reply.status, bytes: Buffer.from(await reply.arrayBuffer()) };
  };

  test('the root of the hashes in a tile is the one that the checkpoint signed', async () => {
    const opened = openCheckpoint((await fetched('/checkpoint')).bytes, readVerifierKey(keyFile()));
    assert.ok(opened.ok);
    const { size, root } = opened.value;
    const { bytes } = await fetched(`/tile/0/000.p/${size}`);
    const leaves = Array.from({ length: size }, (_, n) => bytes.subarray(32 * n, 32 * n + 32));
    const range = CompactRange.empty();
    for (const leaf of leaves) range.append(leaf);
    assert.equal(Buffer.from(range.root()).toString('hex'), Buffer.from(root).toString('hex'));
    const entries = (await fetched(`/tile/entries/000.p/${size}`)).bytes;
    const hashes: string[] = [];
    for (let at = 0; at < entries.length; at += 2 + entries.readUInt16BE(at)) {
      const entry = entries.subarray(at + 2, at + 2 + entries.readUInt16BE(at));
      hashes.push(createHash('sha256').update(Uint8Array.of(0)).update(entry).digest('hex'));
    }
    assert.deepEqual(
      hashes,
      leaves.map((leaf) => leaf.toString('hex')),
    );
  });

  const refused: [path: string, token: 'operator' | 'acme', status: number][] = [
    ['/tile/0/001', 'operator', 404],
    ['/tile/0/000', 'operator', 404],
    ['/tile/0/0', 'operator', 404],
    ['/tile/9/000', 'operator', 404],
    ['/tile/entries/000.p/255', 'operator', 404],
    ['/tile/../checkpoint', 'acme', 403],
    ['/tile/0/000.p/1', 'acme', 403],
    ['/checkpoint', 'acme', 403],
  ];
  for (const [path, token, status] of refused)
    test(`${path} for ${token}`, async () =>
      assert.equal((await fetched(path, tokens[token])).status, status));
});

test('the document describes every path that there is, with what it takes', async () => {
  const { body } = await get('/openapi.json', '');
  const { openapi, paths, security } = body as unknown as {
    openapi: string;
    paths: Record<
      string,
      Record<string, { parameters?: { name: string }[]; responses: Record<string, { content: object }> }>
    >;
    security: object[];
  };
  assert.equal(openapi, '3.1.0');
  assert.equal(security.length, 1);
  assert.deepEqual(Object.keys(paths).toSorted(), [
    '/checkpoint',
    '/tile/{path}',
    '/v1/checkpoints',
    '/v1/checkpoints/newest',
    '/v1/consistency',
    '/v1/head',
    '/v1/jobs',
    '/v1/tenants/{tenant}/jobs/{jobId}',
    '/v1/tenants/{tenant}/jobs/{jobId}/proof',
    '/v1/tenants/{tenant}/jobs/{jobId}/records',
    '/v1/tenants/{tenant}/jobs/{jobId}/spans',
    '/v1/tenants/{tenant}/records',
  ]);
  for (const [path, methods] of Object.entries(paths)) {
    assert.deepEqual(Object.keys(methods), ['get'], path);
    const { parameters = [], responses = {} } = methods.get ?? {};
    assert.deepEqual(Object.keys(responses).toSorted(), ['200', 'default'], path);
    assert.deepEqual(Object.keys(responses.default?.content ?? {}), ['application/problem+json'], path);
    for (const [, name] of path.matchAll(/\{(\w+)\}/g))
      assert.ok(
        parameters.some((parameter) => parameter.name === name),
        `${path}: ${name}`,
      );
  }
  const filters = (paths['/v1/jobs']?.get?.parameters ?? []).map(({ name }) => name);
  for (const name of [
    'tenant',
    'since',
    'until',
    'outcome',
    'runtime',
    'keyId',
    'pluginSha256',
    'before',
    'limit',
  ])
    assert.ok(filters.includes(name), name);
});
