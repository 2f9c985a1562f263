/** @file What readers of old documents are told: each notice once. */
import type { ReadOptions } from './format.js';

/** Tells `options.notify`, or else warns through Node; what was told already is not told again. */
export function notifier(options: Pick<ReadOptions, 'notify'>): (notice: string) => void {
  const told = new Set<string>();
  const notify = options.notify ?? ((notice: string) => process.emitWarning(notice, 'ConfigWarning'));
  return (notice) => {
    if (told.has(notice)) return;
    told.add(notice);
    notify(notice);
  };
}
