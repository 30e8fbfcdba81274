/** A request that is answered by an error: a code for programs and a sentence for people. */
export type RequestFaultCode =
  | 'BAD_REQUEST'
  | 'JOB_OPEN'
  | 'NOT_FOUND'
  | 'TRUNCATED'
  | 'BUSY'
  | 'UNAVAILABLE'
  | 'INTERNAL';

export class RequestFault extends Error {
  override readonly name = 'RequestFault';
  readonly code: RequestFaultCode;

  constructor(code: RequestFaultCode, message: string) {
    super(message);
    this.code = code;
  }
}
