/** What servers of some versions may not be used for. */

/**
 * The oldest server on which the crash test on three nodes was run and held. Older ones lose confirmed events of streams
 * with replicas when nodes die and come back: 2.9.10 did here (rarely: a node that is started again cannot apply a
 * replicated deletion, and resets its copy of the stream), 2.10.20 forgot whole streams (nats-server issue 6888).
 */
const replicasSafeFrom = [2, 11, 17] as const;

/** Why that many replicas are not safe on a server of this version, with the mend; null when they are. */
export function replicaFault(version: string, replicas: number): string | null {
  if (replicas <= 1 || isAtLeast(version, replicasSafeFrom)) return null;
  const from = replicasSafeFrom.join('.');
  return (
    `nats-server ${version} loses confirmed events of streams with replicas when its nodes die: ` +
    `use ${from} or newer on every node of the cluster, or one server and SANDBUS_REPLICAS=1`
  );
}

/** What cannot be read counts as too old. */
function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
  if (parts === undefined) return false;
  for (const [index, wanted] of least.entries()) {
    const part = parts[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}
