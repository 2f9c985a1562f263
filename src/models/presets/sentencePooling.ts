/** @file Pooling of published sentence encoders: modules.json and 1_Pooling/config.json of sentence-transformers. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readRegularFile } from '../../files/index.js';
import { ConfigError } from '../../hparams/index.js';

/** The vector of a text, from those of its tokens. */
interface SentencePooling {
  readonly pooling: 'mean' | 'first' | 'last';
  /** Whether it has unit length. */
  readonly normalized: boolean;
}

/** Modes of 1_Pooling/config.json, with ours. */
const MODES = { mean_tokens: 'mean', cls_token: 'first', lasttoken: 'last' } as const;

const modules = z.array(z.object({ type: z.string(), path: z.string() }));
/** The modes come as flags of their own, or as one name. */
const settings = z.looseObject({ pooling_mode: z.string().optional() });

const named = { mean: 'mean', cls: 'first', lasttoken: 'last' } as const;

/**
 * The pooling of a folder that sentence-transformers reads: a mean and unit length where nothing is said of them.
 *
 * @throws ConfigError for modules and poolings that have no counterpart here
 */
export function sentencePooling(folder: string): SentencePooling {
  const listed = read(join(folder, 'modules.json'), modules);
  if (listed === undefined) return { pooling: 'mean', normalized: true };
  const kinds = listed.map(({ type }) => type.split('.').at(-1)!);
  const other = kinds.find((kind) => !['Transformer', 'Pooling', 'Normalize'].includes(kind));
  if (other !== undefined)
    throw new ConfigError(
      `${join(folder, 'modules.json')}: a module ${other} has no counterpart here: expected Transformer, Pooling and Normalize.`,
    );
  const pooling = listed[kinds.indexOf('Pooling')];
  return {
    pooling: pooling === undefined ? 'mean' : poolingOf(join(folder, pooling.path, 'config.json')),
    normalized: kinds.includes('Normalize'),
  };
}

function poolingOf(file: string): SentencePooling['pooling'] {
  const values = read(file, settings) ?? {};
  if (values.pooling_mode !== undefined && values.pooling_mode in named)
    return named[values.pooling_mode as keyof typeof named];
  const on = Object.entries(values).flatMap(([name, value]) =>
    value === true && name.startsWith('pooling_mode_') ? [name.slice('pooling_mode_'.length)] : [],
  );
  const [mode] = on;
  if (on.length === 1 && mode! in MODES) return MODES[mode as keyof typeof MODES];
  throw new ConfigError(
    `${file}: pooling by ${[values.pooling_mode ?? on].flat().join(', ') || 'nothing'} has no counterpart here: expected one of ` +
      `${Object.keys(MODES).join(', ')}.`,
  );
}

/** A JSON file; undefined where there is none. @throws ConfigError for one that is damaged */
function read<T>(file: string, schema: z.ZodType<T>): T | undefined {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(readRegularFile(file).toString()));
  } catch (error) {
    throw new ConfigError(`${file}: ${(error as Error).message}`);
  }
}
