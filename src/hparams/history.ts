/** @file What was written to a config, by whom, in order. */
import { deepCopy } from './editing/copy.js';
import { ConfigError } from './errors.js';
import { type ConfigNode, fieldOf, originText, requireNode, type WriteKind } from './nodes/node.js';
import { origin } from './nodes/record.js';
import { type Place, placeOf } from './source.js';
import type { AnyConfig } from './types.js';
import { formatLink } from './walking/paths.js';
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

/** Bounds for a config that others start from. */
export interface BaselineStyle {
  /** From how many files values may come; 3 unless told otherwise. */
  readonly maxFiles?: number;
  /** How often a field may be written; twice unless told otherwise. */
  readonly maxWritesPerField?: number;
}

/**
 * Checks by its history that a config can be understood by reading few places, as one that others start from should be.
 * Writes by flags are in no file.
 *
 * @throws ConfigError that lists the files, and the fields that were written too often with their places.
 */
export function checkBaselineStyle(
  root: unknown,
  { maxFiles = 3, maxWritesPerField = 2 }: BaselineStyle = {},
): void {
  const files = new Set<string>();
  const problems: string[] = [];
  walk(root, {
    enter(node, path) {
      for (const [name, places] of writesByField(node, files)) {
        if (places.length <= maxWritesPerField) continue;
        const text = formatLink({ parent: path, segment: name });
        problems.push(
          `${text}: written ${places.length} times, at most ${maxWritesPerField} are fine: ${places.join(', ')}`,
        );
      }
    },
  });
  if (files.size > maxFiles) {
    const listed = [...files].sort().join(', ');
    problems.unshift(`values come from ${files.size} files, at most ${maxFiles} are fine: ${listed}`);
  }
  if (problems.length > 0) throw new ConfigError(`The config is hard to follow:\n  ${problems.join('\n  ')}`);
}

function writesByField(node: ConfigNode, files: Set<string>): Map<string, string[]> {
  const writes = new Map<string, string[]>();
  for (const { field, kind, place, where } of history(node.proxy)) {
    if (place !== undefined) files.add(place.file);
    if (kind === 'tags' || kind === 'class') continue;
    const places = writes.get(field);
    if (places === undefined) writes.set(field, [where ?? 'an unknown place']);
    else places.push(where ?? 'an unknown place');
  }
  return writes;
}
