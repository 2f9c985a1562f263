/** @file Writing several fields at once, with every problem reported together. */
import { ConfigError } from './errors.js';
import { nodeOf, type Origin, originText, writeField } from './node.js';
import type { AnyConfig } from './types.js';

/** Writes `values` into `config`. @throws ConfigError with all that is wrong; then nothing counts as written. */
export function assignValues(config: AnyConfig, values: object, what: string, writer: Origin): void {
  const node = nodeOf(config)!;
  const problems: ConfigError[] = [];
  for (const name of Object.keys(values)) {
    try {
      writeField(node, name, (values as Record<string, unknown>)[name], writer);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(error);
    }
  }
  if (problems.length === 1) throw problems[0]!;
  if (problems.length === 0) return;
  const list = problems.map((problem) => `\n  ${problem.problem}`).join('');
  throw new ConfigError(`${what}: ${problems.length} problems:${list}`, { place: originText(writer) });
}
