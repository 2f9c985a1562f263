/** @file The end of a process whose threads may never end. */
import { loadKoffi } from '../../system/index.js';

/** Ends the process at once, without waiting for its threads. */
export type Leave = (code: number) => void;

/** `_exit` of the C library; where it can't be called, the process kills itself. */
export async function leaver(): Promise<Leave> {
  try {
    return (await loadKoffi()).load(null).func('void _exit(int code)') as Leave;
  } catch {
    return () => process.kill(process.pid, 'SIGKILL');
  }
}
