// The SDK: what programs import to submit jobs and to read what became of them.
//
//   import { connect } from 'sandbus';
//   const sandbus = await connect({ url: 'nats://127.0.0.1:4222', tenant: 'default' });
//   const { jobId } = await sandbus.submit({ plugin: { path: 'hello.py' }, envelope: await readFile('hello.py.dsse.json') });
//   const result = await sandbus.wait(jobId);

export type {
  AnyEvent,
  AuditRecord,
  JobCancelled,
  JobFinished,
  JobRejected,
  LogStream,
  Network,
  Outcome,
  RequestedLimits,
} from '../platform/codec.ts';
export { OperationalError, UsageError } from '../platform/errors.ts';
export type {
  CheckpointAnswer,
  CheckpointSummary,
  Entry,
  JobQuery,
  JobSummary,
  PathPage,
  PathQuery,
  SpanRecord,
  Standing,
} from './audit-read.ts';
export { type ConnectOptions, connect, SandbusClient } from './client.ts';
export type { ContentInput } from './content.ts';
export type { DeadLetter, Replayed } from './dead-letters.ts';
export { uuidV7 } from './ids.ts';
export type { GapItem, LogItem, OutputItem } from './logs.ts';
export type { RecordsOptions } from './records.ts';
export { faultOf, type JobResult, resultOf } from './result.ts';
export type { FileInput, SubmitRequest, Submitted } from './submission.ts';
export type { OnProgress, UploadProgress } from './upload.ts';
export type { OnWaiting } from './waiting.ts';
