/** @file Task of a run that is imported: decoding as the model's publisher sets it. */
import { type BaseDecoder, GreedyDecoder, SampleDecoder } from '../../decoding/index.js';
import { type Config, ConfigError } from '../../hparams/index.js';
import { AdamW, Learner } from '../../learners/index.js';
import type { BaseModel } from '../../models/index.js';
import { Decode, SingleTask, Train } from '../../tasks/index.js';
import { generationSettings, modelSettings, readSettings } from './publishedFiles.js';

/** Settings of an import. */
export interface ImportSettings {
  /** Type of the variables in memory and in checkpoints; those in bfloat16 can't be trained. */
  readonly dtype: BaseModel['hp']['dtype'];
  /** Tokens of a prompt and its continuation together. */
  readonly maxLength: number | undefined;
  /** Data to evaluate and train on; by default *.txt of language models, the folder images of classifiers of images, and *.csv of others. */
  readonly files: readonly string[] | undefined;
}

/** Context of models that could have a longer one: caches of keys and values grow with it. */
const DEFAULT_LENGTH = 2048;
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
  const { max_position_embeddings, n_positions, max_target_positions } =
    readSettings(folder, modelSettings) ?? {};
  const most = max_position_embeddings ?? n_positions ?? max_target_positions ?? Number.POSITIVE_INFINITY;
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
