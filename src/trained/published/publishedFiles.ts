/** @file Files beside published weights: settings, tokenizer, chat template, defaults of generation. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isThere, makeDirectory, readJsonFile, writeWhole } from '../../files/index.js';
import type { KnownShapes } from '../../programs/index.js';
import { UsageError } from '../../system/text/index.js';

/** Folder of a run's directory with the files that lay beside the weights that it was imported from. */
export const PUBLISHED = 'published';

/** File there with the tensors that the model does without, and an export has. */
export const KEPT = 'kept.safetensors';

/** Names of the files that are copied: all texts but indexes of shards. */
const COPIED = /(?<!\.index)\.json$|\.(jinja|txt|model)$/;

/** File of an import with the shapes of the tensors by name, which are an export's. */
const SHAPES = 'tensors.json';

const shapesSchema = z.record(z.string(), z.array(z.int().nonnegative()));

export function writeShapes(folder: string, shapes: KnownShapes): void {
  writeWhole(join(folder, SHAPES), `${JSON.stringify(shapes)}\n`);
}

/** The shapes of the tensors of an import; undefined for a folder that no import has written. */
export const readShapes = (folder: string): KnownShapes | undefined =>
  isThere(join(folder, SHAPES)) ? readJsonFile(join(folder, SHAPES), shapesSchema) : undefined;

/** Copies the files beside weights. @returns their names */
export function copyPublished(folder: string, target: string): string[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter(
      (entry) =>
        (entry.isFile() || entry.isSymbolicLink()) && COPIED.test(entry.name) && entry.name !== SHAPES,
    )
    .map(({ name }) => name);
  makeDirectory(target);
  for (const name of names) writeWhole(join(target, name), readFileSync(join(folder, name)));
  return names;
}

const id = z.int().nonnegative();
const token = z.union([z.string(), z.object({ content: z.string() })]).nullish();

/** A file of settings, and the fields that imports read. */
interface Settings<T> {
  readonly file: string;
  readonly schema: z.ZodType<T>;
}

const settings = <T>(file: string, schema: z.ZodType<T>): Settings<T> => ({ file, schema });

export const modelSettings = settings(
  'config.json',
  z.object({
    eos_token_id: z.union([id, z.array(id)]).nullish(),
    max_position_embeddings: z.int().positive().nullish(),
    n_positions: z.int().positive().nullish(),
    max_target_positions: z.int().positive().nullish(),
    max_source_positions: z.int().positive().nullish(),
    decoder_start_token_id: id.nullish(),
    id2label: z.record(z.string(), z.string()).nullish(),
  }),
);

const numbers = z.array(z.number()).nullish();

/** Of images and sounds. */
export const preprocessorSettings = settings(
  'preprocessor_config.json',
  z.object({
    ...{ image_mean: numbers, image_std: numbers },
    ...{ do_normalize: z.boolean().nullish(), do_center_crop: z.boolean().nullish() },
    resample: z
      .union([z.literal(2), z.literal(3)], { error: 'expected 2 or 3, bilinear or bicubic' })
      .nullish(),
    sampling_rate: z.int().positive().nullish(),
    hop_length: z.int().positive().nullish(),
    n_fft: z.int().positive().nullish(),
  }),
);

export const generationSettings = settings(
  'generation_config.json',
  z.object({
    eos_token_id: z.union([id, z.array(id)]).nullish(),
    decoder_start_token_id: id.nullish(),
    is_multilingual: z.boolean().nullish(),
    do_sample: z.boolean().nullish(),
    temperature: z.number().nonnegative().nullish(),
    top_k: z.int().nonnegative().nullish(),
    top_p: z.number().positive().max(1).nullish(),
  }),
);

export const tokenizerSettings = settings(
  'tokenizer_config.json',
  z.object({ eos_token: token, bos_token: token, pad_token: token, cls_token: token, sep_token: token }),
);

const specialToken = z.object({ SpecialToken: z.object({ id: z.string() }) });
const processor = z.object({ single: z.array(z.unknown()).nullish() });

/** Of the tokenizer.json, the tokens around a text. */
const tokenizerTemplate = settings(
  'tokenizer.json',
  z.object({ post_processor: processor.extend({ processors: z.array(processor).nullish() }).nullish() }),
);

/**
 * The special tokens that transformers puts before a text: those of the template in tokenizer.json, whatever add_bos_token of
 * tokenizer_config.json says.
 */
export function tokensBeforeText(folder: string): string[] {
  const { post_processor } = readSettings(folder, tokenizerTemplate) ?? {};
  const processors = [post_processor, ...(post_processor?.processors ?? [])];
  const { single = [] } = processors.find((each) => each?.single) ?? {};
  const tokens = single!.map((each) => specialToken.safeParse(each).data?.SpecialToken.id);
  return tokens.slice(0, tokens.indexOf(undefined)) as string[];
}

/** Of sentence-transformers. */
export const sentenceSettings = settings(
  'sentence_bert_config.json',
  z.object({ max_seq_length: z.int().positive().nullish() }),
);

/** Settings beside weights; undefined where the folder has none. @throws UsageError where they can't be read */
export function readSettings<T>(folder: string, { file, schema }: Settings<T>): T | undefined {
  const path = join(folder, file);
  if (!isThere(path)) return undefined;
  try {
    return readJsonFile(path, schema);
  } catch (cause) {
    throw new UsageError(`${path}: ${(cause as Error).message}`, { cause });
  }
}

/** The text of a special token; null for none. */
export const tokenText = (value: z.output<typeof token>): string | null =>
  (typeof value === 'object' ? value?.content : value) ?? null;
