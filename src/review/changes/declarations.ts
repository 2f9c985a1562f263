/** @file Classes, fields and constants that only one of two versions declares. */
import type { DeclarationChange } from '../reports/diffReport.js';
import type { ExperimentPair, JsonValue, MadeExperiment } from '../versions/protocol.js';
import { showJson } from './display.js';

type Change = Omit<DeclarationChange, 'of' | 'experiments'>;

/** Changes of declarations, each once, with the classes and experiments in which it was seen. */
export class DeclarationChanges {
  private readonly known = new Map<string, { change: Change; of: Set<string>; experiments: Set<string> }>();

  /** One more place of a change: a field's or constant's class, and the experiment. */
  note(change: Change, of: string | undefined, ...experiments: readonly string[]): void {
    const key = JSON.stringify(change);
    const known = this.known.get(key) ?? { change, of: new Set(), experiments: new Set() };
    this.known.set(key, known);
    if (of !== undefined) known.of.add(of);
    for (const experiment of experiments) known.experiments.add(experiment);
  }

  get all(): DeclarationChange[] {
    return [...this.known.values()].map(({ change, of, experiments }) => {
      return { ...change, of: [...of].sort(), experiments: [...experiments].sort() };
    });
  }
}

/** A name's declaration in one version. */
interface Declared {
  readonly experiments: Set<string>;
  /** The part of the declaration that a rename keeps. */
  content: string;
  /** A field's value, if it is unset everywhere and all configs have the same; else undefined. */
  byDefault?: string | undefined;
}

type Names = Map<string, Declared>;

/**
 * Names that only one version has. Without an alias nothing tells a new name from a removal and an addition: where just one
 * name went and just one came with the same content, that it was renamed is a guess. Of the other fields those are told that
 * nobody sets: a diff of configs shows none of them. Of a name that classes of several files have, each has its own fields.
 */
export function changedDeclarations(
  pairs: readonly ExperimentPair[],
  showFile = (file: string): string => file,
): DeclarationChange[] {
  const changes = new DeclarationChanges();
  const compare = (what: DeclarationChange['what'], before: Names, after: Names, cls?: string): void => {
    const [gone, come] = [onlyIn(before, after), onlyIn(after, before)];
    const guessed = new Set<string>();
    for (const [old, now] of alike(gone, come)) {
      changes.note({ what, old, new: now, isGuess: true }, cls, ...before.get(old)!.experiments);
      guessed.add(old).add(now);
    }
    const sides = [
      ...gone.map((each) => ['old', each] as const),
      ...come.map((each) => ['new', each] as const),
    ];
    for (const [side, [name, { byDefault, experiments }]] of sides) {
      if (byDefault === undefined || guessed.has(name)) continue;
      changes.note(
        { what, [side]: name, value: showJson(JSON.parse(byDefault), 'a config') },
        cls,
        ...experiments,
      );
    }
  };
  const versions = [pairs.map((pair) => pair.old), pairs.map((pair) => pair.now)] as const;
  const shared = new Set(versions.flatMap(namesOfSeveral));
  const nameOf = (cls: string, experiment: MadeExperiment): string => {
    const file = shared.has(cls) ? fileOf(cls, experiment) : undefined;
    return file === undefined ? cls : `${cls} of ${showFile(file)}`;
  };
  const [old, now] = [declaredIn(versions[0], nameOf), declaredIn(versions[1], nameOf)];
  compare('class', old.classes, now.classes);
  for (const [cls, fields] of old.fields) {
    const others = now.fields.get(cls);
    if (others !== undefined) compare('field', fields, others, cls);
  }
  compare('constant', old.constants, now.constants);
  return changes.all;
}

function onlyIn(own: Names, others: Names): [string, Declared][] {
  return [...own].filter(([name]) => !others.has(name));
}

/** The pairs of names that have the same content, and no other name has. */
function alike(gone: readonly [string, Declared][], come: readonly [string, Declared][]): [string, string][] {
  return gone.flatMap(([old, { content }]): [string, string][] => {
    const isAlike = ([, other]: [string, Declared]) => content !== '' && other.content === content;
    const matches = come.filter(isAlike);
    return matches.length === 1 && gone.filter(isAlike).length === 1 ? [[old, matches[0]![0]]] : [];
  });
}

function fileOf(cls: string, { config: { classes } }: MadeExperiment): string | undefined {
  return Object.hasOwn(classes, cls) ? classes[cls]!.lineage[0]?.file : undefined;
}

/** Names that one experiment has for a class of one file, and another for a class of another file. */
function namesOfSeveral(documents: readonly MadeExperiment[]): string[] {
  const files = new Map<string, Set<string | undefined>>();
  for (const document of documents) {
    for (const cls of Object.keys(document.config.classes))
      files.set(cls, (files.get(cls) ?? new Set()).add(fileOf(cls, document)));
  }
  return [...files].flatMap(([name, own]) => (own.size > 1 ? [name] : []));
}

function declaredIn(
  documents: readonly MadeExperiment[],
  nameOf: (cls: string, experiment: MadeExperiment) => string,
) {
  const classes: Names = new Map();
  const fields = new Map<string, Names>();
  const constants: Names = new Map();
  for (const document of documents) {
    const { name: experiment, config, constants: own } = document;
    for (const { class: cls, values, defaults } of config.configs) {
      noted(classes, cls, experiment).content = Object.keys(values).sort().join(' ');
      const key = nameOf(cls, document);
      const known = fields.get(key) ?? new Map();
      fields.set(key, known);
      for (const [field, value] of Object.entries(values))
        noteField(known, field, value, defaults, experiment);
    }
    for (const { name, value, setBy } of own)
      noted(constants, name, experiment).content += `${experiment} ${setBy} ${JSON.stringify(value)}\n`;
  }
  return { classes, fields, constants };
}

function noteField(
  fields: Names,
  field: string,
  value: JsonValue,
  defaults: readonly string[],
  experiment: string,
): void {
  const isFirst = !fields.has(field);
  const known = noted(fields, field, experiment);
  // The number of a config has no meaning outside of its document.
  const text = JSON.stringify(value).replace(/\{"\$config":\d+\}/g, '{"$config":0}');
  const byDefault = defaults.includes(field) ? text : undefined;
  known.content += `${byDefault === undefined ? '' : 'default '}${text}\n`;
  if (isFirst) known.byDefault = byDefault;
  else if (known.byDefault !== byDefault) known.byDefault = undefined;
}

function noted(names: Names, name: string, experiment: string): Declared {
  const known = names.get(name) ?? { experiments: new Set(), content: '' };
  names.set(name, known);
  known.experiments.add(experiment);
  return known;
}
