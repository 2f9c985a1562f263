/** @file Files that declare the classes of which a part of an experiment's configs is made. */
import type { ConfigDocument, JsonValue } from '../versions/protocol.js';

/**
 * The files of the classes of all datasets, of the task's own programs, or of all configs, with those of their parts and base
 * classes; undefined if one is unknown.
 */
export function classFiles(
  part: 'input' | 'programs' | 'all',
  { root, configs, classes }: ConfigDocument,
): string[] | undefined {
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
  if (part === 'all') Object.values(valuesOf(root)).forEach(visit);
  else if (part === 'input') visit([datasets!, decodeDatasets!]);
  else visit(valuesOf(valuesOf(task).train).programs);
  const lineages = [...found].map((number) => classes[configs[number]!.class]?.lineage ?? []);
  if (lineages.some((lineage) => lineage.length === 0)) return undefined;
  return [...new Set(lineages.flat().map(({ file }) => file))];
}
