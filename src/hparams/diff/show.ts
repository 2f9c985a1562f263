/** @file Values of diffs in words. */

import { showLong, showValue } from '../fields/describe.js';
import { partsOf } from '../nodes/containers.js';
import { nodeOf } from '../nodes/node.js';
import { formatLink } from '../walking/paths.js';
import { AddedPart, type Diff, type DiffValue, OldPart, type Path } from './types.js';

/** A value on one line: configs by their classes, those of the old structure also by their paths. */
export function showDiffValue(
  diff: Diff,
  value: DiffValue,
  pathText: (path: Path) => string = shortPath,
): string {
  if (value instanceof AddedPart) return `a new ${diff.added[value.index]?.info.name ?? 'config'}`;
  if (value instanceof OldPart) return `the config at ${pathText(value.path)}`;
  const node = nodeOf(value);
  if (node !== undefined) return showValue(value);
  if (!holdsParts(value)) return pathText === shortPath ? showValue(value) : showLong(value);
  const parts = (partsOf(value) ?? []).map(([segment, part]) => {
    const text = showDiffValue(diff, part, pathText);
    return typeof segment === 'object' ? `${segment.key}: ${text}` : text;
  });
  return Array.isArray(value) ? `[${parts.join(', ')}]` : `{${parts.join(', ')}}`;
}

/** Whether configs stand in a value of a diff. */
function holdsParts(value: DiffValue): boolean {
  if (value instanceof AddedPart || value instanceof OldPart || nodeOf(value) !== undefined) return true;
  return (partsOf(value) ?? []).some(([, part]) => holdsParts(part));
}

function shortPath(path: Path): string {
  return formatLink(path) || '<root>';
}
