/** `sandbus audit erase JOB`: an operator has the payloads of a job erased. */
import { z } from 'zod';
import { OperationalError, UsageError } from '../platform/errors.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { headerNames, isJobId, isTenant, subjects } from '../platform/topology.ts';
import { asDeployment, deploymentCredentials } from './as-deployment.ts';
import { loadOperatorConfig } from './config.ts';
import { exitCode } from './exit-codes.ts';
import { print, printJson } from './output.ts';

const answer = z.object({ records: z.number() });

export async function erase(jobId: string, options: { tenant?: string; json?: true }): Promise<number> {
  const config = loadOperatorConfig(options.tenant);
  if (!isJobId(jobId)) throw new UsageError(`job id ${jobId}: must be a UUIDv7 in lower case`);
  if (!isTenant(config.tenant))
    throw new UsageError(`tenant ${config.tenant}: use a-z, 0-9, _ and -, at most 63`);
  const credentials =
    config.credentials ?? deploymentCredentials(config.stateDir, "erasing is the operator's");
  const access = { natsUrl: config.natsUrl, credentials, timeoutMs: 2000 };
  return asDeployment(access, async (bus) => {
    const { records } = await ask(bus, { what: 'erase', tenant: config.tenant, jobId });
    if (options.json) printJson({ jobId, tenant: config.tenant, records });
    else print(`erased the payloads of ${records} records of job ${jobId}; its leaves and proofs stay\n`);
    return exitCode('ok');
  });
}

async function ask(bus: Bus, body: object): Promise<z.infer<typeof answer>> {
  const reply = await bus.request(subjects.auditOperate, Buffer.from(JSON.stringify(body)), {}, 30_000);
  const text = Buffer.from(reply.data).toString('utf8');
  const code = reply.headers[headerNames.error];
  if (code === 'JOB_OPEN') throw new UsageError(text, exitCode('failed'));
  if (code !== undefined) throw new OperationalError(code, text);
  return answer.parse(JSON.parse(text));
}
