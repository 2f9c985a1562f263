/** @file Checks of how a config was written: that it is plain data, and that one can read where it comes from. */

import { placeOfValue } from './buildErrors.js';
import { partsOf } from './containers.js';
import { showValue } from './describe.js';
import { toJSON } from './documents/json.js';
import { ConfigError } from './errors.js';
import { history } from './history.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from './node.js';
import { formatLink, type PathLink } from './paths.js';
import { walk } from './traverse.js';

/** @throws ConfigError that lists every value in `root` that has no JSON form, with its place. */
export function checkNoCustomObjects(root: unknown): void {
  const problems: string[] = [];
  walk(root, {
    enter(node, path) {
      for (const field of node.info.fields.values()) {
        if (!isExplicit(node, field.name)) continue;
        for (const [link, leaf] of leavesIn(rawValue(node, field), { parent: path, segment: field.name })) {
          if (hasJsonForm(leaf)) continue;
          const where = placeOfValue(node, field.name);
          problems.push(
            `${formatLink(link)}: ${showValue(leaf)}${where === undefined ? '' : ` (at ${where})`}`,
          );
        }
      }
    },
  });
  if (problems.length === 0) return;
  const what = problems.length === 1 ? 'A value has' : `${problems.length} values have`;
  const list = problems.join('\n  ');
  throw new ConfigError(`${what} no JSON form. Use configs, or plain values:\n  ${list}`);
}

/** The leaves of a field's value, with their places; configs are left to the walk. */
function leavesIn(value: unknown, path: PathLink): [PathLink, unknown][] {
  const leaves: [PathLink, unknown][] = [];
  const open: [PathLink, unknown][] = [[path, value]];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const [parent, part] = item;
    if (nodeOf(part) !== undefined) continue;
    const parts = partsOf(part);
    if (parts === undefined) leaves.push(item);
    else for (const [segment, inner] of parts.toReversed()) open.push([{ parent, segment }, inner]);
  }
  return leaves;
}

function hasJsonForm(leaf: unknown): boolean {
  if ((typeof leaf !== 'object' && typeof leaf !== 'function' && typeof leaf !== 'symbol') || leaf === null)
    return true;
  try {
    toJSON(leaf);
    return true;
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
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
