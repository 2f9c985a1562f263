/** @file A line of metrics.jsonl: JSON, with non-finite numbers beside the fields that they belong to. */

/** Fields of a line: numbers and texts, and tables as objects. */
export type MetricsLine = Readonly<Record<string, number | string | boolean | null | object>>;

const nonFiniteNames: ReadonlySet<unknown> = new Set(['NaN', 'Infinity', '-Infinity']);

/**
 * A line as text, without its newline; the fields keep their order. JSON has no non-finite numbers: such a field is null,
 * and a last field `nonFinite` names its number: `{"loss":null,"nonFinite":{"loss":"NaN"}}`. JavaScript's Number() and
 * Python's float() read the names.
 */
export function formatMetricsLine(line: MetricsLine): string {
  const nonFinite = Object.entries(line).filter(
    ([, value]) => typeof value === 'number' && !Number.isFinite(value),
  );
  if (nonFinite.length === 0) return JSON.stringify(line);
  const named = nonFinite.map(([field, value]) => [field, String(value)]);
  return JSON.stringify({ ...line, nonFinite: Object.fromEntries(named) });
}

/** The fields of a line, with its non-finite numbers; undefined for a line that is not ours. */
export function parseMetricsLine(text: string): Record<string, unknown> | undefined {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line)) return undefined;
  const { nonFinite, ...fields } = line as Record<string, unknown>;
  for (const [field, name] of Object.entries(nonFinite ?? {}))
    if (nonFiniteNames.has(name)) fields[field] = Number(name);
  return fields;
}
