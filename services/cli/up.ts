/** `sandbus up`, `sandbus topology`. */
import type { Command } from 'commander';

export function registerUp(program: Command): void {
  program
    .command('up')
    .summary('run everything on this machine: an embedded NATS server and the four services')
    .description(
      'Runs an embedded nats-server on loopback and the four services, until Ctrl-C. State is kept.',
    )
    .option('--port <port>', 'port of the embedded NATS server; 0 takes any free one', '4222')
    .option('--state <folder>', 'where state is kept (SANDBUS_STATE_DIR)')
    .addHelpText('after', '\nExample:\n  sandbus up\n  sandbus up --port 0 --state /srv/sandbus')
    .action(async (options: { port: string; state?: string }) => {
      const { up } = await import('./up-actions.ts');
      process.exitCode = await up(options);
    });
  program
    .command('topology')
    .summary('make the streams, consumers and buckets in a NATS server (deployment)')
    .description(
      'Makes or updates every stream, consumer and bucket and publishes the schemas. Run before any service.',
    )
    .addHelpText(
      'after',
      '\nExample:\n  SANDBUS_NATS_URL=nats://nats:4222 SANDBUS_REPLICAS=3 sandbus topology',
    )
    .action(async () => {
      const { makeTopology } = await import('./up-actions.ts');
      await makeTopology();
    });
}
