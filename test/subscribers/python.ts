/** The Python that test/python-tools makes, for tests in another language. */
import { installation } from '../../services/platform/config.ts';
import { readAll, runChild, startChild } from '../../services/platform/process.ts';

const environment = () => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  HOME: process.env.HOME ?? '/root',
  ...(process.env.XDG_CACHE_HOME === undefined ? {} : { XDG_CACHE_HOME: process.env.XDG_CACHE_HOME }),
});

/** Null, with the reason, where its packages cannot be had. */
export async function findPython(): Promise<{ program: string } | { missing: string }> {
  const given = process.env.SANDBUS_TEST_PYTHON;
  if (given !== undefined && given !== '') return { program: given };
  const make = ['240', '/bin/sh', `${installation.root}/test/python-tools`];
  const { code, stdout, stderr } = await runChild('/usr/bin/timeout', make, environment());
  if (code === 0) return { program: stdout.toString().trim() };
  return { missing: `no Python with its packages: ${stderr.toString().trim().slice(-300)}` };
}

/** Runs a script of this folder to its end. */
export async function runPython(program: string, script: string, args: readonly string[], input = '') {
  const file = `${installation.root}/test/subscribers/${script}`;
  const child = await startChild(program, [file, ...args], {
    env: environment(),
    stdio: ['pipe', 'pipe', 'pipe'],
    diesWithParent: true,
  });
  child.stdin?.end(input);
  const [stdout, stderr, exit] = await Promise.all([
    readAll(child.stdout),
    readAll(child.stderr),
    child.exited,
  ]);
  return { code: exit.code, stdout: stdout.toString(), stderr: stderr.toString() };
}
