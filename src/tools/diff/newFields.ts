/** @file Fields that only one version of a class has and that nobody sets. */

import type { DeclarationChange } from './diffReport.js';
import { decode, ShownValue, showParts } from './display.js';
import type { ConfigEntry, JsonValue } from './protocol.js';
import type { ExperimentPair } from './renames.js';

interface Seen {
  readonly what: 'old' | 'new';
  readonly name: string;
  readonly value: JsonValue;
  readonly classes: Set<string>;
  readonly experiments: Set<string>;
}

/**
 * The fields that a class has in one version alone, where every config shows their default: no value changed, but the code
 * did. Classes that have a field alike, from a base class say, are told together.
 */
export function newFields(pairs: readonly ExperimentPair[]): DeclarationChange[] {
  const olds = fieldsOf(pairs.map(({ old }) => old));
  const news = fieldsOf(pairs.map(({ now }) => now));
  const seen = new Map<string, Seen>();
  const note = (what: Seen['what'], own: Fields, others: Fields): void => {
    for (const [cls, fields] of own) {
      const other = others.get(cls);
      if (other === undefined) continue;
      for (const [name, { defaults, experiments }] of fields) {
        if (other.has(name) || defaults.size !== 1 || defaults.has('')) continue;
        const [text] = defaults;
        const key = `${what} ${name} ${text}`;
        const known = seen.get(key) ?? {
          ...{ what, name, value: JSON.parse(text!) as JsonValue },
          classes: new Set(),
          experiments: new Set(),
        };
        seen.set(key, known);
        known.classes.add(cls);
        for (const each of experiments) known.experiments.add(each);
      }
    }
  };
  note('old', olds, news);
  note('new', news, olds);
  return [...seen.values()].map(({ what, name, value, classes, experiments }) => ({
    what: 'field',
    of: [...classes].sort(),
    [what]: name,
    value: showParts(
      decode(value, () => ShownValue.of('a config')),
      () => 'a config',
    ),
    experiments: [...experiments].sort(),
  }));
}

/** By class and field. */
type Fields = Map<string, Map<string, { defaults: Set<string>; experiments: Set<string> }>>;

function fieldsOf(documents: readonly ExperimentPair['old'][]): Fields {
  const fields: Fields = new Map();
  for (const { name, config } of documents)
    for (const entry of config.configs) noteEntry(fields, entry, name);
  return fields;
}

function noteEntry(fields: Fields, entry: ConfigEntry, experiment: string): void {
  let own = fields.get(entry.class);
  if (own === undefined) fields.set(entry.class, (own = new Map()));
  for (const [field, value] of Object.entries(entry.values)) {
    let known = own.get(field);
    if (known === undefined) own.set(field, (known = { defaults: new Set(), experiments: new Set() }));
    // A number of a config says nothing beyond its document.
    const text = JSON.stringify(value).replace(/\{"\$config":\d+\}/g, '{"$config":0}');
    known.defaults.add(entry.defaults.includes(field) ? text : '');
    known.experiments.add(experiment);
  }
}
