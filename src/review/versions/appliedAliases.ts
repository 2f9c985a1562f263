/** @file Present names in documents of the old version, by the aliases of the new one. */
import { DeclarationChanges } from '../changes/declarations.js';
import type { DeclarationChange } from '../reports/diffReport.js';
import type { ClassDocument, ConfigEntry, ExperimentPair, MadeExperiment } from './protocol.js';

/**
 * The pairs with the old versions as the new ones would read them, and the aliases that this took: those of `registerAlias`
 * for classes, of `renamed` for fields and constants.
 */
export function applyAliases(pairs: readonly ExperimentPair[]): {
  readonly pairs: readonly ExperimentPair[];
  readonly renames: readonly DeclarationChange[];
} {
  const renames = new DeclarationChanges();
  const read = pairs.map((pair) => ({ ...pair, old: readAs(pair, renames) }));
  return { pairs: read, renames: renames.all };
}

function readAs({ old, now }: ExperimentPair, renames: DeclarationChanges): MadeExperiment {
  const classes = new Map(Object.entries(now.config.classes));
  const present = new Map<string, string>();
  for (const [name, { formerNames }] of classes)
    for (const former of formerNames) if (!classes.has(former)) present.set(former, name);
  const nameOf = (cls: string) => present.get(cls) ?? cls;

  const readEntry = (entry: ConfigEntry): ConfigEntry => {
    const cls = nameOf(entry.class);
    if (cls !== entry.class) renames.note({ what: 'class', old: entry.class, new: cls }, undefined, now.name);
    const fields = new Map(Object.entries(classes.get(cls)?.formerFields ?? {}));
    const fieldOf = (field: string): string => {
      const name = fields.get(field);
      if (name !== undefined) renames.note({ what: 'field', old: field, new: name }, cls, now.name);
      return name ?? field;
    };
    return {
      ...entry,
      class: cls,
      values: withKeys(entry.values, fieldOf),
      defaults: entry.defaults.map(fieldOf),
      places: withKeys(entry.places, fieldOf),
    };
  };

  const constants = new Map(Object.entries(now.formerConstants));
  return {
    ...old,
    constants: old.constants.map((constant) => {
      const name = constants.get(constant.name);
      if (name === undefined) return constant;
      renames.note({ what: 'constant', old: constant.name, new: name }, constant.setBy, now.name);
      return { ...constant, name };
    }),
    config: {
      ...old.config,
      configs: old.config.configs.map(readEntry),
      classes: withKeys<ClassDocument>(old.config.classes, nameOf),
    },
  };
}

function withKeys<V>(record: Readonly<Record<string, V>>, to: (key: string) => string): Record<string, V> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [to(key), value]));
}
