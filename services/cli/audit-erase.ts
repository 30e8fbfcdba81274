/** `sandbus audit erase JOB`: an operator has the payloads of a job erased. */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { userCredentials } from '../platform/access-paths.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { inboxPrefix } from '../platform/nats-permissions.ts';
import { headerNames, isJobId, isTenant, subjects } from '../platform/topology.ts';
import { loadOperatorConfig } from './config.ts';
import { exitCode } from './exit-codes.ts';
import { print, printJson } from './output.ts';

const answer = z.object({ records: z.number() });

export async function erase(jobId: string, options: { tenant?: string; json?: true }): Promise<number> {
  const config = loadOperatorConfig(options.tenant);
  if (!isJobId(jobId)) throw new UsageError(`job id ${jobId}: must be a UUIDv7 in lower case`);
  if (!isTenant(config.tenant))
    throw new UsageError(`tenant ${config.tenant}: use a-z, 0-9, _ and -, at most 63`);
  const credentials = config.credentials ?? userCredentials(config.stateDir, 'deployment');
  if (!existsSync(credentials))
    throw new UsageError(
      `there are no credentials of deployment in ${credentials}: run this where \`sandbus up\` or ` +
        '`sandbus access init` ran, or set SANDBUS_NATS_CREDS',
    );
  const bus = await Bus.connect({
    url: config.natsUrl,
    name: 'sandbus-operator',
    credentials,
    inboxPrefix: inboxPrefix('deployment'),
    timeoutMs: 2000,
  });
  try {
    const { records } = await ask(bus, { what: 'erase', tenant: config.tenant, jobId });
    if (options.json) printJson({ jobId, tenant: config.tenant, records });
    else print(`erased the payloads of ${records} records of job ${jobId}; its leaves and proofs stay\n`);
    return exitCode('ok');
  } finally {
    await bus.close().catch(() => undefined);
  }
}

async function ask(bus: Bus, body: object): Promise<z.infer<typeof answer>> {
  const reply = await bus.request(subjects.auditOperate, Buffer.from(JSON.stringify(body)), {}, 30_000);
  const text = Buffer.from(reply.data).toString('utf8');
  const code = reply.headers[headerNames.error];
  if (code === 'JOB_OPEN') throw new UsageError(text, exitCode('failed'));
  if (code !== undefined) throw new OperationalError(code, text);
  return answer.parse(JSON.parse(text));
}
