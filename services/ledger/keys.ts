/** Keys of the maps and sets in which a batch is planned. Each is made once for a message and handed on: see Described. */
import type { Cause, JobRef } from '../platform/topology.ts';

export const placeKey = ({ stream, sequence }: Cause): string => `${stream}:${sequence}`;
export const jobKey = ({ tenant, jobId }: JobRef): string => `${tenant}.${jobId}`;

/** Whatever lay in a stream that was made anew. */
export const isInStream = (key: string, stream: string): boolean => key.startsWith(`${stream}:`);
