/** `sandbus service <name>`: one service in this process. */
import type { Command } from 'commander';
import { UsageError } from '../platform/errors.ts';
import type { StartService } from '../platform/service.ts';
import type { ServiceName } from '../platform/topology.ts';
import { serviceNames } from '../platform/topology.ts';

const starts: Readonly<Record<ServiceName, () => Promise<{ start: StartService }>>> = {
  verifier: () => import('../verifier/main.ts'),
  router: () => import('../router/main.ts'),
  executor: () => import('../executor/main.ts'),
  audit: () => import('../audit/main.ts'),
};

export function registerService(program: Command): void {
  program
    .command('service')
    .summary('run one of the services: verifier, router, executor, audit')
    .description('Runs one service in this process until SIGTERM. Logs are JSON lines on standard error.')
    .argument('<name>', serviceNames.join(', '))
    .addHelpText('after', '\nExample:\n  SANDBUS_NATS_URL=nats://nats:4222 sandbus service executor')
    .action(async (name: string) => {
      const known = serviceNames.find((service) => service === name);
      if (known === undefined)
        throw new UsageError(`no service ${name}; there are ${serviceNames.join(', ')}`);
      const { runService } = await import('../platform/service.ts');
      const { start } = await starts[known]();
      process.exitCode = await runService(known, start);
      // A service that failed still has loops that would go on for ever.
      if (process.exitCode !== 0) process.exit();
    });
}
