/** A submission: what the caller wants to run, made into a JobSubmitted event; large content is uploaded before. */
import type { Content, InputFile, JobSubmitted, Network, RequestedLimits } from '../platform/codec.ts';
import { encode } from '../platform/codec.ts';
import { messageOf, OperationalError, UsageError } from '../platform/errors.ts';
import type { Bus, Headers } from '../platform/nats/bus.ts';
import type { JobRef } from '../platform/topology.ts';
import { headerNames, inlineBytes, isJobId, streams, subjects } from '../platform/topology.ts';
import type { TraceParent } from '../platform/traceparent.ts';
import { formatTraceparent, newTraceParent, parseTraceparent } from '../platform/traceparent.ts';
import type { ContentInput, ContentSource } from './content.ts';
import { nameOf, openContent } from './content.ts';
import { uuidV7 } from './ids.ts';
import type { OnProgress } from './upload.ts';
import { uploadContent } from './upload.ts';

/** A file by its bytes and a name, or by its path; then its name is the path's last part unless given. */
export type FileInput =
  | { readonly name: string; readonly bytes: Uint8Array }
  | { readonly name?: string | undefined; readonly path: string };

export interface SubmitRequest {
  readonly plugin: FileInput;
  /** DSSE envelope, as `sandbus sign` writes it; without one the job is rejected as unsigned. */
  readonly envelope?: Uint8Array | null | undefined;
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly stdin?: ContentInput | null | undefined;
  /** Files that the plugin finds in /job. */
  readonly inputs?: readonly FileInput[] | undefined;
  /** What the job asks for; what is not given takes the default. */
  readonly limits?: Partial<RequestedLimits> | undefined;
  readonly requiresGpu?: boolean | undefined;
  readonly network?: Network | undefined;
  /** How often user code may be started; 1 unless set. */
  readonly maxAttempts?: number | undefined;
  /** The job must have started by then; one hour from now unless set. */
  readonly deadline?: Date | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** W3C trace context of the caller's own span. Without it the job begins a trace. */
  readonly traceparent?: string | undefined;
  /** UUIDv7; chosen here unless given. Submitting the same id again is safe: the job runs once. */
  readonly jobId?: string | undefined;
  readonly onProgress?: OnProgress | undefined;
}

export interface Submitted {
  readonly jobId: string;
  readonly traceId: string;
  /** True when a submission with this id was on the bus already, and this one changed nothing. */
  readonly duplicate: boolean;
}

export async function submitJob(bus: Bus, tenant: string, request: SubmitRequest): Promise<Submitted> {
  const job = { tenant, jobId: request.jobId ?? uuidV7() };
  if (!isJobId(job.jobId)) throw new UsageError(`job id ${job.jobId}: must be a UUIDv7 in lower case`);
  const trace = traceOf(request.traceparent);
  const bundle = await openBundle(request);
  try {
    const contents = await deliver(bus, tenant, bundle.sources, request.onProgress);
    const event = submittedEvent(job, request, bundle, contents);
    const duplicate = await publishSubmission(bus, event, trace.headers);
    return { jobId: job.jobId, traceId: trace.ids.traceId, duplicate };
  } finally {
    await bundle.close();
  }
}

/** A trace that begins here has no span of its own yet: the verifier records `submit` under the ids that are chosen here. */
function traceOf(given: string | undefined): { ids: TraceParent; headers: Headers } {
  if (given === undefined) {
    const ids = newTraceParent();
    return {
      ids,
      headers: { [headerNames.traceparent]: formatTraceparent(ids), [headerNames.delegatedSpan]: '1' },
    };
  }
  const ids = parseTraceparent(given);
  if (ids === null)
    throw new UsageError(`traceparent ${given}: must be W3C trace context, 00-<32 hex>-<16 hex>-<2 hex>`);
  return { ids, headers: { [headerNames.traceparent]: given } };
}

/** Everything with bytes in it: the plugin first, then standard input if there is one, then the inputs. */
interface Bundle {
  readonly sources: readonly ContentSource[];
  readonly hasStdin: boolean;
  close(): Promise<void>;
}

async function openBundle(request: SubmitRequest): Promise<Bundle> {
  const stdin = request.stdin ?? null;
  const contents: readonly Named[] = [
    contentOf(request.plugin),
    ...(stdin === null ? [] : [[stdin, 'standard input'] as const]),
    ...(request.inputs ?? []).map(contentOf),
  ];
  const sources: ContentSource[] = [];
  const close = async () => void (await Promise.all(sources.map((source) => source.close())));
  try {
    for (const [content, name] of contents) sources.push(await openContent(content, name));
    return { sources, hasStdin: stdin !== null, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Named = readonly [content: ContentInput, name: string];

function contentOf(file: FileInput): Named {
  return 'bytes' in file ? [file.bytes, file.name] : [{ path: file.path }, file.path];
}

/** Small content goes inline as long as all of it together fits, the smallest first; the rest is uploaded. */
async function deliver(
  bus: Bus,
  tenant: string,
  sources: readonly ContentSource[],
  onProgress: OnProgress | undefined,
): Promise<Content[]> {
  const inline = new Set<ContentSource>();
  let room = inlineBytes;
  for (const source of sources.toSorted((a, b) => a.size - b.size)) {
    room -= source.size;
    if (room < 0) break;
    inline.add(source);
  }
  const contents: Content[] = [];
  for (const source of sources) {
    if (!inline.has(source)) await uploadContent(bus, tenant, source, onProgress);
    const bytes = inline.has(source) ? await source.read(0, source.size) : null;
    contents.push({ inline: bytes, sha256: source.sha256, size: source.size });
  }
  return contents;
}

function submittedEvent(
  job: JobRef,
  request: SubmitRequest,
  { hasStdin }: Bundle,
  contents: readonly Content[],
): JobSubmitted {
  const [plugin, ...others] = contents as [Content, ...Content[]];
  const [stdin, inputs] = hasStdin ? [others[0] ?? null, others.slice(1)] : [null, others];
  return {
    ...job,
    submittedAt: Date.now() * 1000,
    plugin: { name: nameOf(request.plugin), content: plugin },
    envelope: request.envelope ?? null,
    args: request.args ?? [],
    env: request.env ?? {},
    stdin,
    inputs: (request.inputs ?? []).map((input, index) => inputFile(nameOf(input), inputs[index])),
    limits: { ...noLimits, ...defined(request.limits ?? {}) },
    requiresGpu: request.requiresGpu ?? false,
    network: request.network ?? 'none',
    maxAttempts: request.maxAttempts ?? 1,
    deadline: request.deadline === undefined ? null : request.deadline.getTime() * 1000,
    labels: request.labels ?? {},
  };
}

function inputFile(name: string, content: Content | undefined): InputFile {
  if (content === undefined) throw new Error(`no content for input ${name}`);
  return { name, content };
}

const noLimits: RequestedLimits = {
  memoryBytes: null,
  cpuMillis: null,
  wallMs: null,
  cpuTimeMs: null,
  processes: null,
  outputBytes: null,
  tmpBytes: null,
};

function defined<T extends object>(partial: T): T {
  return Object.fromEntries(Object.entries(partial).filter(([, value]) => value !== undefined)) as T;
}

const headroomBytes = streams.find(({ name }) => name === 'SUBMISSIONS')?.headroomBytes ?? 0;

/**
 * Publishes until the bus confirms. The message id follows from the job id, so no retry makes a second job; and from our
 * credentials, so that no other tenant can use it up.
 */
export async function publishSubmission(bus: Bus, job: JobSubmitted, headers: Headers): Promise<boolean> {
  const bytes = bytesOf(job);
  const most = bus.maxPayload - headroomBytes - 4096;
  if (bytes.length > most)
    throw new OperationalError(
      'TOO_LARGE',
      `the submission has ${bytes.length} bytes beside what was uploaded, at most ${most}; ${largestPart(job)}`,
    );
  const id = `submitter:${bus.ownId(`${job.tenant}.${job.jobId}`)}`;
  for (let tries = 1; ; tries++) {
    try {
      const { duplicate } = await bus.publish(subjects.job('submitted', job), bytes, { id, headers });
      // After a try without an answer, a duplicate is most likely that very try.
      return duplicate && tries === 1;
    } catch (error) {
      if (!(error instanceof OperationalError) || error.code !== 'PUBLISH_FAILED' || tries === 3)
        throw explained(error);
    }
  }
}

/** The numbers and times in it are those that the caller asks for. */
function bytesOf(job: JobSubmitted): Uint8Array {
  try {
    return encode('JobSubmitted', job);
  } catch (error) {
    throw new UsageError(`this cannot be asked for: ${messageOf(error)}`);
  }
}

/** What there is to shorten; content is uploaded where it is large. */
function largestPart({ envelope, args, env, labels, inputs }: JobSubmitted): string {
  const sizeOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const parts: readonly (readonly [bytes: number, what: string])[] = [
    [envelope?.length ?? 0, 'the envelope: is it the file that `sandbus sign` wrote?'],
    [sizeOf(args), 'the arguments: bring them in an input file'],
    [sizeOf(Object.entries(env).flat()), 'the environment: bring it in an input file'],
    [sizeOf(Object.entries(labels).flat()), 'the labels: shorten them'],
    [sizeOf(inputs.map(({ name }) => name)), 'the names of input files: bring fewer of them, as an archive'],
  ];
  const [bytes, what] = parts.reduce((largest, part) => (part[0] > largest[0] ? part : largest));
  return `${bytes} of them are ${what}`;
}

function explained(error: unknown): unknown {
  if (!(error instanceof OperationalError) || error.code !== 'BUS_FULL') return error;
  const mend = 'it takes no new jobs until some have ended; try again later';
  return new OperationalError('BUS_FULL', `the bus is full: ${mend}`, { cause: error });
}
