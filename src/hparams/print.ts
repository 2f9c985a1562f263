/** @file Configs as text: one `path : value` a line, as in Pax's model_params.txt. */
import { isContainer } from './containers.js';
import { showLong } from './describe.js';
import { type ConfigNode, hasValue, nodeOf, rawValue } from './node.js';
import { formatSegment, type Segment } from './paths.js';

// Written out in full, the paths of a long chain would take space that grows with the square of its length.
const deepestPath = 64;

/** Something still to be printed, and the text and length of the path to it. */
interface Item {
  readonly value: unknown;
  readonly path: string;
  readonly depth: number;
  /** A line that needs no look at the value. */
  readonly line?: string;
}

/**
 * Every field of `root` with its value, defaults filled in, as lines `path : value`. A sub-config's line gives its
 * class; a config that stands in several places is printed at the first, `same as` it at the others. Paths of more
 * than 64 steps begin anew from a label: `@1 : path`.
 */
export function print(root: unknown): string {
  const lines: string[] = [];
  const printed = new Map<ConfigNode, string>();
  let labels = 0;
  const open: Item[] = [{ value: root, path: '', depth: 0 }];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { value, path } = item;
    const node = nodeOf(value);
    if (item.line !== undefined) lines.push(item.line);
    else if (node === undefined) printValue(item, lines, open);
    else if (printed.has(node)) lines.push(`${path} : same as ${printed.get(node)}`);
    else {
      let { depth } = item;
      let prefix = path;
      if (depth >= deepestPath) {
        depth = 0;
        prefix = `@${++labels}`;
        lines.push(`${prefix} : ${path}`);
      }
      printed.set(node, prefix || '<root>');
      const kind = node.kind === 'config' ? '' : ` (${node.kind})`;
      lines.push(`${prefix || '<root>'} : ${node.info.name}${kind}`);
      open.push(...fieldItems(node, prefix, depth).reverse());
    }
  }
  return lines.join('\n');
}

function fieldItems(node: ConfigNode, prefix: string, depth: number): Item[] {
  return [...node.info.fields.values()].map((field) => {
    const path = prefix + formatSegment(field.name, prefix === '');
    if (!hasValue(node, field)) return { value: undefined, path, depth, line: `${path} : <not set>` };
    return { value: rawValue(node, field), path, depth: depth + 1 };
  });
}

function printValue(item: Item, lines: string[], open: Item[]): void {
  const { value, path, depth } = item;
  if (!isContainer(value) || !holdsConfig(value)) {
    lines.push(`${path || '<root>'} : ${showLong(value)}`);
    return;
  }
  const entries: [Segment, unknown][] = Array.isArray(value)
    ? value.map((part, i) => [i, part])
    : Object.entries(value).map(([key, part]) => [{ key }, part]);
  const parts = entries.map(([segment, part]) => ({
    value: part,
    path: path + formatSegment(segment, path === ''),
    depth: depth + 1,
  }));
  open.push(...parts.reverse());
}

function holdsConfig(value: unknown): boolean {
  if (!isContainer(value)) return nodeOf(value) !== undefined;
  return (Array.isArray(value) ? value : Object.values(value)).some(holdsConfig);
}
