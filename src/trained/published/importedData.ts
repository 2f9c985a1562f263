/** @file Parts of the datasets of imported models: their settings, tokenizers, tables and names of classes. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../hparams/index.js';
import {
  type BaseFeature,
  type BaseInput,
  CsvSource,
  PretrainedTokenizer,
  RecordInput,
} from '../../inputs/index.js';
import type { BaseModel, ClassificationModel } from '../../models/index.js';
import {
  generationSettings,
  modelSettings,
  readSettings,
  tokenizerSettings,
  tokenText,
} from './publishedFiles.js';

/** An imported model, and the settings of its data. */
export interface Subject {
  readonly model: Config<BaseModel>;
  /** The copies of the files that lay beside the weights. */
  readonly folder: string;
  /** Tokens of a row. */
  readonly length: number;
  readonly files: readonly string[] | undefined;
}

/** The tokenizer of a folder; undefined where it has none. */
export function tokenizerOf(folder: string): Config<PretrainedTokenizer> | undefined {
  const file = join(folder, 'tokenizer.json');
  if (!existsSync(file)) return undefined;
  const { eos_token, bos_token, pad_token } = readSettings(folder, tokenizerSettings) ?? {};
  return PretrainedTokenizer.config({
    file,
    eosToken: tokenText(eos_token),
    bosToken: tokenText(bos_token),
    padToken: tokenText(pad_token),
  });
}

/** Tables with the columns that features read. */
export function recordDatasets(
  { files = ['*.csv'] }: Subject,
  features: Readonly<Record<string, Config<BaseFeature>>>,
): Config<BaseInput>[] {
  const tables = { source: CsvSource.config({ files: [...files] }), features, batchSize: 8 };
  return [
    RecordInput.config({ ...tables, name: 'train', isTraining: true, split: 'train' }),
    RecordInput.config({ ...tables, name: 'validation', split: 'validation' }),
  ];
}

/** Names of the classes by id, those in config.json. */
export function classNamesOf({ model, folder }: Subject): string[] {
  const names = readSettings(folder, modelSettings)?.id2label ?? {};
  const { numClasses } = (model as Config<ClassificationModel>).softmaxTpl;
  return Array.from({ length: numClasses }, (_, id) => names[id] ?? `LABEL_${id}`);
}

/** The id with which a decoder begins. */
export const firstTargetOf = (folder: string): number =>
  readSettings(folder, generationSettings)?.decoder_start_token_id ??
  readSettings(folder, modelSettings)?.decoder_start_token_id ??
  0;
