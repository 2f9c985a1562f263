/** @file Files of --config_file: what people write, and what --dump wrote. */
import { readFileSync } from 'node:fs';
import { fromJSON, isConfig } from '../hparams/index.js';
import { UsageError } from './errors.js';
import { isRecord } from './fiddlers.js';
import type { FileOverride, ValueOverride } from './overrides.js';

/** The changes that a file asks for, in its order. @throws UsageError or ConfigError for a file that cannot be read. */
export function readOverrideFile({ file, origin }: FileOverride): ValueOverride[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${origin}: ${(error as Error).message}`);
  }
  const root = fromJSON(text);
  if (isConfig(root) || !isRecord(root)) throw new UsageError(`${origin}: no configs`);
  return Object.entries(root as object).flatMap(([key, value]): ValueOverride[] =>
    key === 'constants'
      ? Object.entries(value as object).map(([name, each]) => ({
          kind: 'value',
          path: name,
          value: each,
          origin,
        }))
      : [{ kind: 'value', path: key, value, origin }],
  );
}
