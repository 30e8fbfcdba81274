/** For tests: the `sandbus` command as its own process, in a folder of its own, beside a whole system. */
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestSystem } from '../../test/with-system.ts';
import { startTestSystem } from '../../test/with-system.ts';
import { installation } from '../platform/config.ts';
import type { Child } from '../platform/process.ts';
import { readAll, startChild } from '../platform/process.ts';

export const sandbusProgram = join(installation.root, 'services/cli/sandbus');

export interface CliResult {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export class CliFixture {
  readonly system: TestSystem;
  readonly folder: string;

  private constructor(system: TestSystem, folder: string) {
    this.system = system;
    this.folder = folder;
  }

  static async start(options: Parameters<typeof startTestSystem>[1] = {}): Promise<CliFixture> {
    const system = await startTestSystem({}, options);
    return new CliFixture(system, await mkdtemp(join(tmpdir(), 'sandbus-cli-')));
  }

  async stop(): Promise<void> {
    await this.system.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Starts the command; its standard streams are pipes. */
  spawn(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Child> {
    const env = this.environment(environment);
    return startChild(sandbusProgram, args, { env, cwd: this.folder, stdio: ['pipe', 'pipe', 'pipe'] });
  }

  environment(more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
    return {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      SANDBUS_NATS_URL: this.system.url,
      SANDBUS_TENANT: 'acme',
      SANDBUS_STATE_DIR: this.system.stateDir,
      ...more,
    };
  }

  /** Runs the command with this file as its standard output, which may not take it. */
  async sandbusInto(
    file: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Omit<CliResult, 'stdout'>> {
    const output = await open(file, 'a');
    try {
      const env = this.environment(environment);
      const child = await startChild(sandbusProgram, args, {
        ...{ env, cwd: this.folder },
        stdio: ['ignore', output.fd, 'pipe'],
      });
      const [stderr, exit] = await Promise.all([readAll(child.stderr), child.exited]);
      return { stderr: stderr.toString(), code: exit.code };
    } finally {
      await output.close();
    }
  }

  /** Runs the command to its end. */
  async sandbus(
    args: readonly string[],
    input: Uint8Array = Buffer.alloc(0),
    environment: Readonly<Record<string, string>> = {},
  ): Promise<CliResult> {
    const child = await this.spawn(args, environment);
    child.stdin?.end(input);
    const [stdout, stderr, exit] = await Promise.all([
      readAll(child.stdout),
      readAll(child.stderr),
      child.exited,
    ]);
    return { stdout, stderr: stderr.toString(), code: exit.code };
  }

  /** A plugin of these bytes in the folder, signed unless said otherwise. Returns its name. */
  async plugin(name: string, source: string | Uint8Array, signed = true): Promise<string> {
    const bytes = Buffer.from(source);
    await writeFile(join(this.folder, name), bytes);
    if (signed) await writeFile(join(this.folder, `${name}.dsse.json`), this.system.sign(name, bytes));
    return name;
  }
}
