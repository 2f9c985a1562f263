/** @file MaxText's names for a model and its mesh, translated into the constants of Pax-style experiments. */
import { z } from 'zod';
import { PRECISION_NAMES, type Precision } from '../compiler/index.js';
import { ConfigError, coerce, didYouMean } from '../hparams/index.js';

/** Constants of a Pax-style experiment that MaxText's settings have a counterpart of. */
export interface MaxTextConstants {
  numLayers?: number;
  modelDims?: number;
  hiddenDims?: number;
  numHeads?: number;
  dimsPerHead?: number;
  vocabSize?: number;
  percoreBatchSize?: number;
  maxSeqLen?: number;
  fpropDtype?: Precision;
  iciMeshShape?: number[];
  dcnMeshShape?: number[];
  numTrainSteps?: number;
  learningRate?: number;
  dropoutProb?: number;
  checkpointEveryNSteps?: number;
  summaryIntervalSteps?: number;
  evalIntervalSteps?: number;
}

/** Names whose values are those of a constant. */
interface Direct {
  readonly constant: keyof MaxTextConstants;
  readonly schema: z.ZodType;
}

const count = z.int().positive();
const positive = z.number().positive();

const direct: Readonly<Record<string, Direct>> = {
  head_dim: { constant: 'dimsPerHead', schema: count },
  vocab_size: { constant: 'vocabSize', schema: count },
  per_device_batch_size: { constant: 'percoreBatchSize', schema: positive },
  max_target_length: { constant: 'maxSeqLen', schema: count },
  dtype: { constant: 'fpropDtype', schema: z.enum(PRECISION_NAMES) },
  dropout_rate: { constant: 'dropoutProb', schema: z.number().min(0).lt(1) },
  steps: { constant: 'numTrainSteps', schema: count },
  learning_rate: { constant: 'learningRate', schema: positive },
  save_period: { constant: 'checkpointEveryNSteps', schema: count },
  log_period: { constant: 'summaryIntervalSteps', schema: count },
  eval_interval: { constant: 'evalIntervalSteps', schema: count },
};

/** Names whose values are multiplied by `scale`. */
const scaled = {
  base_num_decoder_layers: 'numLayers',
  base_emb_dim: 'modelDims',
  base_mlp_dim: 'hiddenDims',
  base_num_heads: 'numHeads',
} as const;

/** The two meshes, each with its axes in Pax's order: replica, data and model. */
const meshes = { ici: 'iciMeshShape', dcn: 'dcnMeshShape' } as const;
const axes = ['data', 'fsdp', 'tensor'] as const;
/** Axes that only MaxText has; 1 is no partition at all. */
const foreignAxes = ['pipeline', 'fsdp_transpose', 'sequence', 'expert', 'autoregressive'] as const;

const parallelism = (mesh: string, names: readonly string[]): string[] =>
  names.map((axis) => `${mesh}_${axis}_parallelism`);

const knownNames: readonly string[] = [
  'scale',
  ...Object.keys(scaled),
  ...Object.keys(direct),
  ...Object.keys(meshes).flatMap((mesh) => parallelism(mesh, axes)),
];
const oneOnly = Object.keys(meshes).flatMap((mesh) => parallelism(mesh, foreignAxes));

/** Names without a counterpart here, and the reason. */
const foreign: Readonly<Record<string, string>> = {
  run_name: 'a run is named by its --job_log_dir',
  base_output_directory: 'a run is named by its --job_log_dir',
  dataset_path: 'the data is what the experiment reads',
  enable_profiler: 'there is no profiler',
  enable_checkpointing: 'a run always saves checkpoints',
  remat_policy: 'activations are never computed twice',
  global_parameter_scale: 'it scales depth and width differently; give the sizes themselves',
};

/**
 * Translates MaxText's settings, as its command line or a YAML file has them, into constants of a Pax-style
 * experiment:
 *
 * | MaxText | here |
 * |---|---|
 * | `base_num_decoder_layers`, `base_emb_dim`, `base_mlp_dim`, `base_num_heads`, each times `scale` | `numLayers`, `modelDims`, `hiddenDims`, `numHeads` |
 * | `head_dim`, `vocab_size`, `max_target_length` | `dimsPerHead`, `vocabSize`, `maxSeqLen` |
 * | `per_device_batch_size`, `dtype`, `dropout_rate` | `percoreBatchSize`, `fpropDtype`, `dropoutProb` |
 * | `ici_data_parallelism`, `ici_fsdp_parallelism`, `ici_tensor_parallelism` | `iciMeshShape`, 1 where absent |
 * | `dcn_data_parallelism`, `dcn_fsdp_parallelism`, `dcn_tensor_parallelism` | `dcnMeshShape`, 1 where absent |
 * | `steps`, `learning_rate` | `numTrainSteps`, `learningRate` |
 * | `save_period`, `log_period`, `eval_interval` | `checkpointEveryNSteps`, `summaryIntervalSteps`, `evalIntervalSteps` |
 *
 * A name that is absent leaves its constant absent: MaxText's own defaults changed from version to version. For the
 * same reason `scale` needs all four names that it multiplies.
 *
 * @param settings values by MaxText's names: numbers, or texts as on its command line.
 * @throws ConfigError for a name that MaxText does not have or that has no counterpart, and for a value that doesn't fit.
 */
export function translateMaxText(settings: Readonly<Record<string, unknown>>): MaxTextConstants {
  const given = new Map(Object.entries(settings));
  for (const [name, value] of given) checkName(name, value);
  const constants: Record<string, unknown> = { ...scaledSizes(given) };
  for (const [name, { constant, schema }] of Object.entries(direct)) {
    if (given.has(name)) constants[constant] = read(name, schema, given.get(name));
  }
  for (const [mesh, constant] of Object.entries(meshes)) {
    const names = parallelism(mesh, axes);
    if (names.some((name) => given.has(name))) {
      constants[constant] = names.map((name) => (given.has(name) ? devices(name, given.get(name)) : 1));
    }
  }
  return constants;
}

function checkName(name: string, value: unknown): void {
  if (knownNames.includes(name)) return;
  if (oneOnly.includes(name)) {
    if (String(value) === '1') return;
    throw new ConfigError(
      `MaxText's ${name} must be 1, got '${value}': a mesh here has the axes ${axes.join(', ')} only.`,
    );
  }
  if (Object.hasOwn(foreign, name)) {
    throw new ConfigError(`MaxText's ${name} has no counterpart: ${foreign[name]}. Leave it out.`);
  }
  throw new ConfigError(
    `MaxText has no '${name}' that can be translated.${didYouMean(name, knownNames)} ` +
      `The names are: ${knownNames.join(', ')}.`,
  );
}

function scaledSizes(given: ReadonlyMap<string, unknown>): MaxTextConstants {
  const scale = given.has('scale') ? (read('scale', positive, given.get('scale')) as number) : 1;
  const names = Object.keys(scaled);
  const absent = names.filter((name) => !given.has(name));
  if (scale !== 1 && absent.length > 0) {
    throw new ConfigError(
      `MaxText's scale multiplies ${names.join(', ')}; with scale ${scale}, give ${absent.join(' and ')} too.`,
    );
  }
  const sizes: MaxTextConstants = {};
  for (const [name, constant] of Object.entries(scaled)) {
    if (!given.has(name)) continue;
    const base = read(name, count, given.get(name)) as number;
    sizes[constant] = read(`${name} times scale ${scale}`, count, base * scale) as number;
  }
  return sizes;
}

function devices(name: string, value: unknown): unknown {
  if (String(value) !== '-1') return read(name, count, value);
  throw new ConfigError(
    `MaxText's ${name} is -1, whatever is left of the devices. Here the mesh says how many devices there are; give a number.`,
  );
}

const read = (name: string, schema: z.ZodType, value: unknown): unknown =>
  coerce(schema, String(value), `MaxText's ${name}`);
