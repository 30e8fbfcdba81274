// Says hello from JavaScript in a .js file, which is CommonJS where no package.json says otherwise.
const fs = require('node:fs');

function primesBelow(limit) {
  const isPrime = new Array(limit).fill(true, 2);
  for (let n = 2; n < limit; n++) {
    if (isPrime[n]) for (let multiple = n * n; multiple < limit; multiple += n) isPrime[multiple] = false;
  }
  return isPrime.filter(Boolean).length;
}

const greeting = `hello from JavaScript (script) Node.js ${process.versions.node}`;
console.log(greeting);
for (const argument of process.argv.slice(2)) console.log(`argument: ${argument}`);
console.log(`standard input: ${fs.readFileSync(0, 'utf8').split('\n')[0] || '(empty)'}`);
console.log(`directory: ${process.cwd()}`);
console.log(`primes below 1000: ${primesBelow(1000)}`);
fs.mkdirSync('out', { recursive: true });
fs.writeFileSync('out/hello.txt', `${greeting}\n`);
console.log('wrote: out/hello.txt');
