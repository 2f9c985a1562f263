/** @file Tags of a node's fields, and carriers: values with tags of their own inside arrays, records and other containers. */
import { type FieldInfo, isCarrierClass } from '../fields/fields.js';
import { sortTags } from '../fields/schema.js';
import type { Tag, TagChange, TagChanges } from '../types.js';
import type { Segment } from '../walking/paths.js';
import { type ConfigNode, nodeOf } from './configNode.js';
import { deeper, mapContainers, partsOf } from './containers.js';

/** The node of a carrier, which `tag.new()` makes; undefined for anything else. */
export function carrierOf(value: unknown): ConfigNode | undefined {
  const node = nodeOf(value);
  return node !== undefined && isCarrier(node) ? node : undefined;
}

export function isCarrier(node: ConfigNode): boolean {
  return isCarrierClass(node.info.cls);
}

/** The one field of a carrier. */
export function carriedField(carrier: ConfigNode): FieldInfo {
  return carrier.info.fields.get('value')!;
}

/** Whether a carrier has a value. */
export function hasCarried(carrier: ConfigNode): boolean {
  return 'value' in carrier.values;
}

/** The value of a carrier; undefined if unset. */
export function carriedBy(carrier: ConfigNode): unknown {
  return carrier.values.value;
}

/** The tags of a carrier, sorted by name. */
export function carrierTags(carrier: ConfigNode): readonly Tag[] {
  return tagsAfter(carriedField(carrier), carrier.tags?.get('value'));
}

/** A carrier without a value, and the steps to it. */
export interface UnsetCarrier {
  readonly carrier: ConfigNode;
  readonly steps: readonly Segment[];
}

/** Whether there is a carrier in the containers of `value`. */
export function holdsCarrier(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (nodeOf(value) !== undefined) return carrierOf(value) !== undefined;
  const next = deeper(depth);
  // Lists may be long, and nearly none holds a carrier: no pairs of step and part are made for them.
  if (Array.isArray(value)) {
    for (const part of value) if (holdsCarrier(part, next)) return true;
    return false;
  }
  return (partsOf(value) ?? []).some(([, part]) => holdsCarrier(part, next));
}

/** The carriers in the containers of `value`, those in a carrier before it. */
export function carriersIn(value: unknown, depth = 0): ConfigNode[] {
  if (typeof value !== 'object' || value === null) return [];
  const next = deeper(depth);
  const carrier = carrierOf(value);
  if (carrier !== undefined) return [...carriersIn(carriedBy(carrier), next), carrier];
  if (nodeOf(value) !== undefined) return [];
  return (partsOf(value) ?? []).flatMap(([, part]) => carriersIn(part, next));
}

/** `value` with the values of carriers in their places, undefined for those that have none. */
export function withoutCarriers(value: unknown, depth = 0): unknown {
  return holdsCarrier(value) ? mapCarried(value, deeper(depth)) : value;
}

function mapCarried(value: unknown, depth: number): unknown {
  return mapContainers(value, (leaf) => {
    const carrier = carrierOf(leaf);
    return carrier === undefined ? leaf : withoutCarriers(carriedBy(carrier), depth);
  });
}

/** The carriers in `value` that have no value. */
export function unsetCarriers(value: unknown, steps: readonly Segment[] = []): UnsetCarrier[] {
  if (typeof value !== 'object' || value === null) return [];
  deeper(steps.length);
  const carrier = carrierOf(value);
  if (carrier !== undefined)
    return hasCarried(carrier) ? unsetCarriers(carriedBy(carrier), steps) : [{ carrier, steps }];
  if (!holdsCarrier(value)) return [];
  return (partsOf(value) ?? []).flatMap(([segment, part]) => unsetCarriers(part, [...steps, segment]));
}

/** The part of a field that is read here. */
interface DeclaredTags {
  readonly name: string;
  readonly tags: readonly Tag[];
}

/** The tags of a field: declared, plus added, minus removed. */
export function tagsAfter(field: DeclaredTags, change: TagChange | undefined): readonly Tag[] {
  if (change === undefined) return field.tags;
  return sortTags([...field.tags.filter((tag) => !change.removed.includes(tag)), ...change.added]);
}

/** `changes` with those that make `wanted` the tags of the field. */
export function withFieldTags(
  changes: TagChanges | undefined,
  field: DeclaredTags,
  wanted: readonly Tag[],
): TagChanges | undefined {
  const added = wanted.filter((tag) => !field.tags.includes(tag));
  const removed = field.tags.filter((tag) => !wanted.includes(tag));
  const next = new Map(changes);
  if (added.length + removed.length === 0) next.delete(field.name);
  else next.set(field.name, { added, removed });
  return next.size === 0 ? undefined : next;
}

/** Whether two nodes of one class have the same tags. */
export function sameTags(a: TagChanges | undefined, b: TagChanges | undefined): boolean {
  if (a === b) return true;
  if (a?.size !== b?.size) return false;
  for (const [name, change] of a ?? []) {
    const other = b?.get(name);
    if (other === undefined) return false;
    if (!sameList(change.added, other.added) || !sameList(change.removed, other.removed)) return false;
  }
  return true;
}

function sameList(a: readonly Tag[], b: readonly Tag[]): boolean {
  return a.length === b.length && a.every((tag, i) => tag === b[i]);
}
