/** @file A run as a GGUF file, which llama.cpp loads. */
import {
  type GgufEntry,
  type GgufTensor,
  ggmlBlock,
  type WrittenGgmlType,
  writeGguf,
} from '../../../checkpoints/index.js';
import { loadBackend } from '../../../compiler/index.js';
import { ConfigError } from '../../../hparams/index.js';
import { loraLayers } from '../../../layers/index.js';
import { publishedSettings, settingsWithDefaults } from '../../../models/index.js';
import { publishedTensors, tensorValues } from '../../../programs/index.js';
import type { TrainedRun } from '../../trainedRun.js';
import {
  checkNetwork,
  floatsIn,
  isFactor,
  type Published,
  settingsFolder,
  summary,
  unfit,
} from '../exportPublished.js';
import { ggufArchitectures } from './ggufArchitectures.js';
import { settingsEntries } from './ggufSettings.js';
import { tokenizerEntries } from './tokenizerEntries.js';

/** Options of an export. */
export interface GgufOptions {
  /** The run's directory. */
  readonly directory: string;
  /** The file to write. */
  readonly out: string;
  /** Folder with the config.json of the run's network; default: that which the run was imported or started from. */
  readonly config?: string | undefined;
  /** Type of the matrices; default F32. */
  readonly type?: WrittenGgmlType | undefined;
}

/** `general.file_type` by the type of most tensors (llama.cpp's llama_ftype). */
const FILE_TYPES: Readonly<Record<WrittenGgmlType, number>> = {
  ...{ F32: 0, F16: 1, Q4_0: 2, Q8_0: 7, Q4_K: 15, BF16: 32 },
};

/** Types in place of those whose blocks a row is no multiple of. */
const NARROWER: Partial<Record<WrittenGgmlType, WrittenGgmlType>> = {
  Q4_K: 'Q8_0',
  Q8_0: 'F16',
  Q4_0: 'F16',
};

/** Matrices that llama.cpp reads as float32: routers, and the positions that are added to embeddings. */
const WHOLE = /^(position_embd|blk\.\d+\.ffn_gate_inp)\./;

/**
 * Writes a GGUF file with the network's settings, tokenizer and chat template. Changes of LoRA are added to the weights.
 *
 * @throws ConfigError where no config.json is known, that of another network or of a family that GGUF has no form of here, and for
 *   settings and tokenizers that it has none of; CheckpointError where the file can't be written
 */
export async function exportGguf(run: TrainedRun, options: GgufOptions): Promise<Published> {
  const { out, type = 'F32' } = options;
  const folder = settingsFolder(run, options);
  checkNetwork(run, folder);
  const settings = publishedSettings(folder)!;
  const architecture = ggufArchitectures.find(({ family }) => family === settings.family);
  if (architecture === undefined) {
    const known = ggufArchitectures.map(({ family }) => family).join(', ');
    throw new ConfigError(
      `${settings.file}: GGUF files are written of ${known}, not of ${settings.modelType}.`,
    );
  }
  const described = settingsEntries(architecture, settingsWithDefaults(settings)!);
  const variables = run.params.layout.entries.filter(({ name }) => !isFactor(name));
  const { tensors, problems } = publishedTensors(variables, architecture.names);
  const all = [...described.problems.map((line) => `${line}, which GGUF has no key of here.`), ...problems];
  if (all.length > 0) throw unfit(`${run.name} has no form in GGUF`, all);
  if (loraLayers(run.task.model).size > 0) await loadBackend('cpu');
  const floats = floatsIn(run);
  const written = tensors.map(
    (tensor): GgufTensor => ({
      ...{ name: tensor.name, shape: tensor.shape, type: typeOf(tensor.name, tensor.shape, type) },
      values: () => tensorValues(tensor, floats),
    }),
  );
  if (described.factors !== undefined) {
    const values = Float32Array.from(described.factors);
    written.push({ name: 'rope_freqs.weight', shape: [values.length], type: 'F32', values: () => values });
  }
  const rows = written.find(({ name }) => name === 'token_embd.weight')!.shape[0]!;
  const entries: GgufEntry[] = [
    ['general.architecture', 'string', architecture.architecture],
    ['general.name', 'string', run.name],
    ['general.file_type', 'u32', FILE_TYPES[type]],
    ['general.quantization_version', 'u32', 2],
    ...described.entries,
    ...tokenizerEntries(folder, rows),
  ];
  writeGguf(out, entries, written);
  return summary(written, [out]);
}

/** The type of a tensor: vectors are float32. */
function typeOf(name: string, shape: readonly number[], type: WrittenGgmlType): WrittenGgmlType {
  if (shape.length < 2 || WHOLE.test(name)) return 'F32';
  return shape.at(-1)! % ggmlBlock(type) === 0 ? type : typeOf(name, shape, NARROWER[type]!);
}
