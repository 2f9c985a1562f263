/** @file Values that differ by themselves: a version that is evaluated twice has others the second time. */
import type { ConfigEntry, JsonValue, MadeExperiment } from '../versions/protocol.js';

/** A value of both versions, each evaluated twice. */
export interface Twice<T> {
  readonly old: T;
  readonly oldAgain: T;
  readonly now: T;
  readonly nowAgain: T;
}

/** The commits that the versions are at, by which texts of git's revision differ. */
export interface Revisions {
  readonly old: string;
  readonly now: string;
}

/**
 * Why two versions differ in a value: by a change; by draws or the time; by the state of the process, equal where
 * that is; by the revision that git has checked out.
 */
type Cause = 'change' | 'chance' | 'state' | 'revision';

/** Something that differs by itself: a path, a constant, a part. */
export interface Varying {
  readonly what: string;
  readonly cause: Exclude<Cause, 'change'>;
}

/** The cause of a difference, of the texts of a value. */
export function causeOf({ old, oldAgain, now, nowAgain }: Twice<string>, revisions?: Revisions): Cause {
  if (oldAgain === nowAgain) return 'state';
  if (old !== oldAgain && now !== nowAgain) return 'chance';
  if (revisions === undefined) return 'change';
  const [before, after] = [withoutRevision(old, revisions.old), withoutRevision(now, revisions.now)];
  return before !== old && before === after ? 'revision' : 'change';
}

/** A text with the commit, as `git rev-parse` and `git describe` write it, left out. */
function withoutRevision(text: string, commit: string): string {
  return text.replace(/(?:-\d+-g|\b)([0-9a-f]{7,40})(?:-dirty)?\b/g, (found, revision: string) =>
    commit.startsWith(revision) ? '(revision)' : found,
  );
}

/** An experiment whose values that differ by themselves are those of the old version. */
export interface Settled {
  readonly now: MadeExperiment;
  readonly varying: readonly Varying[];
  /** Paths of values that only the new version has others of each time. */
  readonly begun: readonly string[];
}

const isRecord = (value: unknown): value is Readonly<Record<string, JsonValue>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const numberOf = (value: JsonValue | undefined): number | undefined =>
  isRecord(value) ? (value.$config as number | undefined) : undefined;

const sides = ['old', 'oldAgain', 'now', 'nowAgain'] as const;

/** The same of each side; undefined where one has none. */
function each<T, R>(
  values: Twice<T>,
  of: (value: T, side: (typeof sides)[number]) => R | undefined,
): Twice<R> | undefined {
  const found = sides.map((side) => of(values[side], side));
  if (found.includes(undefined)) return undefined;
  const [old, oldAgain, now, nowAgain] = found as [R, R, R, R];
  return { old, oldAgain, now, nowAgain };
}

/** Compares an experiment's documents value by value. Whole configs more or less are changes. */
class Settling {
  readonly varying: Varying[] = [];
  readonly begun: string[] = [];
  readonly configs: ConfigEntry[];
  private readonly visited = new Set<number>();

  constructor(
    private readonly documents: Twice<MadeExperiment>,
    private readonly revisions: Revisions,
  ) {
    this.configs = [...documents.now.config.configs];
  }

  /** The new version's value, or the old one's where the two differ by themselves. */
  value(values: Twice<JsonValue | undefined>, path: string): JsonValue | undefined {
    const refs = each(values, numberOf);
    if (refs !== undefined) {
      this.entry(refs, path);
      return values.now;
    }
    const lists = each(values, (value) => (Array.isArray(value) ? (value as JsonValue[]) : undefined));
    if (lists !== undefined && sides.every((side) => lists[side].length === lists.now.length))
      return lists.now.map((_, i) => this.value(each(lists, (list) => list[i])!, `${path}[${i}]`)!);
    const records = each(values, (value) => (isRecord(value) ? value : undefined));
    const keys = records && Object.keys(records.now);
    if (
      keys?.every((key) => !key.startsWith('$') && sides.every((side) => Object.hasOwn(records![side], key)))
    )
      return Object.fromEntries(
        keys.map((key) => [
          key,
          this.value(each(records!, (record) => record[key])!, path === '' ? key : `${path}.${key}`)!,
        ]),
      );
    return this.leaf(values, path);
  }

  private leaf(values: Twice<JsonValue | undefined>, path: string): JsonValue | undefined {
    const texts = each(values, (value) => (value === undefined ? undefined : JSON.stringify(value)));
    if (texts === undefined || sides.some((side) => texts[side].includes('"$config"'))) return values.now;
    if (texts.old === texts.now) return values.now;
    const cause = causeOf(texts, this.revisions);
    if (cause !== 'change') {
      this.varying.push({ what: path, cause });
      return values.old;
    }
    if (texts.now !== texts.nowAgain) this.begun.push(path);
    return values.now;
  }

  private entry(numbers: Twice<number>, path: string): void {
    if (this.visited.has(numbers.now)) return;
    this.visited.add(numbers.now);
    const entries = each(numbers, (number, side) => this.documents[side].config.configs[number])!;
    const values = Object.entries(entries.now.values).map(([name, value]) => {
      const inner = each(entries, (entry) => entry.values[name]);
      return [
        name,
        inner === undefined ? value : this.value(inner, path === '' ? name : `${path}.${name}`)!,
      ] as const;
    });
    this.configs[numbers.now] = { ...entries.now, values: Object.fromEntries(values) };
  }
}

/** An experiment's new version, settled by a second evaluation of both. */
export function settledExperiment(documents: Twice<MadeExperiment>, revisions: Revisions): Settled {
  const settling = new Settling(documents, revisions);
  const { now } = documents;
  settling.value(each(documents, ({ config }) => config.root)!, '');
  const constants = now.constants.map((constant) => {
    const of = each(
      documents,
      (document) => document.constants.find(({ name }) => name === constant.name)?.value,
    );
    return of === undefined ? constant : { ...constant, value: settling.value(of, constant.name)! };
  });
  const rates = each(documents, ({ learningRates }) => learningRates && JSON.stringify(learningRates));
  const areRatesSettled = rates !== undefined && rates.old !== rates.now && causeOf(rates) !== 'change';
  const config = { ...now.config, configs: settling.configs };
  return {
    now: {
      ...now,
      constants,
      config,
      ...(areRatesSettled && { learningRates: documents.old.learningRates! }),
    },
    varying: settling.varying,
    begun: settling.begun,
  };
}

/** Names of values and parts that differ by themselves. */
export const varyingText = (varying: readonly Varying[]): string => {
  const names = varying.map(({ what }) => what);
  return names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
};
