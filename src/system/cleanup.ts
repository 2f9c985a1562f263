/** @file Cleanup at the end of the process, normal or by signal: temporary folders, child processes. */

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const pending = new Set<() => void>();

function cleanAll(): void {
  for (const clean of pending) {
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
export function atEnd(clean: () => void): () => void {
  if (pending.size === 0) watch();
  pending.add(clean);
  return () => {
    if (pending.delete(clean) && pending.size === 0) ignoreSignals();
  };
}
