// For tests only: versions of the code with one comparison or condition turned round, and how to load them.
//
// A mutant is a second copy of the module graph: a hook gives each module an address of its own (`?mutant=7`) and hands
// out changed text for one file. Three things differ from the code as it is: the one comparison; loops spend fuel, so
// that one that never ends is noticed; and the slow functions of signature.ts and keys.ts, which have tests of their
// own, remember their answers.

import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { publicKeyFromText } from '../keys.ts';
import { verifyStrict } from '../signature.ts';

export type Trust = typeof import('../index.ts');
export type Mutant = { readonly file: string; readonly text: string; readonly label: string };

/** What is turned into what. All sources are formatted, so operators stand between spaces or at the end of a line. */
const NEGATIONS: readonly [RegExp, string][] = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ >= /g, ' < '],
  [/ <= /g, ' > '],
  [/ < /g, ' >= '],
  [/ > /g, ' <= '],
  [/ &&(?=\s)/g, ' ||'],
  [/ \|\|(?=\s)/g, ' &&'],
  [/(?<=[\s(])!(?=[\w(])/g, ''],
];

/** And the neighbours: a limit that is off by one is a hole too. */
const BOUNDARIES: readonly [RegExp, string][] = [
  [/ >= /g, ' > '],
  [/ <= /g, ' < '],
  [/ < /g, ' <= '],
  [/ > /g, ' >= '],
];

export function mutantsOf(file: string): Mutant[] {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  const code = blankOutProse(text);
  return [...NEGATIONS, ...BOUNDARIES].flatMap(([operator, replacement]) =>
    [...code.matchAll(operator)].map((match) => {
      const line = text.slice(0, match.index).split('\n').length;
      const changed = text.slice(0, match.index) + replacement + text.slice(match.index + match[0].length);
      const where = text.split('\n')[line - 1]?.trim();
      return {
        file,
        text: changed,
        label: `${file}:${line} "${match[0].trim()}" → "${replacement.trim()}": ${where}`,
      };
    }),
  );
}

/** The code as it is, in the form of a mutant. */
export function unchanged(file: string): Mutant {
  return {
    file,
    text: readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'),
    label: `${file} as it is`,
  };
}

/** Comments, strings, patterns and types compare nothing; blanked out, they keep every position where it was. */
function blankOutProse(text: string): string {
  const prose =
    /\/\/.*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|(?<=[=(,[] ?)\/[^/\n* ](?:[^/\\\n]|\\.)*\/[a-z]*|^(?:export )?type [^;]*;$/gm;
  return text.replace(prose, (found) => found.replace(/[^\n]/g, '_'));
}

const QUERY = '?mutant=';
const SHARED_NAME = 'sandbusMutants';
const FUEL_PER_MUTANT = 20_000_000;

let fuel = 0;

function spendFuel(): void {
  fuel -= 1;
  if (fuel < 0) throw new Error('a loop does not end');
}

/** Adds `spendFuel()` to the body of every loop, with braces or without. */
function withFuel(text: string): string {
  const spend = `globalThis.${SHARED_NAME}.spendFuel();`;
  return text
    .replace(/^( *(?:while|for) \(.*\)|.*\bdo) \{$/gm, `$1 { ${spend}`)
    .replace(/^( *while \(.*\)) ([^{;]+;)$/gm, `$1 { ${spend} $2 }`);
}

function remembering<Result>(work: (...input: never[]) => Result): (...input: unknown[]) => Result {
  const known = new Map<string, Result>();
  return (...input) => {
    const id = input.map((part) =>
      typeof part === 'string' ? part : Buffer.from(part as Uint8Array).toString('base64'),
    );
    const result = known.get(id.join(' ')) ?? work(...(input as never[]));
    known.set(id.join(' '), result);
    return result;
  };
}

/** Modules that all mutants share, with their slow function replaced. */
const SHARED_MODULES = new Map([
  ['signature.ts', sharedModule('signature.ts', 'verifyStrict')],
  ['keys.ts', sharedModule('keys.ts', 'publicKeyFromText')],
]);

function sharedModule(file: string, name: string): string {
  const original = new URL(`../${file}`, import.meta.url).href;
  return `export * from '${original}'; export const ${name} = globalThis.${SHARED_NAME}.${name};`;
}

export type MutantLoader = { load(mutant: Mutant): Promise<Trust>; close(): void };

export function openMutantLoader(): MutantLoader {
  const loaded: Mutant[] = [];
  const shared = {
    verifyStrict: remembering(verifyStrict),
    publicKeyFromText: remembering(publicKeyFromText),
    spendFuel,
  };
  Object.assign(globalThis, { [SHARED_NAME]: shared });
  const hooks = registerHooks({
    resolve(specifier, context, nextResolve) {
      const number = context.parentURL?.split(QUERY)[1];
      const resolved = nextResolve(specifier, context);
      const inherits = number !== undefined && specifier.startsWith('./');
      return inherits ? { ...resolved, url: `${resolved.url}${QUERY}${number}` } : resolved;
    },
    load(url, context, nextLoad) {
      const [address = '', number] = url.split(QUERY);
      const mutant = loaded[Number(number)];
      if (mutant === undefined) return nextLoad(url, context);
      const file = address.slice(address.lastIndexOf('/') + 1);
      const source = SHARED_MODULES.get(file);
      if (source !== undefined) return { format: 'module', source, shortCircuit: true };
      if (file !== mutant.file) return nextLoad(url, context);
      return { format: 'module-typescript', source: withFuel(mutant.text), shortCircuit: true };
    },
  });
  return {
    load(mutant) {
      fuel = FUEL_PER_MUTANT;
      loaded.push(mutant);
      return import(`../index.ts${QUERY}${loaded.length - 1}`);
    },
    close() {
      hooks.deregister();
      Reflect.deleteProperty(globalThis, SHARED_NAME);
    },
  };
}
