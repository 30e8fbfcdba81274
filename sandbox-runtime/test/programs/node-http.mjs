// A local HTTP server, asked by fetch and over a UNIX socket, with name look-up, a streamed body and an upgrade to raw bytes.
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';

const server = http.createServer(async (request, response) => {
  response.end(`${request.method} ${request.url} ${(await text(request)).length}`);
});
server.on('upgrade', (_, socket) =>
  socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nraw'),
);
await once(server.listen(0, 'localhost'), 'listening');
const { port } = server.address();
const answers = await Promise.all(
  Array.from({ length: 20 }, async (_, i) =>
    (await fetch(`http://localhost:${port}/${i}`, { method: 'POST', body: 'x'.repeat(100_000) })).text(),
  ),
);
const [, socket, head] = await once(
  http.get({ port, host: 'localhost', headers: { connection: 'upgrade', upgrade: 'raw' } }),
  'upgrade',
);
const raw = head + (await text(socket));
const local = http.createServer((_, response) => response.end('unix'));
await once(local.listen('/tmp/http.sock'), 'listening');
const [response] = await once(http.get({ socketPath: '/tmp/http.sock' }), 'response');
console.log(answers.length, answers[19], raw, await text(response), (await lookup('localhost')).address);
for (const each of [server, local]) {
  each.closeAllConnections();
  each.close();
}
