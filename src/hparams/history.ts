/** @file What was written to a config, by whom, in order. */

import { deepCopy } from './editing/copy.js';
import { origin } from './nodes/config.js';
import { fieldOf, originText, requireNode, type WriteKind } from './nodes/node.js';
import { type Place, placeOf } from './source.js';
import type { AnyConfig } from './types.js';
import { walk } from './walking/traverse.js';

/** One write. */
export interface HistoryEntry {
  /** Counts all writes of the process, so that entries of different configs can be put in order. */
  readonly sequence: number;
  /** The field that was written; empty for a change of class. */
  readonly field: string;
  /** `edit` is a change inside an array or record; `tags` and `class` hold all tags, or the class, from then on. */
  readonly kind: WriteKind;
  readonly value: unknown;
  /** `file:line`, the text of a flag, or undefined where no frame of the stack was outside this library. */
  readonly where: string | undefined;
  readonly place: Place | undefined;
}

/**
 * The writes to `config`, or to one field of it, oldest first. A copy begins with the history of its original.
 *
 * @throws ConfigError for a field that neither exists nor was written when `config` had another class.
 */
export function history(config: AnyConfig, field?: string): HistoryEntry[] {
  const node = requireNode(config, 'history');
  const entries: HistoryEntry[] = [];
  for (let write = node.last; write !== undefined; write = write.previous) {
    if (field !== undefined && write.field !== field) continue;
    const { sequence, kind, value, origin: writer } = write;
    const place = typeof writer === 'string' ? undefined : placeOf(writer);
    entries.push({ sequence, field: write.field, kind, value, where: originText(writer), place });
  }
  if (field !== undefined && field !== '' && entries.length === 0) fieldOf(node, field, origin());
  return entries.reverse();
}

/** A deep copy without any history. */
export function clearHistory<C extends AnyConfig>(config: C): C {
  const made = deepCopy(config);
  walk(made, {
    enter: (node) => {
      node.last = undefined;
    },
  });
  return made;
}
