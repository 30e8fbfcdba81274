/** What goes wrong with a query, as a problem document (RFC 9457). */
import type { OperationalError } from '../../platform/errors.ts';

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Of every problem document. */
export const mediaType = 'application/problem+json';

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  414: 'URI Too Long',
  422: 'Unprocessable Content',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

export const problemDocument = ({ status, code, message }: Problem) => ({
  type: 'about:blank',
  title: titles[status] ?? 'Error',
  status,
  code,
  detail: message,
});

const statuses: Readonly<Record<string, number>> = { NOT_FOUND: 404, TOO_LARGE: 422 };

/** What can pass is 503, so that a client tries again. */
export const problemOf = ({ code, message }: OperationalError): Problem =>
  new Problem(statuses[code] ?? 503, code, message);
