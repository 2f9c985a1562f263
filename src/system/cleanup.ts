/** @file Cleanup at the end of the process, normal or by signal: temporary folders, child processes. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const pending = new Set<() => unknown>();

function cleanAll(): void {
  // The last first: processes end before the folders that they write to are removed.
  for (const clean of [...pending].reverse()) {
    pending.delete(clean);
    try {
      clean();
    } catch {
      // One failed cleanup must not prevent the others.
    }
  }
}

function onSignal(signal: NodeJS.Signals): void {
  cleanAll();
  ignoreSignals();
  // Ends the process as without a listener, so that its parent sees the signal.
  process.kill(process.pid, signal);
}

function watch(): void {
  process.on('exit', cleanAll);
  for (const signal of signals) process.on(signal, onSignal);
}

function ignoreSignals(): void {
  process.off('exit', cleanAll);
  for (const signal of signals) process.off(signal, onSignal);
}

/**
 * Registers `clean` to be called at the end of the process, including by a signal; it must be synchronous.
 *
 * @returns a function that cancels the registration.
 */
export function atEnd(clean: () => unknown): () => void {
  if (pending.size === 0) watch();
  pending.add(clean);
  return () => {
    if (pending.delete(clean) && pending.size === 0) ignoreSignals();
  };
}

/** A folder for the time of a process, or less. */
interface TemporaryFolder {
  readonly path: string;
  readonly remove: () => void;
}

/** Makes a folder in the system's for temporary files. @param clean removes it, now or at the end of the process */
export function temporaryFolder(
  prefix: string,
  clean = (path: string): void => rmSync(path, { recursive: true, force: true }),
): TemporaryFolder {
  let path: string | undefined;
  // Before the folder is made: a signal that comes between the two would leave it behind.
  const forget = atEnd(() => path !== undefined && clean(path));
  try {
    path = mkdtempSync(join(realpathSync(tmpdir()), prefix));
  } catch (error) {
    forget();
    throw error;
  }
  const made = path;
  const remove = (): void => {
    clean(made);
    forget();
  };
  return { path: made, remove };
}
