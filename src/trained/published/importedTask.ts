/** @file Task and data of a run that is imported: decoding as the model's publisher sets it, and texts to evaluate and train on. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type BaseDecoder, GreedyDecoder, SampleDecoder } from '../../decoding/index.js';
import { type Config, ConfigError, classOf } from '../../hparams/index.js';
import { type BaseInput, PretrainedTokenizer, SyntheticLmInput, TextInput } from '../../inputs/index.js';
import { AdamW, Learner } from '../../learners/index.js';
import { type BaseModel, LanguageModel } from '../../models/index.js';
import { Decode, SingleTask, Train } from '../../tasks/index.js';
import {
  generationSettings,
  modelSettings,
  readSettings,
  tokenizerSettings,
  tokenText,
} from './publishedFiles.js';

/** Settings of an import. */
export interface ImportSettings {
  /** Type of the variables in memory and in checkpoints; those in bfloat16 can't be trained. */
  readonly dtype: 'float32' | 'bfloat16';
  /** Tokens of a prompt and its continuation together. */
  readonly maxLength: number | undefined;
  /** Texts to evaluate and train on. */
  readonly files: readonly string[];
}

/** Context of models that could have a longer one: caches of keys and values grow with it. */
const DEFAULT_LENGTH = 2048;
/** Tokens of a row of the datasets. */
const ROW_LENGTH = 512;
/** transformers' `top_k` of a generation_config.json that has none. */
const DEFAULT_TOP_K = 50;

/** The task of an imported model. */
export function importedTask(
  model: Config<BaseModel>,
  folder: string,
  { dtype, maxLength }: ImportSettings,
): Config<SingleTask> {
  model.dtype = dtype;
  const learner = Learner.config({ optimizer: AdamW.config({ learningRate: 1e-5 }) });
  // Variables in bfloat16 are frozen.
  if (dtype !== 'float32') learner.bpropVariableExclusion = ['.*'];
  return SingleTask.config({
    model,
    train: Train.config({ learner, numTrainSteps: 1000 }),
    decode: Decode.config({ decoder: decoderOf(folder, lengthOf(folder, maxLength)) }),
  });
}

function lengthOf(folder: string, asked: number | undefined): number {
  const { max_position_embeddings, n_positions } = readSettings(folder, modelSettings) ?? {};
  const most = max_position_embeddings ?? n_positions ?? Number.POSITIVE_INFINITY;
  if (asked !== undefined && asked > most)
    throw new ConfigError(
      `--max_length=${asked}: the model has ${most} positions: expected ${most} or fewer.`,
    );
  return asked ?? Math.min(most, DEFAULT_LENGTH);
}

/** The decoder of generation_config.json. */
function decoderOf(folder: string, seqlen: number): Config<BaseDecoder> {
  const generation = readSettings(folder, generationSettings);
  const eosId = generation?.eos_token_id ?? readSettings(folder, modelSettings)?.eos_token_id ?? [];
  if (!generation?.do_sample) return GreedyDecoder.config({ seqlen, eosId });
  const { temperature, top_k, top_p } = generation;
  return SampleDecoder.config({
    ...{ seqlen, eosId },
    temperature: temperature ?? 1,
    k: top_k ?? DEFAULT_TOP_K,
    p: top_p === 1 ? null : (top_p ?? null),
  });
}

/** Datasets of an imported model: texts that its tokenizer encodes; random tokens where the folder has no tokenizer. */
export function importedDatasets(
  { model, decode }: Config<SingleTask>,
  folder: string,
  { files }: ImportSettings,
): Config<BaseInput>[] {
  if (!(classOf(model) === LanguageModel || classOf(model).prototype instanceof LanguageModel)) return [];
  const seqLen = Math.min(decode.decoder.seqlen, ROW_LENGTH);
  const rows = { seqLen, batchSize: 1 };
  const file = join(folder, 'tokenizer.json');
  if (!existsSync(file)) {
    const { vocabSize } = (model as Config<LanguageModel>).lmTpl;
    return [SyntheticLmInput.config({ ...rows, name: 'train', isTraining: true, vocabSize })];
  }
  const { eos_token, bos_token, pad_token } = readSettings(folder, tokenizerSettings) ?? {};
  const tokenizer = PretrainedTokenizer.config({
    file,
    eosToken: tokenText(eos_token),
    bosToken: tokenText(bos_token),
    padToken: tokenText(pad_token),
  });
  const texts = { ...rows, files: [...files], tokenizer };
  return [
    TextInput.config({ ...texts, name: 'train', isTraining: true, split: 'train' }),
    TextInput.config({ ...texts, name: 'validation', split: 'validation' }),
  ];
}
