/** @file How two configs differ, for the messages of tests. */

import { showLong } from '../fields/describe.js';
import { append, partsOf } from '../nodes/containers.js';
import { type ConfigNode, fieldTags, hasValue, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { leavesMatch } from '../walking/equal.js';
import { formatLink, formatSegment } from '../walking/paths.js';
import { isTouched } from './structure.js';
import type { Path } from './types.js';

/**
 * Everything in which two configs (or containers of configs) are not the same, as sorted lines; an empty list where
 * there is nothing. It is stricter than `isEqual`: a value that was set is told from an equal default, and tags count.
 * What is below a difference of classes is left out.
 */
export function describeDifferences(left: unknown, right: unknown): string[] {
  return new Describer().run(left, right);
}

interface Pair {
  readonly a: unknown;
  readonly b: unknown;
  readonly path: Path;
}

class Describer {
  private readonly lines: string[] = [];
  private readonly partners = new Map<ConfigNode, { readonly node: ConfigNode; readonly path: Path }>();
  private readonly partnersOfRight = new Map<
    ConfigNode,
    { readonly node: ConfigNode; readonly path: Path }
  >();
  private readonly open: Pair[] = [];

  run(left: unknown, right: unknown): string[] {
    this.open.push({ a: left, b: right, path: undefined });
    for (let pair = this.open.pop(); pair !== undefined; pair = this.open.pop()) this.compare(pair);
    return this.lines.sort();
  }

  private add(path: Path, text: string): void {
    this.lines.push(`${formatLink(path) || '<root>'}: ${text}`);
  }

  private compare({ a, b, path }: Pair): void {
    const one = nodeOf(a);
    const other = nodeOf(b);
    if (one !== undefined && other !== undefined) this.compareConfigs(one, other, path);
    else if (one !== undefined || other !== undefined) this.add(path, `${show(a)} ≠ ${show(b)}`);
    else this.compareValues(a, b, path);
  }

  private compareConfigs(a: ConfigNode, b: ConfigNode, path: Path): void {
    const known = this.partners.get(a);
    const knownOfRight = this.partnersOfRight.get(b);
    if (known !== undefined || knownOfRight !== undefined) {
      if (known?.node === b) return;
      const place = (where: Path): string => `the same config as ${formatLink(where) || 'the root'}`;
      const [one, other] = [
        known ? place(known.path) : 'not shared',
        knownOfRight ? place(knownOfRight.path) : 'not shared',
      ];
      this.add(path, `sharing: ${one} ≠ ${other}`);
      return;
    }
    this.partners.set(a, { node: b, path });
    this.partnersOfRight.set(b, { node: a, path });
    if (a.info !== b.info || a.kind !== b.kind) {
      this.add(path, `${show(a.proxy)} ≠ ${show(b.proxy)}`);
      return;
    }
    const pairs: Pair[] = [];
    for (const field of a.info.fields.values()) {
      const at: Path = { parent: path, segment: field.name };
      const [tags, others] = [fieldTags(a, field).join(' '), fieldTags(b, field).join(' ')];
      if (tags !== others) this.add(at, `tags: ${tags || 'none'} ≠ ${others || 'none'}`);
      if (!hasValue(a, field) || !hasValue(b, field)) {
        if (hasValue(a, field)) this.add(at, `${show(rawValue(a, field))} ≠ <not set>`);
        if (hasValue(b, field)) this.add(at, `<not set> ≠ ${show(rawValue(b, field))}`);
        continue;
      }
      const [set, otherSet] = [isExplicit(a, field.name), isExplicit(b, field.name)];
      if (!set && !otherSet && !isTouched(a, field.name) && !isTouched(b, field.name)) continue;
      const [va, vb] = [rawValue(a, field), rawValue(b, field)];
      const before = this.lines.length;
      if (nodeOf(va) === undefined && nodeOf(vb) === undefined && set !== otherSet) {
        const suffix = (explicit: boolean): string => (explicit ? '' : ' (default)');
        this.add(at, `${show(va)}${suffix(set)} ≠ ${show(vb)}${suffix(otherSet)}`);
      } else if (set !== otherSet && nodeOf(va)?.info === nodeOf(vb)?.info) {
        this.add(at, `${set ? 'set' : 'default'} ≠ ${otherSet ? 'set' : 'default'}`);
      }
      if (before === this.lines.length || nodeOf(va) !== undefined) pairs.push({ a: va, b: vb, path: at });
    }
    append(this.open, pairs.reverse());
  }

  private compareValues(a: unknown, b: unknown, path: Path): void {
    const ones = partsOf(a);
    const others = partsOf(b);
    if (ones === undefined || others === undefined || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) {
      if (ones !== others || !leavesMatch(a, b)) this.add(path, `${show(a)} ≠ ${show(b)}`);
      return;
    }
    const named = new Map(others.map(([segment, part]) => [formatSegment(segment, true), part]));
    for (const [segment, part] of ones) {
      const name = formatSegment(segment, true);
      const at: Path = { parent: path, segment };
      if (!named.has(name)) this.add(at, `${show(part)} ≠ <missing>`);
      else this.open.push({ a: part, b: named.get(name), path: at });
      named.delete(name);
    }
    for (const [segment, part] of others) {
      if (named.has(formatSegment(segment, true)))
        this.add({ parent: path, segment }, `<missing> ≠ ${show(part)}`);
    }
  }
}

function show(value: unknown): string {
  const node = nodeOf(value);
  return node === undefined ? showLong(value) : `${node.info.name} ${node.kind}`;
}
