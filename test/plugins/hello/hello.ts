// Says hello from TypeScript, run as it is: the types below run nowhere unless Node strips them.
import type { PathLike } from 'node:fs';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

interface Greeting {
  readonly language: 'TypeScript';
  version: string;
}
type Sieve<T extends number> = { limit: T; isPrime: boolean[] };

function primesBelow<T extends number>(limit: T): number {
  const sieve: Sieve<T> = { limit, isPrime: new Array<boolean>(limit).fill(true, 2) };
  for (let n = 2; n < sieve.limit; n++) {
    if (!sieve.isPrime[n]) continue;
    for (let multiple = n * n; multiple < sieve.limit; multiple += n) sieve.isPrime[multiple] = false;
  }
  return sieve.isPrime.filter(Boolean).length;
}

const { language, version } = { language: 'TypeScript', version: process.versions.node } satisfies Greeting;
const greeting: string = `hello from ${language} Node.js ${version}`;
const output = 'out/hello.txt' as PathLike;
console.log(greeting);
for (const argument of process.argv.slice(2)) console.log(`argument: ${argument}`);
console.log(`standard input: ${readFileSync(0, 'utf8').split('\n')[0] || '(empty)'}`);
console.log(`directory: ${process.cwd()}`);
console.log(`primes below 1000: ${primesBelow(1000)}`);
mkdirSync('out', { recursive: true });
writeFileSync(output, `${greeting}\n`);
console.log(`wrote: ${output}`);
