// Says hello from JavaScript in a .mjs file: an ES module, with top-level await.
import { mkdir, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';

function* primesBelow(limit) {
  const found = [];
  for (let n = 2; n < limit; n++) {
    if (found.some((prime) => n % prime === 0)) continue;
    found.push(n);
    yield n;
  }
}

const greeting = `hello from JavaScript (module) Node.js ${process.versions.node}`;
console.log(greeting);
for (const argument of process.argv.slice(2)) console.log(`argument: ${argument}`);
console.log(`standard input: ${(await text(process.stdin)).split('\n')[0] || '(empty)'}`);
console.log(`directory: ${process.cwd()}`);
console.log(`primes below 1000: ${[...primesBelow(1000)].length}`);
await mkdir('out', { recursive: true });
await writeFile('out/hello.txt', `${greeting}\n`);
console.log('wrote: out/hello.txt');
