/** @file Renamed classes, fields and constants between two versions. */
import { nearest } from '../../hparams/index.js';
import { AlignedEntries, type DocumentPair } from './alignedEntries.js';
import type { DeclarationChange } from './diffReport.js';
import type { ConfigEntry, ConstantEntry, ExperimentDocument } from './protocol.js';

/** Both versions of an experiment that has configs in both. */
export interface ExperimentPair {
  readonly old: Extract<ExperimentDocument, { config: unknown }>;
  readonly now: Extract<ExperimentDocument, { config: unknown }>;
}

/** What `findRenames` gives. */
export interface Renamed {
  /** The old versions with the new names, in the order in which they were given. */
  readonly old: readonly ExperimentPair['old'][];
  readonly renames: readonly DeclarationChange[];
}

// A class and one of its fields may change at once, or a field and one inside of what it holds.
const mostRounds = 4;

/**
 * The names that changed between two versions of experiments, and the old versions with the new names: a class that only
 * the old version has is the one that only the new version has where it stands in all the same places, with fields of the
 * same names; a field, or a constant, is the one that has its value everywhere, if just one does.
 */
export function findRenames(pairs: readonly ExperimentPair[]): Renamed {
  const renames = new Map<string, DeclarationChange & { experiments: string[] }>();
  let olds = pairs.map(({ old }) => old);
  const note = (
    what: DeclarationChange['what'],
    of: string[],
    old: string,
    now: string,
    names: string[],
  ): void => {
    const key = `${what} ${old} ${now}`;
    const known = renames.get(key);
    const experiments = [...new Set([...(known?.experiments ?? []), ...names])];
    renames.set(key, {
      what,
      of: [...new Set([...(known?.of ?? []), ...of])].sort(),
      old,
      new: now,
      experiments,
    });
  };
  for (let round = 0; round < mostRounds; round += 1) {
    const documents = olds.map((old, i): DocumentPair => {
      const { name, config } = pairs[i]!.now;
      return { name, old: old.config, now: config };
    });
    const aligned = new AlignedEntries(documents);
    const classes = classRenames(aligned, documents);
    const fields = fieldRenames(aligned);
    if (classes.size + fields.length === 0) break;
    for (const [old, now] of classes) note('class', [], old, now, aligned.experimentsWith(old));
    for (const { cls, old, now } of fields) note('field', [cls], old, now, aligned.experimentsWith(cls));
    const rename = renamer(classes, fields);
    olds = olds.map((old) => ({
      ...old,
      config: { ...old.config, configs: old.config.configs.map(rename) },
    }));
  }
  for (const { old, now, of, names } of constantRenames(olds, pairs)) {
    note('constant', of, old, now, names);
    olds = olds.map((each) => {
      if (!names.includes(each.name)) return each;
      return {
        ...each,
        constants: each.constants.map((one) => (one.name === old ? { ...one, name: now } : one)),
      };
    });
  }
  return { old: olds, renames: [...renames.values()] };
}

/** Pairs of names that only one side has, where each has just one counterpart. */
function unique(
  olds: readonly string[],
  news: readonly string[],
  fits: (old: string, now: string) => boolean,
) {
  const candidates = olds.map((old) => [old, news.filter((now) => fits(old, now))] as const);
  return candidates.flatMap(([old, found]): [string, string][] => {
    const similar = found.length > 1 ? [nearest(old, found)].filter((name) => name !== undefined) : found;
    const [now] = similar;
    if (now === undefined) return [];
    const rivals = candidates.filter(([other, its]) => other !== old && its.includes(now));
    const isBest = rivals.length === 0 || nearest(now, [old, ...rivals.map(([other]) => other)]) === old;
    return isBest ? [[old, now]] : [];
  });
}

function classRenames(aligned: AlignedEntries, documents: readonly DocumentPair[]): Map<string, string> {
  const olds = classesOf(documents.map(({ old }) => old.configs));
  const news = classesOf(documents.map(({ now }) => now.configs));
  const gone = [...olds.keys()].filter((name) => !news.has(name));
  const come = [...news.keys()].filter((name) => !olds.has(name));
  return new Map(
    unique(gone, come, (old, now) => {
      const [before, after] = [olds.get(old)!, news.get(now)!];
      const shared = [...before].filter((field) => after.has(field)).length;
      return aligned.alwaysBecomes(old, now) && 2 * shared >= Math.max(before.size, after.size);
    }),
  );
}

function classesOf(documents: readonly (readonly ConfigEntry[])[]): Map<string, Set<string>> {
  const classes = new Map<string, Set<string>>();
  for (const entry of documents.flat()) {
    const fields = classes.get(entry.class) ?? new Set();
    classes.set(entry.class, fields);
    for (const field of Object.keys(entry.values)) fields.add(field);
  }
  return classes;
}

interface FieldRename {
  readonly cls: string;
  readonly old: string;
  readonly now: string;
}

function fieldRenames(aligned: AlignedEntries): FieldRename[] {
  return [...aligned.byClass].flatMap(([cls, pairs]) => {
    const olds = new Set(pairs.flatMap(({ old }) => Object.keys(old.values)));
    const news = new Set(pairs.flatMap(({ now }) => Object.keys(now.values)));
    const gone = [...olds].filter((name) => !news.has(name));
    const come = [...news].filter((name) => !olds.has(name));
    if (gone.length === 0 || come.length === 0) return [];
    const fits = (old: string, now: string): boolean => {
      // That two defaults are alike may be chance.
      const isTelling = pairs.some((pair) => old in pair.old.values && !pair.old.defaults.includes(old));
      if (!isTelling && nearest(old, [now]) === undefined) return false;
      return pairs.every((pair) => aligned.hasSame(pair, old, now));
    };
    return unique(gone, come, fits).map(([old, now]) => ({ cls, old, now }));
  });
}

function renamer(classes: ReadonlyMap<string, string>, fields: readonly FieldRename[]) {
  const byClass = new Map<string, Map<string, string>>();
  for (const { cls, old, now } of fields) byClass.set(cls, (byClass.get(cls) ?? new Map()).set(old, now));
  return (entry: ConfigEntry): ConfigEntry => {
    const names = byClass.get(entry.class);
    const to = (name: string): string => names?.get(name) ?? name;
    const keys = <V>(record: Readonly<Record<string, V>>) =>
      Object.fromEntries(Object.entries(record).map(([name, value]) => [to(name), value]));
    return {
      ...entry,
      class: classes.get(entry.class) ?? entry.class,
      values: keys(entry.values),
      defaults: entry.defaults.map(to),
      places: keys(entry.places),
    };
  };
}

/** Constants that only one version has, with the same value in all experiments. */
function constantRenames(olds: readonly ExperimentPair['old'][], pairs: readonly ExperimentPair[]) {
  const names = (side: readonly ExperimentPair['old'][]): Set<string> =>
    new Set(side.flatMap(({ constants }) => constants.map(({ name }) => name)));
  const [before, after] = [names(olds), names(pairs.map(({ now }) => now))];
  const gone = [...before].filter((name) => !after.has(name));
  const come = [...after].filter((name) => !before.has(name));
  const find = (constants: readonly ConstantEntry[], name: string) =>
    constants.find((one) => one.name === name);
  const both = (old: string, now: string) =>
    olds.map((each, i) => [find(each.constants, old), find(pairs[i]!.now.constants, now)] as const);
  const fits = (old: string, now: string): boolean =>
    both(old, now).every(
      ([a, b]) =>
        (a === undefined) === (b === undefined) &&
        a?.setBy === b?.setBy &&
        JSON.stringify(a?.value) === JSON.stringify(b?.value),
    );
  return unique(gone, come, fits).map(([old, now]) => {
    const having = both(old, now).flatMap(([a], i) =>
      a === undefined ? [] : [{ by: a.setBy, name: olds[i]!.name }],
    );
    return { old, now, of: [...new Set(having.map(({ by }) => by))], names: having.map(({ name }) => name) };
  });
}
