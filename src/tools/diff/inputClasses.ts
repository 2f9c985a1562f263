/** @file The classes that an experiment's datasets are made of. */
import type { ConfigDocument, JsonValue } from './protocol.js';

/** Names of the classes of all datasets of an experiment's configs, with those of their parts. */
export function inputClassesOf({ root, configs }: ConfigDocument): string[] {
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
  const { datasets, decodeDatasets } = configs[(root as { $config: number }).$config]!.values;
  visit(datasets);
  visit(decodeDatasets);
  return [...new Set([...found].map((number) => configs[number]!.class.split('.').at(-1)!))];
}
