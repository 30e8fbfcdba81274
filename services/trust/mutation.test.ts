// Do the tables notice? Each comparison and condition of the code below is turned round, one at a time, and the attack
// tables run against that version. A version that passes everything is a check that no test guards, and fails here.
//
// A mutant is a second copy of the module graph: the hook gives each module an address of its own (`?mutant=7`) and
// hands out changed text for one file. Signatures are not mutated but remembered (signature.test.ts guards them), so
// that hundreds of runs of the tables take seconds.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { after, before, test } from 'node:test';
import { ENVELOPE_ATTACKS } from './attacks/envelopes.ts';
import { JOB_ATTACKS } from './attacks/jobs.ts';
import { PERMITTED } from './attacks/permitted.ts';
import { STATEMENT_ATTACKS } from './attacks/statements.ts';
import { STORE_CASES } from './attacks/stores.ts';
import { verifyStrict } from './signature.ts';

type Trust = typeof import('./index.ts');

const MUTATED_FILES = [
  'decide.ts',
  'authenticate.ts',
  'limits.ts',
  'scope.ts',
  'statement.ts',
  'dsse.ts',
  'signed-trust-store.ts',
  'trust-store.ts',
  'strict-json.ts',
  'keys.ts',
];

/** What is turned into what. All sources are formatted, so operators stand between spaces. */
const NEGATIONS: readonly [RegExp, string][] = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ >= /g, ' < '],
  [/ <= /g, ' > '],
  [/ < /g, ' >= '],
  [/ > /g, ' <= '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/(?<=[\s(])!(?=[\w(])/g, ''],
];
/** And the neighbours: a limit that is off by one is a hole too. */
const BOUNDARIES: readonly [RegExp, string][] = [
  [/ >= /g, ' > '],
  [/ <= /g, ' < '],
  [/ < /g, ' <= '],
  [/ > /g, ' >= '],
];

type Mutant = { readonly file: string; readonly text: string; readonly label: string };

const texts = new Map(
  MUTATED_FILES.map((file) => [file, readFileSync(new URL(file, import.meta.url), 'utf8')]),
);

function mutantsOf(file: string, text: string): Mutant[] {
  const code = blankOutProse(text);
  return [...NEGATIONS, ...BOUNDARIES].flatMap(([operator, replacement]) =>
    [...code.matchAll(operator)].map((match) => {
      const line = text.slice(0, match.index).split('\n').length;
      const changed = text.slice(0, match.index) + replacement + text.slice(match.index + match[0].length);
      const where = text.split('\n')[line - 1]?.trim();
      return {
        file,
        text: changed,
        label: `${file}:${line}: "${match[0]}" as "${replacement}" in: ${where}`,
      };
    }),
  );
}

/** Comments, strings, patterns and types compare nothing; blanked out, they keep every position where it was. */
function blankOutProse(text: string): string {
  const prose =
    /\/\/.*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|(?<=[=(,[] ?)\/[^/\n* ](?:[^/\\\n]|\\.)*\/[a-z]*|^(?:export )?type [^;]*;$/gm;
  return text.replace(prose, (found) => found.replace(/[^\n]/g, '_'));
}

const mutants: Mutant[] = [...texts].flatMap(([file, text]) => mutantsOf(file, text));

const rememberedSignatures = new Map<string, boolean>();
const shared = {
  verifyStrict(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
    const id = [key, message, signature].map((bytes) => Buffer.from(bytes).toString('base64')).join(' ');
    const valid = rememberedSignatures.get(id) ?? verifyStrict(key, message, signature);
    rememberedSignatures.set(id, valid);
    return valid;
  },
};
const SHARED_NAME = 'sandbusMutationTest';
const SIGNATURE_MODULE = `
export * from ${JSON.stringify(new URL('signature.ts', import.meta.url).href)};
export const verifyStrict = globalThis.${SHARED_NAME}.verifyStrict;
`;

const QUERY = '?mutant=';
let hooks: ReturnType<typeof registerHooks> | undefined;

before(() => {
  Object.assign(globalThis, { [SHARED_NAME]: shared });
  hooks = registerHooks({
    resolve(specifier, context, nextResolve) {
      const [, number] = context.parentURL?.split(QUERY) ?? [];
      const resolved = nextResolve(specifier, context);
      const inherits = number !== undefined && specifier.startsWith('./');
      return inherits ? { ...resolved, url: `${resolved.url}${QUERY}${number}` } : resolved;
    },
    load(url, context, nextLoad) {
      const [address = '', number] = url.split(QUERY);
      if (number === undefined) return nextLoad(url, context);
      const file = address.slice(address.lastIndexOf('/') + 1);
      const mutant = mutants[Number(number)];
      if (file === 'signature.ts') return { format: 'module', source: SIGNATURE_MODULE, shortCircuit: true };
      if (file !== mutant?.file) return nextLoad(url, context);
      return { format: 'module-typescript', source: mutant.text, shortCircuit: true };
    },
  });
});

after(() => {
  hooks?.deregister();
  Reflect.deleteProperty(globalThis, SHARED_NAME);
});

/** What the tables find wrong with this version; null when it passes them all. */
function findFault(trust: Trust): string | null {
  for (const { name, expected, request, facts } of [
    ...JOB_ATTACKS,
    ...STATEMENT_ATTACKS,
    ...ENVELOPE_ATTACKS,
  ]) {
    const decision = trust.decideTrust(request, facts);
    if (decision.ok || decision.reason !== expected) return name;
  }
  for (const { name, request, facts, expected, limits } of PERMITTED) {
    const decision = trust.decideTrust(request, facts);
    if (!decision.ok || !holds(decision, expected) || !holds(decision.limits, limits)) return name;
  }
  for (const { name, expected, file, pinned, mark } of STORE_CASES) {
    const opened = trust.openTrustStore(file, pinned);
    const refusal = opened.ok ? trust.checkFollows(opened.value, mark) : opened;
    if ((refusal?.reason ?? null) !== expected) return name;
  }
  return null;
}

function holds(actual: object, expected: object): boolean {
  const found = Object.keys(expected).map((key) => [key, actual[key as keyof typeof actual]]);
  return JSON.stringify(found) === JSON.stringify(Object.entries(expected));
}

/** An exception is a fault as well: the code must not throw. */
async function survives(number: number): Promise<boolean> {
  try {
    const trust: Trust = await import(`./index.ts${QUERY}${number}`);
    return findFault(trust) === null;
  } catch {
    return false;
  }
}

test('the code as it is passes the tables', async () => {
  assert.equal(findFault(await import(`./index.ts${QUERY}${mutants.length}`)), null);
});

test(`each of ${mutants.length} mutants fails some row`, { timeout: 120_000 }, async (context) => {
  const survivors: string[] = [];
  for (const [number, { label }] of mutants.entries()) {
    if (await survives(number)) survivors.push(label);
  }
  const caught = mutants.length - survivors.length;
  context.diagnostic(`${caught} of ${mutants.length} mutants are caught, in ${MUTATED_FILES.length} files`);
  assert.deepEqual(survivors, []);
});
