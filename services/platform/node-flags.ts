/** What Node is started with for a service: the sizes of a heap are set before any code of ours runs. */
import type { ServiceName } from './topology.ts';

/**
 * Thousands of messages are under way in the audit service, and each collection of the young heap copies all of them: with
 * V8's own size (16 MiB) that takes a quarter of the main thread's time. MiB; they are used only when there is much to do.
 */
const youngHeap = ['--min-semi-space-size=64', '--max-semi-space-size=64'];

/** `services/cli/sandbus` has the same. */
export const nodeFlags = (service: ServiceName): readonly string[] => (service === 'audit' ? youngHeap : []);
