import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../../test/with-nats.ts';
import { startTestNats } from '../../../test/with-nats.ts';
import { connect } from './connection.ts';

let nats: TestNats;
before(async () => {
  nats = await startTestNats();
});
after(() => nats.stop());

test('an address that says tls:// is never spoken to in the clear', async () => {
  const url = nats.url.replace('nats://', 'tls://');
  await assert.rejects(connect({ url, name: 'test', credentials: null }), { code: 'NATS_WITHOUT_TLS' });
});
