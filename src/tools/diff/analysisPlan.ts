/** @file Which models must be looked at to know what a change does to all: looking at one takes most of the time. */
import type { ConfigDocument, ConfigEntry, ExperimentDocument, JsonValue } from './protocol.js';

type Good = Extract<ExperimentDocument, { config: unknown }>;

/** Says what an experiment's model and its cost come from. */
export class ModelKeys {
  private readonly numbers = new Map<string, number>();

  /**
   * Equal for experiments whose models and training steps are the same: how long they train, how often they save and what
   * they evaluate on makes no difference. Without `sizes` also for those that differ in nothing but numbers.
   */
  keyOf({ config }: Good, sizes: boolean): string {
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
export function roughSize({ config }: Good): number {
  const texts = config.configs.map(({ values }) => JSON.stringify(Object.values(values)));
  let sum = 0;
  for (const text of texts)
    for (const [digits] of text.matchAll(/(?<!"\$config":)\b\d+\b/g)) sum += Math.log2(1 + Number(digits));
  return sum;
}
