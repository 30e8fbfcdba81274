/** JSON logs on standard error, one line each, with the trace and the job where there is one. */
import type { Logger } from 'pino';
import { destination, pino, stdTimeFunctions } from 'pino';

export type { Logger } from 'pino';

export function createLogger(service: string, level: string): Logger {
  const options = {
    level,
    base: { service, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, destination({ fd: 2, sync: true }));
}
