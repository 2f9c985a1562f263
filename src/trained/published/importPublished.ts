/** @file A published model, a folder or a GGUF file, as the directory of a run, without an experiment. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { WeightFiles } from '../../checkpoints/index.js';
import { build, ConfigError } from '../../hparams/index.js';
import { addLora, LORA_VARIABLES } from '../../layers/index.js';
import { modelOfSettings, nameRulesOf, pretrainedModel, publishedSettings } from '../../models/index.js';
import { ImportedWeights, recordData, TRAIN } from '../../programs/index.js';
import { JobError, type JobOptions, machineOf, openJobDirectory, writeJobFiles } from '../../runs/index.js';
import { ADAPTER_WEIGHTS, adapterSettings } from './adapterSettings.js';
import { isGguf, unpackGguf } from './gguf/unpackedGguf.js';
import { importedDatasets } from './importedDatasets.js';
import { type ImportSettings, importedTask } from './importedTask.js';
import { copyPublished, KEPT, PUBLISHED, writeShapes } from './publishedFiles.js';

/** Options of an import. */
export interface ImportOptions extends ImportSettings {
  /** Folder of the published model, or a GGUF file. */
  readonly folder: string;
  readonly jobLogDir: string;
  /** Folder of a LoRA adapter of PEFT, which is put onto the model. */
  readonly adapter?: string | undefined;
  /** Fields of config.json, and patterns of tensors, that may be passed over. */
  readonly ignoredFields: readonly string[];
  readonly ignoredTensors: readonly string[];
}

/** An import that is done. */
export interface Imported {
  /** Name of the run's experiment: that of the folder. */
  readonly name: string;
  /** Parameters. */
  readonly count: number;
  /** Files that lay beside the weights, and lie in the run's directory now. */
  readonly copied: readonly string[];
  /** Tensors of heads of multi-token prediction, which are left out. */
  readonly predictionHeads: readonly string[];
}

/**
 * Writes a run's directory with the weights of a published model in a checkpoint of step 0, its tokenizer, its chat template and its
 * settings: `loadRun` and the commands take it as that of any run.
 *
 * @throws ConfigError for a model that has no counterpart, and for weights that are not its own, with all that differs;
 *   CheckpointError for files that can't be read or written; JobError where the directory has checkpoints.
 */
export async function importPublished(options: ImportOptions): Promise<Imported> {
  const { folder: source, jobLogDir } = options;
  const { task, weights, folder, close } = openPublished(options);
  try {
    if (weights.problems.length > 0) {
      const lines = weights.problems.map((line) => `  ${line}`).join('\n');
      const settings = isGguf(source) ? 'metadata' : 'config.json';
      throw new ConfigError(`${source}: the weights are not those of its ${settings}:\n${lines}`);
    }
    const directory = await openJobDirectory(jobLogDir, 'train');
    try {
      const checkpoints = join(jobLogDir, 'checkpoints');
      if (existsSync(checkpoints) && readdirSync(checkpoints).length > 0)
        throw new JobError(
          `--job_log_dir=${jobLogDir}: it has checkpoints of a run. Give another directory, or delete it.`,
        );
      const published = resolve(jobLogDir, PUBLISHED);
      const copied = copyPublished(folder, published);
      // Exports name tensors as Hugging Face does, whatever the file's names are.
      if (!isGguf(source)) writeShapes(published, weights.shapes);
      const name = basename(resolve(source), '.gguf');
      const job: JobOptions = {
        ...{ name, task, jobLogDir, datasets: importedDatasets(task, published, options.files) },
        ...{ decodeDatasets: [], moduleUrl: '', mode: 'train', overrides: [], classVars: '' },
      };
      writeJobFiles(job, await machineOf({}));
      const identity = job.datasets.length > 0 ? build(job.datasets[0]!).knownIdentity() : null;
      if (identity !== null) recordData(jobLogDir, TRAIN, identity);
      await weights.write(jobLogDir, name);
      weights.writeKept(join(published, KEPT));
      const { count, predictionHeads } = weights;
      return { name, count, copied, predictionHeads };
    } finally {
      directory.close();
    }
  } finally {
    close();
  }
}

/** The model of a folder or a file, and its weights. @throws ConfigError with the problems of both */
function openPublished(options: ImportOptions) {
  const { folder: source, adapter, ignoredFields, ignoredTensors } = options;
  if (isGguf(source) && adapter !== undefined)
    throw new ConfigError(
      `--adapter=${adapter}: an adapter names modules as Hugging Face does: expected the folder of a model, got ${source}.`,
    );
  const unpacked = isGguf(source) ? unpackGguf(source, ignoredFields) : undefined;
  const folder = unpacked?.folder ?? source;
  const open: WeightFiles[] = [];
  const close = () => {
    for (const each of open) each.close();
    unpacked?.remove();
  };
  try {
    const settings = publishedSettings(folder);
    const [model, weights] = both(
      () =>
        unpacked
          ? modelOfSettings({ ...settings!, file: source }, folder, ignoredFields)
          : pretrainedModel(folder, ignoredFields),
      () => WeightFiles.open(source),
    );
    open.push(weights);
    const names = unpacked?.names ?? nameRulesOf(settings!.family!);
    const task = importedTask(model, folder, options);
    if (adapter !== undefined) {
      addLora(task.model, adapterSettings(adapter));
      task.train.learner.bpropVariableExclusion = [];
      task.train.learner.bpropVariableInclusion = [LORA_VARIABLES];
      open.push(WeightFiles.open(join(adapter, ADAPTER_WEIGHTS)));
    }
    const imported = new ImportedWeights(build(task), weights, names, ignoredTensors, open[1]);
    return { close, folder, task, weights: imported };
  } catch (error) {
    close();
    throw error;
  }
}

/** Two results. @throws ConfigError with both messages where both fail */
function both<A, B extends { close(): void }>(first: () => A, second: () => B): [A, B] {
  let [a, failure]: [A | undefined, Error | undefined] = [undefined, undefined];
  try {
    a = first();
  } catch (error) {
    failure = error as Error;
  }
  let b: B;
  try {
    b = second();
  } catch (error) {
    if (failure === undefined) throw error;
    throw new ConfigError(`${failure.message}\n${(error as Error).message}`, { cause: error });
  }
  if (failure === undefined) return [a as A, b];
  b.close();
  throw failure;
}
