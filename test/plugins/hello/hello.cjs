// Says hello from JavaScript in a .cjs file: CommonJS, whatever a package.json says.
const fs = require('node:fs');

const primesBelow = (limit) => {
  const primes = [];
  for (let n = 2; n < limit; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes.length;
};

const greeting = `hello from JavaScript (CommonJS) Node.js ${process.versions.node}`;
console.log(greeting);
for (const argument of process.argv.slice(2)) console.log(`argument: ${argument}`);
console.log(`standard input: ${fs.readFileSync(0, 'utf8').split('\n')[0] || '(empty)'}`);
console.log(`directory: ${process.cwd()}`);
console.log(`primes below 1000: ${primesBelow(1000)}`);
fs.mkdirSync('out', { recursive: true });
fs.writeFileSync('out/hello.txt', `${greeting}\n`);
console.log('wrote: out/hello.txt');
module.exports = { primesBelow };
