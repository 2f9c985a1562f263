/** @file Cleanup when the process ends, by itself or by a signal: temporary folders, child processes. */

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const pending = new Set<() => void>();

function cleanAll(): void {
  for (const clean of pending) {
    pending.delete(clean);
    try {
      clean();
    } catch {
      // The process is ending: one failed clean-up must not prevent the others.
    }
  }
}

function onSignal(signal: NodeJS.Signals): void {
  cleanAll();
  ignoreSignals();
  // Ends the process as if nobody had listened, so that its parent sees what ended it.
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
 * Has `clean` called when the process ends or is ended by a signal; it must not wait for anything.
 *
 * @returns what is called once `clean` is no longer needed.
 */
export function atEnd(clean: () => void): () => void {
  if (pending.size === 0) watch();
  pending.add(clean);
  return () => {
    if (pending.delete(clean) && pending.size === 0) ignoreSignals();
  };
}
