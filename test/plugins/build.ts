// The example plugins: one `hello` for each language, and plugins that behave in one telling way each. Scripts are used
// where they lie; compiled ones are built, with the compilers that are there, into a directory of the caller's choice.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

export type Runtime = 'native' | 'python' | 'node' | 'ruby' | 'bash';

interface Described {
  /** The file's own name: unique, and what `/plugin/NAME` will be. */
  readonly name: string;
  readonly kind: 'hello' | 'behaviour';
  readonly language: string;
  readonly runtime: Runtime;
}
export type ReadyPlugin = Described & { readonly file: string };
export type SkippedPlugin = Described & { readonly skipped: string };
export type BuiltPlugin = ReadyPlugin | SkippedPlugin;

const scripts: readonly Described[] = [
  { name: 'hello.py', kind: 'hello', language: 'Python', runtime: 'python' },
  { name: 'hello.js', kind: 'hello', language: 'JavaScript', runtime: 'node' },
  { name: 'hello.mjs', kind: 'hello', language: 'JavaScript', runtime: 'node' },
  { name: 'hello.cjs', kind: 'hello', language: 'JavaScript', runtime: 'node' },
  { name: 'hello.ts', kind: 'hello', language: 'TypeScript', runtime: 'node' },
  { name: 'hello.rb', kind: 'hello', language: 'Ruby', runtime: 'ruby' },
  { name: 'hello.sh', kind: 'hello', language: 'Bash', runtime: 'bash' },
  { name: 'big-output.py', kind: 'behaviour', language: 'Python', runtime: 'python' },
  { name: 'canary.sh', kind: 'behaviour', language: 'Bash', runtime: 'bash' },
  { name: 'daemoniser.py', kind: 'behaviour', language: 'Python', runtime: 'python' },
  { name: 'denied.py', kind: 'behaviour', language: 'Python', runtime: 'python' },
  { name: 'echo-stdin.sh', kind: 'behaviour', language: 'Bash', runtime: 'bash' },
  { name: 'env-dump.py', kind: 'behaviour', language: 'Python', runtime: 'python' },
  { name: 'exit-code.sh', kind: 'behaviour', language: 'Bash', runtime: 'bash' },
  { name: 'fork-bomb.py', kind: 'behaviour', language: 'Python', runtime: 'python' },
  { name: 'memory-hog.py', kind: 'behaviour', language: 'Python', runtime: 'python' },
  { name: 'sleeper.sh', kind: 'behaviour', language: 'Bash', runtime: 'bash' },
];

interface Compiled extends Described {
  readonly source: string;
  readonly compiler: string;
  readonly env?: Record<string, string>;
  readonly arguments: (source: string, output: string) => string[];
}

const native = { kind: 'hello', runtime: 'native' } as const;
const compiled: readonly Compiled[] = [
  {
    ...native,
    name: 'hello-c',
    language: 'C',
    source: 'hello.c',
    compiler: 'gcc',
    arguments: (source, output) => ['-std=c17', '-O2', '-Wall', '-Wextra', '-Werror', '-o', output, source],
  },
  {
    ...native,
    name: 'hello-cpp',
    language: 'C++',
    source: 'hello.cpp',
    compiler: 'g++',
    arguments: (source, output) => ['-std=c++17', '-O2', '-Wall', '-Wextra', '-Werror', '-o', output, source],
  },
  {
    ...native,
    name: 'hello-go',
    language: 'Go',
    source: 'hello.go',
    compiler: 'go',
    env: { CGO_ENABLED: '0', GOFLAGS: '', GOTOOLCHAIN: 'local', GOWORK: 'off' },
    arguments: (source, output) => ['build', '-trimpath', '-ldflags=-s -w', '-o', output, source],
  },
  {
    ...native,
    name: 'hello-rust',
    language: 'Rust',
    source: 'hello.rs',
    compiler: 'rustc',
    arguments: (source, output) => [
      '--edition=2021',
      '-O',
      '-Cstrip=symbols',
      '-Dwarnings',
      '-o',
      output,
      source,
    ],
  },
];

/** Every plugin, ready to be signed or skipped with the reason. Quick the second time, and safe to run twice at once. */
export async function buildPlugins(outDir: string): Promise<BuiltPlugin[]> {
  await mkdir(outDir, { recursive: true });
  const natives = await Promise.all(compiled.map((plugin) => build(plugin, outDir)));
  const ready = scripts.map((script) => ({ ...script, file: sourceFile(script.kind, script.name) }));
  return [...natives, ...ready];
}

/** The path of a script plugin, by its name. */
export function scriptPlugin(name: string): ReadyPlugin {
  const script = scripts.find((candidate) => candidate.name === name);
  if (script === undefined)
    throw new Error(`no script plugin is called ${name}: see ${import.meta.filename}`);
  return { ...script, file: sourceFile(script.kind, name) };
}

function sourceFile(kind: Described['kind'], name: string): string {
  return join(import.meta.dirname, kind, name);
}

async function build(plugin: Compiled, outDir: string): Promise<BuiltPlugin> {
  const { name, kind, language, runtime } = plugin;
  const described = { name, kind, language, runtime };
  const compiler = await findOnPath(plugin.compiler);
  if (compiler === undefined) return { ...described, skipped: `${plugin.compiler} is not installed` };
  const file = join(outDir, name);
  const keyFile = `${file}.key`;
  const key = await cacheKey(plugin, compiler);
  if ((await readIfThere(keyFile)) === key && (await isExecutable(file))) return { ...described, file };
  const fault = await compile(plugin, compiler, file);
  if (fault !== undefined) return { ...described, skipped: `${plugin.compiler} failed: ${fault}` };
  await writeFile(keyFile, key);
  return { ...described, file };
}

/** Compiles beside the target and renames, so that whoever runs the old file, or builds too, is not disturbed. */
async function compile(plugin: Compiled, compiler: string, file: string): Promise<string | undefined> {
  const unfinished = `${file}.${process.pid}`;
  try {
    const env = { ...process.env, ...plugin.env, ...(await rustVersion(plugin, compiler)) };
    const options = { env, timeout: 240_000, maxBuffer: 1 << 24 };
    await run(compiler, plugin.arguments(sourceFile(plugin.kind, plugin.source), unfinished), options);
    await rename(unfinished, file);
    return undefined;
  } catch (error) {
    await rm(unfinished, { force: true });
    const { stderr, message } = error as { stderr?: string; message: string };
    return stderr?.trim() || message;
  }
}

const run = promisify(execFile);

/** A Rust program cannot ask for its compiler's version, so the build tells it. */
async function rustVersion(plugin: Compiled, compiler: string): Promise<Record<string, string>> {
  if (plugin.language !== 'Rust') return {};
  const { stdout } = await run(compiler, ['--version'], { timeout: 60_000 });
  return { RUSTC_VERSION: stdout.trim() };
}

/** What the result depends on; the compiler by its file, which is quicker than asking it for its version. */
async function cacheKey(plugin: Compiled, compiler: string): Promise<string> {
  const { mtimeMs, size } = await stat(compiler);
  const source = await readFile(sourceFile(plugin.kind, plugin.source), 'utf8');
  const facts = [source, plugin.arguments('', ''), plugin.env, compiler, mtimeMs, size];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

async function findOnPath(program: string): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const file = join(directory, program);
    if (directory !== '' && (await isExecutable(file))) return file;
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function readIfThere(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(() => undefined);
}
