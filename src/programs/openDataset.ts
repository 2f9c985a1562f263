/** @file Opens the inputs of a job: as training fixed them, and compared with what earlier processes read. */
import { build, type Config, ConfigError, classOf, iterate } from '../hparams/index.js';
import * as inputs from '../inputs/index.js';
import { LanguageModel } from '../models/index.js';
import type { SingleTask } from '../tasks/index.js';
import { dataRecordPath, recordData, recordedData } from './dataRecord.js';
import { JobError } from './errors.js';
import type { JobOptions } from './options.js';

const builtIn = new Set<unknown>(Object.values(inputs));

/** Program of the dataset that trains. */
export const TRAIN = 'train';

/** An input that is open. */
export interface OpenedDataset {
  readonly input: inputs.InputSource;
  /** How the data differs from what the run first read for this program, if it does. */
  readonly changes: string | undefined;
}

/** What to open. */
export interface DatasetToOpen {
  readonly task: SingleTask;
  readonly dataset: Config<inputs.BaseInput>;
  /** What reads it: `train`, `eval_test_<dataset>`, `decode_test_<dataset>`. */
  readonly program: string;
}

/**
 * Opens a dataset. A tokenizer that learns its vocabulary has the one that training fixed, whatever its corpus is by now.
 *
 * @throws InputError for what is wrong with the data, JobError for a tokenizer with other ids than that of training,
 *   ConfigError for one with more ids than the model.
 */
export function openDataset(options: JobOptions, wanted: DatasetToOpen): OpenedDataset {
  const { task, dataset, program } = wanted;
  const { jobLogDir } = options;
  const input = openAs(options, dataset, recordedData(jobLogDir, TRAIN));
  const identity = input.dataIdentity();
  checkIdentity(options, task, input.name, identity);
  const recorded = recordedData(jobLogDir, program);
  if (recorded === undefined && Object.keys(identity).length > 0) recordData(jobLogDir, program, identity);
  const changes = recorded === undefined ? [] : inputs.dataChanges(recorded, identity);
  const path = dataRecordPath(jobLogDir, program);
  return { input, changes: changes.length === 0 ? undefined : `${changes.join('; ')} (${path})` };
}

/**
 * Says before the first training step what would be wrong with the ids of a dataset that is read later. No data is read.
 *
 * @returns false where the tokenizer has to see the data first.
 * @throws JobError and ConfigError as `openDataset`
 */
export function checkDataset(
  options: JobOptions,
  task: SingleTask,
  dataset: Config<inputs.BaseInput>,
): boolean {
  const training = recordedData(options.jobLogDir, TRAIN) ?? {};
  const input = build(inputs.withTokenizerOf(dataset, training));
  const identity = input.knownIdentity();
  if (identity !== null) checkIdentity(options, task, input.name, identity);
  return identity !== null;
}

/** Ids must be those that training has, and that the model knows. */
function checkIdentity(
  { jobLogDir }: JobOptions,
  task: SingleTask,
  name: string,
  identity: inputs.DataIdentity,
): void {
  checkTokenizer(name, identity, recordedData(jobLogDir, TRAIN), dataRecordPath(jobLogDir, TRAIN));
  checkVocabulary(task, name, identity);
}

/**
 * Its prefetch thread loads the experiment's module only where the dataset has classes of its own: an experiment brings
 * the whole framework with it, which would keep the thread busy for the first steps.
 */
function openAs(
  { jobLogDir, moduleUrl }: JobOptions,
  dataset: Config<inputs.BaseInput>,
  training: inputs.DataIdentity | undefined,
): inputs.InputSource {
  const classes = iterate(dataset, { defaults: true }).map(({ config }) => classOf(config));
  const modules = classes.every((cls) => builtIn.has(cls)) ? [] : [moduleUrl];
  const config = inputs.withTokenizerOf(dataset, training ?? {});
  try {
    return inputs.openInput(config, { modules });
  } catch (error) {
    if (config === dataset || !(error instanceof inputs.InputError)) throw error;
    const fixed = `The run is trained with the tokenizer of ${dataRecordPath(jobLogDir, TRAIN)}.`;
    throw new inputs.InputError(`${error.message} ${fixed}`, { cause: error });
  }
}

function checkTokenizer(
  name: string,
  { tokenizer: now }: inputs.DataIdentity,
  training: inputs.DataIdentity | undefined,
  record: string,
): void {
  const before = training?.tokenizer;
  if (now === undefined || before === undefined || now.identity === before.identity) return;
  throw new JobError(
    `Input '${name}': its tokenizer is ${now.identity}, and the run is trained with ${before.identity} (${record}). ` +
      'The same ids would mean other text: give the input the tokenizer of training, or use another --job_log_dir.',
  );
}

/** More ids than the model has embeddings for would be read as others, or fail at some step. */
function checkVocabulary(
  { model }: SingleTask,
  name: string,
  { vocabSize: ids, tokenizer }: inputs.DataIdentity,
): void {
  if (ids === undefined || !(model instanceof LanguageModel)) return;
  const { vocabSize } = model.hp.lmTpl;
  if (ids <= vocabSize) return;
  const path = 'task.model.lmTpl.vocabSize';
  const whose = tokenizer === undefined ? 'the input' : `its tokenizer, ${tokenizer.class},`;
  throw new ConfigError(
    `Input '${name}': ${whose} has ${ids} ids, and ${path} is ${vocabSize}: the model knows ids 0 to ${vocabSize - 1}. ` +
      `Set ${path} to ${ids} or more, or give the input a tokenizer with fewer ids.`,
    { path },
  );
}
