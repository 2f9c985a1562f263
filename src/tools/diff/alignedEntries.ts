/** @file Configs of two versions, aligned by their places. */
import type { ConfigDocument, ConfigEntry, JsonValue } from './protocol.js';

/** Both versions of an experiment's configs. */
export interface DocumentPair {
  readonly name: string;
  readonly old: ConfigDocument;
  readonly now: ConfigDocument;
}

/** Two configs that stand at the same place. */
export interface EntryPair {
  readonly old: ConfigEntry;
  readonly now: ConfigEntry;
  /** The numbers of the contents of their fields. */
  readonly oldContents: ReadonlyMap<string, number>;
  readonly newContents: ReadonlyMap<string, number>;
}

/** The configs at the same places of two versions of several experiments. */
export class AlignedEntries {
  /** Those of the same class in both. */
  readonly byClass = new Map<string, EntryPair[]>();
  private readonly becomes = new Map<string, Set<string>>();
  private readonly comesFrom = new Map<string, Set<string>>();
  private readonly experiments = new Map<string, Set<string>>();
  private readonly numbers = new Map<string, number>();

  constructor(documents: readonly DocumentPair[]) {
    for (const document of documents) this.add(document);
  }

  /** Whether every config of the class `old` has become one of `now`, and no other has. */
  alwaysBecomes(old: string, now: string): boolean {
    const isOnly = (names: Set<string> | undefined, name: string) => names?.size === 1 && names.has(name);
    return isOnly(this.becomes.get(old), now) && isOnly(this.comesFrom.get(now), old);
  }

  /** The experiments with configs of a class. */
  experimentsWith(cls: string): string[] {
    return [...(this.experiments.get(cls) ?? [])];
  }

  /** Whether a field of the old config holds what another field of the new one holds, and was set if that was. */
  hasSame({ old, now, oldContents, newContents }: EntryPair, before: string, after: string): boolean {
    const isDefault = old.defaults.includes(before) === now.defaults.includes(after);
    return isDefault && oldContents.get(before) === newContents.get(after);
  }

  private add({ name, old, now }: DocumentPair): void {
    const [olds, news] = [this.contentsOf(old), this.contentsOf(now)];
    const seen = new Set<string>();
    const open: [JsonValue, JsonValue][] = [[old.root, now.root]];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [a, b] = next;
      const [i, j] = [configNumber(a), configNumber(b)];
      if (i === undefined || j === undefined) {
        if (i === undefined && j === undefined) open.push(...partPairs(a, b));
        continue;
      }
      if (seen.has(`${i} ${j}`)) continue;
      seen.add(`${i} ${j}`);
      const [before, after] = [old.configs[i]!, now.configs[j]!];
      this.note(name, before, after, olds[i]!, news[j]!);
      for (const field of Object.keys(before.values))
        if (field in after.values) open.push([before.values[field]!, after.values[field]!]);
    }
  }

  private note(
    name: string,
    old: ConfigEntry,
    now: ConfigEntry,
    oldContents: ReadonlyMap<string, number>,
    newContents: ReadonlyMap<string, number>,
  ): void {
    put(this.becomes, old.class, now.class);
    put(this.comesFrom, now.class, old.class);
    put(this.experiments, old.class, name);
    if (old.class !== now.class) return;
    const pair: EntryPair = { old, now, oldContents, newContents };
    const known = this.byClass.get(old.class);
    if (known === undefined) this.byClass.set(old.class, [pair]);
    else known.push(pair);
  }

  /** For each config the contents of its fields as numbers, equal where the contents are. */
  private contentsOf({ configs }: ConfigDocument): ReadonlyMap<string, number>[] {
    const whole: number[] = [];
    return configs.map((entry) => {
      const fields = new Map<string, number>();
      for (const [field, value] of Object.entries(entry.values)) {
        const text = JSON.stringify(value).replace(
          /\{"\$config":(\d+)\}/g,
          (_, i: string) => `#${whole[Number(i)]}`,
        );
        fields.set(field, this.intern(text));
      }
      const sorted = [...fields].sort(([a], [b]) => (a < b ? -1 : 1)).join(' ');
      whole.push(this.intern(`${entry.class} ${entry.kind ?? ''} ${sorted}`));
      return fields;
    });
  }

  private intern(text: string): number {
    let number = this.numbers.get(text);
    if (number === undefined) this.numbers.set(text, (number = this.numbers.size));
    return number;
  }
}

function put(map: Map<string, Set<string>>, key: string, value: string): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, new Set([value]));
  else known.add(value);
}

function configNumber(value: JsonValue): number | undefined {
  const number = isRecord(value) ? value.$config : undefined;
  return typeof number === 'number' ? number : undefined;
}

function isRecord(value: JsonValue): value is Record<string, JsonValue> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function partPairs(a: JsonValue, b: JsonValue): [JsonValue, JsonValue][] {
  if (Array.isArray(a) && Array.isArray(b))
    return a.slice(0, b.length).map((part, i): [JsonValue, JsonValue] => [part, b[i]!]);
  if (!isRecord(a) || !isRecord(b)) return [];
  return Object.keys(a).flatMap((key): [JsonValue, JsonValue][] =>
    Object.hasOwn(b, key) ? [[a[key]!, b[key]!]] : [],
  );
}
