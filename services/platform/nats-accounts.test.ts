/** The configuration of the NATS server: what it grants, and that it grants no more. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newUserKey } from './nats/nkeys.ts';
import type { Access } from './nats-accounts.ts';
import { parseAccess, renderAccounts } from './nats-accounts.ts';
import { natsUsers, servicePermissions, tenantImports, tenantPermissions } from './nats-permissions.ts';
import { serviceNames } from './topology.ts';

const key = (): string => newUserKey().publicKey;
const access: Access = {
  users: Object.fromEntries(natsUsers.map((user) => [user, key()])) as Access['users'],
  tenants: { acme: [key()], other: [key(), key()] },
};

interface Account {
  readonly jetstream?: string;
  readonly users: { nkey: string; permissions: object }[];
  readonly exports?: { service?: string; stream?: string; accounts: string[] }[];
  readonly imports?: { service?: { subject: string }; stream?: { subject: string } }[];
}

const accounts = (): Record<string, Account> =>
  JSON.parse(renderAccounts(access).replace(/^#.*\naccounts /, ''));

test('a tenant imports exactly what DESIGN lists, and has no JetStream', () => {
  const { imports, jetstream } = accounts()['tenant-acme'] ?? assert.fail();
  assert.equal(jetstream, undefined);
  assert.deepEqual(
    imports?.map(({ service, stream }) => (service ?? stream)?.subject),
    [
      'job.submitted.acme.>',
      'job.cancel-requested.acme.>',
      'upload.acme.>',
      'download.acme.>',
      'audit-read.acme',
      'audit.acme.>',
      'audit-checkpoint',
    ],
  );
});

test('every export names the accounts that may have it, each subject once', () => {
  const exported = accounts().sandbus?.exports ?? [];
  const subjects = exported.map(({ service, stream }) => service ?? stream ?? '');
  assert.equal(new Set(subjects).size, subjects.length);
  for (const { service, stream, accounts: to } of exported) {
    const [, tenant] = /\.(acme|other)(\.>)?$/.exec(service ?? stream ?? '') ?? [];
    assert.deepEqual(to, tenant === undefined ? ['tenant-acme', 'tenant-other'] : [`tenant-${tenant}`]);
  }
});

describe('no service', () => {
  for (const service of serviceNames) {
    const { publish, subscribe } = servicePermissions(service);
    test(`${service} makes or removes streams or consumers, or has a wildcard over the API`, () => {
      for (const subject of publish.filter((one) => one.startsWith('$JS.API')))
        assert.match(
          subject,
          /^\$JS\.API\.(CONSUMER\.(INFO|MSG\.NEXT)|STREAM\.(INFO|MSG\.GET|MSG\.DELETE)|DIRECT\.GET|STREAM\.PURGE\.OBJ_\w+$)[\w.-]*$/,
        );
      assert.deepEqual(
        publish.filter((one) => /^[*>]|^\$JS\.>|^\$KV\.>|^\$O\.>/.test(one)),
        [],
      );
    });
    test(`${service} hears the replies of another`, () => {
      for (const subject of subscribe)
        assert.ok(
          !/^(>|\*|_INBOX\.|\$)/.test(subject) &&
            (!subject.startsWith('_INBOX') || subject === `_INBOX_${service}.>`),
        );
    });
  }
});

test('a user of a tenant may publish what its account imports, and nothing else', () => {
  assert.deepEqual(tenantPermissions('acme').publish, tenantImports('acme').services);
});

const bad: [what: string, change: (json: Record<string, Record<string, unknown>>) => void, error: RegExp][] =
  [
    ['a service without a key', (json) => void delete json.users?.audit, /audit/],
    [
      'a seed in the place of a public key',
      (json) => Object.assign(json.users ?? {}, { audit: 'SUAAAA' }),
      /public nkey/,
    ],
    [
      'a tenant that is no token',
      (json) => Object.assign(json.tenants ?? {}, { 'a.b': [key()] }),
      /a\.b|tenant/,
    ],
    ['a wildcard as a tenant', (json) => Object.assign(json.tenants ?? {}, { '>': [key()] }), /tenant/],
    ['a tenant without a key', (json) => Object.assign(json.tenants ?? {}, { acme: [] }), /acme/],
  ];
for (const [what, change, error] of bad)
  test(`${what} is an error`, () => {
    const json = JSON.parse(JSON.stringify(access));
    change(json);
    assert.throws(() => parseAccess(Buffer.from(JSON.stringify(json)), 'access.json'), error);
  });
