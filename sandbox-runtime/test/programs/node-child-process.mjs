// Child processes: exec, spawn with pipes, fork with messages, signals, a timeout, a detached one, a synchronous one.
import { execFile, execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

if (process.send) {
  process.once('message', (number) => process.send(number * 2, () => process.disconnect()));
} else {
  const sorted = spawn('sort', ['-r']);
  sorted.stdin.end('a\nc\nb\n');
  const lines = text(sorted.stdout);
  const child = fork(fileURLToPath(import.meta.url));
  child.send(21);
  const [doubled] = await once(child, 'message');
  const sleeper = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  process.kill(-sleeper.pid, 'SIGTERM');
  const [, signal] = await once(sleeper, 'exit');
  const late = await promisify(execFile)('sleep', ['60'], { timeout: 50 }).catch((error) => error.killed);
  const version = execFileSync(process.execPath, ['-p', 'process.versions.node.split(".")[0] >= 20'], {
    encoding: 'utf8',
  }).trim();
  console.log((await lines).trim().replaceAll('\n', ''), doubled, signal, late, version);
}
