/** @file Items of printed configs: values with their place, state and tags, and the names of classes. */
import type { z } from 'zod';
import { hasNamesake, qualifiedName } from '../fields/classNames.js';
import { showLong } from '../fields/describe.js';
import type { ClassInfo, FieldInfo } from '../fields/fields.js';
import { partSchema } from '../fields/schema.js';
import { carriedBy, carriedField, carrierOf, hasCarried } from '../nodes/carriers.js';
import { deeper, getOrMake, partsOf } from '../nodes/containers.js';
import { type ConfigNode, hasValue, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import type { AbstractClass } from '../types.js';
import { controls, escaped, type Segment } from '../walking/paths.js';
import { walk } from '../walking/walk.js';

/** A path as it is shown. */
export function pathText(path: string): string {
  return path === '' ? '<root>' : path;
}

/** The class of a config, with its kind unless that is an instance. */
export function kindText(node: ConfigNode, labels: ClassLabels): string {
  const name = labels.of(node.info);
  return node.kind === 'config' ? name : `${name} (${node.kind})`;
}

/** Whether the item is a field without a value that needs none. */
export function isOptional(item: Item): boolean {
  return item.state === 'default' && item.value === undefined;
}

/** A value without configs. */
export function leafText(item: Item): string {
  if (isOptional(item)) return '<not set, optional>';
  return item.state === 'unset' ? '<not set>' : oneLine(showLong(item.value));
}

/** The text with line breaks, other control characters and direction marks written as escapes. */
export function oneLine(text: string): string {
  return text.replace(controls, escaped);
}

/** Whether a value was written, fills in as a default, or is missing. */
type State = 'set' | 'default' | 'unset';

/** One value and where it is. */
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
  /**
   * How the tags of the field differ from those that its class declares, where the value is all that it holds, or the
   * tags of the part: `#Added`, `-#Removed`.
   */
  readonly tags: readonly string[];
  /** How many containers are around the value. */
  readonly nesting: number;
}

/** The item to begin with. */
export function rootItem(value: unknown): Item {
  return carried({
    segment: undefined,
    value,
    state: 'set',
    owner: undefined,
    field: undefined,
    whole: false,
    schema: undefined,
    tags: [],
    nesting: 0,
  });
}

/** The fields of the config in `item`; with `hideDefaults`, those that are not set are left out. */
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
      tags: tagTexts(node, field.name),
      nesting: 0,
    });
  }
  return items;
}

function tagTexts(node: ConfigNode, name: string): string[] {
  const change = node.tags?.get(name);
  return change === undefined ? [] : [...change.added.map(String), ...change.removed.map((tag) => `-${tag}`)];
}

function stateOf(node: ConfigNode, field: FieldInfo, parent: Item): State {
  if (!hasValue(node, field)) return 'unset';
  // A default config that is not edited is a default throughout, whatever its maker wrote to it.
  return parent.state !== 'default' && isExplicit(node, field.name) ? 'set' : 'default';
}

/** Whether the parts of the value are shown one by one: there is a config among them. */
export function isSplit(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return nodeOf(value) === undefined && partsOf(value) !== undefined && holdsConfig(value);
}

/** The parts of the container in `item`. */
export function partItems(item: Item): Item[] {
  const nesting = deeper(item.nesting);
  return partsOf(item.value)!.map(([segment, value]) =>
    carried({
      ...item,
      segment,
      value,
      whole: false,
      tags: [],
      schema: item.schema && partSchema(item.schema, typeof segment === 'object' ? segment.key : segment),
      nesting,
    }),
  );
}

/** The item of a carrier, with the carried value. */
function carried(item: Item): Item {
  const carrier = carrierOf(item.value);
  if (carrier === undefined) return item;
  return {
    ...item,
    value: carriedBy(carrier),
    state: hasCarried(carrier) ? item.state : 'unset',
    tags: tagTexts(carrier, carriedField(carrier).name),
    nesting: deeper(item.nesting),
  };
}

function holdsConfig(value: unknown): boolean {
  const seen = new Set<unknown>();
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (nodeOf(next) !== undefined) return true;
    if (seen.has(next)) continue;
    const parts = partsOf(next);
    if (parts === undefined) continue;
    seen.add(next);
    for (const [, part] of parts) open.push(part);
  }
  return false;
}

/** Labels of classes in a text. They depend on the classes in the text alone, not on others of the program. */
export class ClassLabels {
  private known: Map<string, Set<AbstractClass>> | undefined;

  /** `classes` gives those in the text; they are needed if one of them has a namesake in the program. */
  constructor(private readonly classes: () => Iterable<ClassInfo>) {}

  /** The labels of the configs in `roots`. */
  static in(...roots: readonly unknown[]): ClassLabels {
    return new ClassLabels(() => {
      const infos = new Set<ClassInfo>();
      for (const root of roots) walk(root, { enter: ({ info }) => infos.add(info) });
      return infos;
    });
  }

  of(info: ClassInfo): string {
    const { name, cls } = info;
    // A trimmed config has a name of its own.
    if (name !== cls.name || !hasNamesake(cls)) return name;
    if (this.known === undefined) {
      this.known = new Map();
      for (const each of this.classes()) this.note(each);
    }
    return this.note(info).size > 1 ? qualifiedName(cls) : name;
  }

  private note({ name, cls }: ClassInfo): Set<AbstractClass> {
    return getOrMake(this.known!, name, () => new Set<AbstractClass>()).add(cls);
  }
}
