/** @file What stands in a config or container, part by part: the step that every printed form repeats. */
import type { z } from 'zod';
import { isContainer } from '../containers.js';
import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields.js';
import { type ConfigNode, hasValue, isExplicit, nodeOf, rawValue } from '../node.js';
import type { Segment } from '../paths.js';
import { partSchema } from '../schema.js';

/** Whether a value was written, fills in as a default, or is missing. */
type State = 'set' | 'default' | 'unset';

/** One value and where it stands. */
export interface Item {
  /** The step that leads here; undefined for the root. */
  readonly segment: Segment | undefined;
  readonly value: unknown;
  readonly state: State;
  /** The config and field that hold the value; the same for all parts of a field's container. */
  readonly owner: ConfigNode | undefined;
  readonly field: FieldInfo | undefined;
  /** Whether the value is all that the field holds, not a part of it. */
  readonly whole: boolean;
  readonly schema: z.ZodType | undefined;
  /** How many containers are around the value. */
  readonly nesting: number;
}

/** The item to begin with. */
export function rootItem(value: unknown): Item {
  return {
    segment: undefined,
    value,
    state: 'set',
    owner: undefined,
    field: undefined,
    whole: false,
    schema: undefined,
    nesting: 0,
  };
}

/** The fields of the config that stands in `item`; with `hideDefaults`, those that nobody set are left out. */
export function fieldItems(node: ConfigNode, item: Item, hideDefaults: boolean): Item[] {
  const items: Item[] = [];
  for (const field of node.info.fields.values()) {
    const state = stateOf(node, field, item);
    if (state === 'default' && hideDefaults) continue;
    items.push({
      segment: field.name,
      value: state === 'unset' ? undefined : rawValue(node, field),
      state,
      owner: node,
      field,
      whole: true,
      schema: field.check,
      nesting: 0,
    });
  }
  return items;
}

function stateOf(node: ConfigNode, field: FieldInfo, around: Item): State {
  if (!hasValue(node, field)) return 'unset';
  // A default config that nobody edited is a default throughout, whatever its maker wrote to it.
  return around.state !== 'default' && isExplicit(node, field.name) ? 'set' : 'default';
}

// As deep as configs let containers nest.
const deepest = 200;

/** The parts of the container that stands in `item`. */
export function partItems(item: Item): Item[] {
  if (item.nesting > deepest) {
    throw new ConfigError(`A value is nested more than ${deepest} levels deep, or contains itself.`);
  }
  return partsOf(item.value).map(([segment, value]) => ({
    ...item,
    segment,
    value,
    whole: false,
    schema: item.schema && partSchema(item.schema, typeof segment === 'object' ? segment.key : segment),
    nesting: item.nesting + 1,
  }));
}

function partsOf(value: unknown): [Segment, unknown][] {
  if (Array.isArray(value)) return value.map((part, i) => [i, part]);
  return isContainer(value) ? Object.entries(value).map(([key, part]) => [{ key }, part]) : [];
}

/** Whether there is a config anywhere in the containers of `value`: if not, a line shows it whole. */
export function holdsConfig(value: unknown): boolean {
  const seen = new Set<unknown>();
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (nodeOf(next) !== undefined) return true;
    if (!isContainer(next) || seen.has(next)) continue;
    seen.add(next);
    for (const [, part] of partsOf(next)) open.push(part);
  }
  return false;
}
