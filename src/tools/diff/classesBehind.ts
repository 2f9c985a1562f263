/** @file The classes that a part of an experiment's configs is made of. */
import type { ConfigDocument, JsonValue } from './protocol.js';

/** Names of the classes of all datasets, or of the task's own programs, with those of their parts. */
export function classesBehind(part: 'input' | 'programs', { root, configs }: ConfigDocument): string[] {
  const found = new Set<number>();
  const visit = (value: JsonValue | undefined): void => {
    if (typeof value !== 'object' || value === null) return;
    const number = (value as { $config?: number }).$config;
    if (number === undefined) Object.values(value).forEach(visit);
    else if (!found.has(number)) {
      found.add(number);
      Object.values(configs[number]!.values).forEach(visit);
    }
  };
  const valuesOf = (config: JsonValue | undefined) =>
    configs[(config as { $config: number }).$config]!.values;
  const { task, datasets, decodeDatasets } = valuesOf(root);
  if (part === 'input') visit([datasets!, decodeDatasets!]);
  else visit(valuesOf(valuesOf(task).train).programs);
  return [...new Set([...found].map((number) => configs[number]!.class.split('.').at(-1)!))];
}
