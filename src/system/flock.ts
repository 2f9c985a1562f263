/** @file flock(2) of the C library, which locks an open file until it is closed or its process ends. */
import { loadKoffi } from './koffi.js';

/** Locks an open file without waiting: `taken` where another one has it, `unsupported` where its file system can't. */
export type Flock = (file: number) => 'held' | 'taken' | 'unsupported';

const LOCK_EX = 2;
const LOCK_NB = 4;

/** Undefined where the system has no flock(2), or no C function can be called. */
export async function loadFlock(): Promise<Flock | undefined> {
  if (process.platform === 'win32') return undefined;
  try {
    const koffi = await loadKoffi();
    const flock = koffi.load(null).func('int flock(int file, int operation)');
    const { EINTR, EWOULDBLOCK, EAGAIN } = koffi.os.errno;
    return (file) => {
      for (;;) {
        if (flock(file, LOCK_EX | LOCK_NB) === 0) return 'held';
        const error = koffi.errno();
        if (error === EINTR) continue;
        return error === EWOULDBLOCK || error === EAGAIN ? 'taken' : 'unsupported';
      }
    };
  } catch {
    return undefined;
  }
}
