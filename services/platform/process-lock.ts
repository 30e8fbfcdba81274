/**
 * A lock that a process holds until it lets go or dies, however it dies: the kernel takes it back, so that no lock is ever
 * stale, and no two processes take one over. Node has no flock, so it is a SQLite transaction on a file of its own, which
 * stays there, empty.
 */
import { DatabaseSync } from 'node:sqlite';

export interface ProcessLock {
  /** Lets go, once; again it does nothing. */
  close(): void;
}

/** Primary result code SQLITE_BUSY (sqlite.org/rescode.html). */
const busy = 5;

/** Null while another process holds it. Throws what `node:sqlite` throws where the file cannot be opened or made. */
export function holdLock(file: string): ProcessLock | null {
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return { close: () => void (lock.isOpen && lock.close()) };
  } catch (error) {
    lock.close();
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === busy) return null;
    throw error;
  }
}
