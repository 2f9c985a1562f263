/** @file Analysis of models in both versions, of as few as the change requires. */
import { isSameConfig } from './compare.js';
import { effectsOf, hasEffect } from './effects.js';
import {
  type AnalysisDocument,
  analysed,
  type ConfigDocument,
  type ConfigEntry,
  type ExperimentDocument,
  type JsonValue,
  type MadeExperiment,
  made,
} from './protocol.js';

/** The experiments of a version, and who analyses them. */
export interface Analysable {
  readonly documents: ReadonlyMap<string, ExperimentDocument>;
  readonly analyses: (names: readonly string[]) => Promise<ReadonlyMap<string, AnalysisDocument>>;
}

interface Analyses {
  readonly old: ReadonlyMap<string, AnalysisDocument>;
  readonly now: ReadonlyMap<string, AnalysisDocument>;
}

/**
 * Analyses the experiments whose configs changed, and new ones. Where the configs are the same but code changed that
 * `isTouched` says models may be made of, it looks at one of all that differ in sizes alone, the smallest; if that is not
 * as it was, at all of them.
 */
export async function analyseModels(
  names: readonly string[],
  old: Analysable,
  now: Analysable,
  isTouched: (name: string) => boolean,
): Promise<Analyses> {
  const [oldSide, newSide] = [new Side(old), new Side(now)];
  const look = (asked: readonly string[]) => Promise.all([oldSide.look(asked), newSide.look(asked)]);
  const changed: string[] = [];
  const touched: string[] = [];
  for (const name of names) {
    const [before, after] = [old.documents.get(name), now.documents.get(name)];
    if (after === undefined || 'error' in after) continue;
    if (before === undefined || !isSameConfig(before, after)) changed.push(name);
    else if (isTouched(name)) touched.push(name);
  }
  const groups = newSide.alike(touched);
  await look([...changed, ...groups.map(([smallest]) => smallest!)]);
  const differing = groups.filter(([smallest]) =>
    isDifferent(oldSide.found.get(smallest!), newSide.found.get(smallest!)),
  );
  await look(differing.flat());
  return { old: oldSide.found, now: newSide.found };
}

function isDifferent(old: AnalysisDocument | undefined, now: AnalysisDocument | undefined): boolean {
  if (old === undefined || now === undefined) return old !== now;
  const [before, after] = [analysed(old), analysed(now)];
  if (before && after) return hasEffect(effectsOf(before, after));
  return before !== after;
}

/** One version. Experiments with the same model are looked at once. */
class Side {
  readonly found = new Map<string, AnalysisDocument>();
  private readonly keys = new ModelKeys();
  private readonly byKey = new Map<string, AnalysisDocument>();

  constructor(private readonly version: Analysable) {}

  async look(names: readonly string[]): Promise<void> {
    const wanted = new Map<string, string>();
    const able = names.filter((name) => this.made(name) !== undefined);
    for (const name of able) {
      const key = this.keys.keyOf(this.made(name)!, true);
      if (!this.byKey.has(key) && !wanted.has(key)) wanted.set(key, name);
    }
    const answers = await this.version.analyses([...wanted.values()]);
    for (const [key, name] of wanted) this.byKey.set(key, answers.get(name)!);
    for (const name of able) this.found.set(name, this.byKey.get(this.keys.keyOf(this.made(name)!, true))!);
  }

  /** Groups of experiments whose models differ in sizes alone, the smallest first. */
  alike(names: readonly string[]): string[][] {
    const groups = new Map<string, [size: number, name: string][]>();
    for (const name of names) {
      const document = this.made(name)!;
      const key = this.keys.keyOf(document, false);
      const known = groups.get(key) ?? [];
      groups.set(key, known);
      known.push([roughSize(document), name]);
    }
    return [...groups.values()].map((group) => group.sort(([a], [b]) => a - b).map(([, name]) => name));
  }

  private made(name: string): MadeExperiment | undefined {
    return made(this.version.documents.get(name));
  }
}

/** Says what an experiment's model and its cost come from. */
class ModelKeys {
  private readonly numbers = new Map<string, number>();

  /**
   * Equal for experiments whose models and training steps are the same: how long they train, how often they save and what
   * they evaluate on makes no difference. Without `sizes` also for those that differ in nothing but numbers.
   */
  keyOf({ config }: MadeExperiment, sizes: boolean): string {
    const contents: number[] = [];
    for (const entry of config.configs) {
      const values = Object.entries(entry.values).flatMap(([name, value]) =>
        relevant(config, entry, name, value),
      );
      const text = JSON.stringify([entry.class, entry.kind, values], (_, value: unknown) => {
        if (isReference(value)) return `#${contents[value.$config]}`;
        return typeof value === 'number' && !sizes ? 0 : value;
      });
      contents.push(this.numberOf(text));
    }
    return `${contents.at(-1)}`;
  }

  private numberOf(text: string): number {
    let number = this.numbers.get(text);
    if (number === undefined) this.numbers.set(text, (number = this.numbers.size));
    return number;
  }
}

/** What of a field the model, or what a step of its training costs, may depend on. */
function relevant(
  { configs }: ConfigDocument,
  entry: ConfigEntry,
  name: string,
  value: JsonValue,
): [string, JsonValue][] {
  if (entry.class === 'Train') return name === 'learner' ? [[name, value]] : [];
  if (entry.class === 'SingleTask') return name === 'model' || name === 'train' ? [[name, value]] : [];
  if (entry.class !== 'Configs' || name === 'task' || !Array.isArray(value)) return [[name, value]];
  const training = value.filter(
    (dataset) => !isReference(dataset) || configs[dataset.$config]!.values.isTraining !== false,
  );
  return name === 'datasets' ? [[name, training]] : [];
}

function isReference(value: unknown): value is { $config: number } {
  return typeof value === 'object' && value !== null && '$config' in value;
}

/** How large a model is, roughly: the sum of the logarithms of all its numbers. */
function roughSize({ config }: MadeExperiment): number {
  const texts = config.configs.map(({ values }) => JSON.stringify(Object.values(values)));
  let sum = 0;
  for (const text of texts)
    for (const [digits] of text.matchAll(/(?<!"\$config":)\b\d+\b/g)) sum += Math.log2(1 + Number(digits));
  return sum;
}
