/** @file Configs as plain data for a comparison of versions: defaults and places included. */
import * as hparams from '../../hparams/index.js';
import {
  type AnyConfig,
  classOf,
  copyWith,
  history,
  isConfig,
  isSet,
  type Segment,
  type State,
  showLong,
  toJSON,
  traverse,
} from '../../hparams/index.js';
import type { ClassDocument, ConfigDocument, ConfigEntry, JsonValue } from '../versions/protocol.js';

// Named imports are limited to exports of every version of the library: this file may run with an earlier one.
const { formerFieldsOf, formerNamesOf, lineageOf }: Partial<typeof hparams> = hparams;

/** The document of `root`. Values without a JSON form are text: `{$text: 'function relu'}`. */
export function configDocument(root: unknown): ConfigDocument {
  const entries: Omit<ConfigEntry, 'class' | 'kind'>[] = [];
  const configs: AnyConfig[] = [];
  const encoded = traverse<JsonValue>(
    root,
    (value, state) => {
      if (!isConfig(value)) return state.isTraversable ? encodeParts(value, state) : encodeLeaf(value);
      const entry = encodeConfig(value, state);
      configs.push(value);
      return { $config: entries.push(entry) - 1 };
    },
    { defaults: true },
  );
  const heads = headsOf(configs, entries);
  const classes = new Map<string, ClassDocument>();
  for (const [i, { class: name }] of heads.entries())
    if (!classes.has(name)) classes.set(name, classDocument(classOf(configs[i]!)));
  return {
    root: encoded,
    configs: entries.map((entry, i) => ({ ...heads[i]!, ...entry })),
    classes: Object.fromEntries(classes),
  };
}

function classDocument(cls: ReturnType<typeof classOf>): ClassDocument {
  return {
    lineage: lineageOf?.(cls) ?? [],
    formerNames: formerNamesOf?.(cls) ?? [],
    formerFields: { ...formerFieldsOf?.(cls) },
  };
}

/** The file that declares a class, if the library knows it. */
export function declaringFile(cls: Function): string | undefined {
  return lineageOf?.(cls)[0]?.file;
}

function encodeConfig(config: AnyConfig, state: State<JsonValue>): Omit<ConfigEntry, 'class' | 'kind'> {
  const values: [string, JsonValue][] = [];
  const defaults: string[] = [];
  const places: [string, string][] = [];
  for (const { segment, value } of state.children()) {
    const name = nameOf(segment);
    values.push([name, state.call(value, segment)]);
    if (!isSet(config, name as never)) defaults.push(name);
    else {
      const place = placeOf(config, name);
      if (place !== undefined) places.push([name, place]);
    }
  }
  return {
    values: Object.fromEntries(values),
    defaults,
    places: Object.fromEntries(places),
  };
}

function nameOf(segment: Segment): string {
  return typeof segment === 'object' ? segment.key : String(segment);
}

function placeOf(config: AnyConfig, name: string): string | undefined {
  return history(config, name).findLast(({ kind }) => kind !== 'tags')?.where;
}

/** The parts of an array, a record or another container. */
function encodeParts(value: unknown, state: State<JsonValue>): JsonValue {
  const parts = state
    .children()
    .map(({ segment, value: part }): [string, JsonValue] => [nameOf(segment), state.call(part, segment)]);
  if (Array.isArray(value)) return parts.map(([, part]) => part);
  return parts.some(([key]) => key.startsWith('$')) ? { $record: parts } : Object.fromEntries(parts);
}

/** A value without parts, as documents write it. */
export function encodeLeaf(value: unknown): JsonValue {
  try {
    return toJSON(value, { modules: false }).root;
  } catch {
    return { $text: showLong(value) };
  }
}

/** The classes and kinds of configs, as in documents. */
function headsOf(
  configs: readonly AnyConfig[],
  entries: readonly Omit<ConfigEntry, 'class' | 'kind'>[],
): Pick<ConfigEntry, 'class' | 'kind'>[] {
  // Without values, some of which may have no form.
  const shells = configs.map((config, i) => {
    const shell = copyWith(config, {});
    const { values, defaults } = entries[i]!;
    for (const name of Object.keys(values)) if (!defaults.includes(name)) delete shell[name as never];
    return shell;
  });
  const { root, configs: heads } = toJSON(shells, { modules: false });
  return (root as { $config: number }[]).map(({ $config }) => {
    const { class: name, kind } = heads[$config]!;
    return kind === undefined ? { class: name } : { class: name, kind };
  });
}
