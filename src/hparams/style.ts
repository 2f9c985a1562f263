/** @file Checks of how a config was written: that one can read where it comes from. */

import { ConfigError } from './errors.js';
import { history } from './history.js';
import type { ConfigNode } from './nodes/node.js';
import { formatLink } from './walking/paths.js';
import { walk } from './walking/traverse.js';

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
