/** @file A program's dataset: opened at first use, with training's tokenizer, and compared with its record. */
import { createHash } from 'node:crypto';
import { build, type Config, ConfigError } from '../hparams/index.js';
import * as inputs from '../inputs/index.js';
import { JobError, type JobOptions } from '../runs/index.js';
import type { ProgramInput, SingleTask } from '../tasks/index.js';
import { type DataRecords, recordsIn } from './dataRecord.js';
import { checkAgreement, checkVocabulary } from './inputAgreement.js';
import { rowShare } from './ranks/jobMesh.js';

/** Name of the training program. */
export const TRAIN = 'train';

/** The only dataset with isTraining, or a rank's share of it. @throws ConfigError if there are none or several, and as `hostShare` */
export function trainingDataset({
  name,
  datasets,
  ...options
}: Pick<JobOptions, 'name' | 'datasets' | 'ranks' | 'mesh'>): Config<inputs.BaseInput> {
  const training = datasets.filter((dataset) => dataset.isTraining);
  const { index, count } = rowShare(options);
  if (training.length === 1) return count === 1 ? training[0]! : inputs.hostShare(training[0]!, index, count);
  const found = training.map((d) => `'${d.name ?? 'train'}'`).join(', ') || 'none';
  // Of other models an experiment gives some.
  const why =
    datasets.length === 0 ? ' A model that is imported without its tokenizer.json has no datasets.' : '';
  throw new ConfigError(
    `${name}: datasets() must have one dataset with isTraining true, it has ${found}.${why}`,
  );
}

/** The dataset of one program. */
export class ProgramDataset {
  #input: inputs.InputSource | undefined;
  #changes: string | undefined;
  #digest = '';

  /**
   * @param data its config, or an input, which stays its owner's to close
   * @param record name of its record: `train`, `eval_test_<dataset>`, `decode_test_<dataset>`
   * @param records those of the run
   */
  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    readonly data: ProgramInput,
    private readonly record: string,
    private readonly records: DataRecords = recordsIn(options.jobLogDir),
  ) {}

  /** Its name in messages and directories. */
  get name(): string {
    return this.data instanceof inputs.BaseInput ? this.data.name : (this.data.name ?? 'input');
  }

  /** How evaluations and decodes read it. */
  get settings(): Pick<Config<inputs.BaseInput>, 'evalLoopNumBatches' | 'resetForEval'> {
    return this.data instanceof inputs.BaseInput ? this.data.hp : this.data;
  }

  /**
   * Opens the input. A tokenizer that learns its vocabulary gets that of training, however the corpus has changed
   * since.
   *
   * @throws InputError for invalid data, JobError for a tokenizer with other ids than training's, ConfigError for one
   *   with more ids than the model, or settings that disagree with the model's.
   */
  open(): inputs.InputSource {
    this.#input ??= this.#open();
    return this.#input;
  }

  /**
   * Checks settings and ids before the first training step. Reads data only if the tokenizer learns from it.
   *
   * @throws as `open`
   */
  check(): void {
    const input = this.build();
    checkAgreement(this.task, input);
    const known = input.knownIdentity();
    if (known === null) this.open();
    else this.#checkIds(known, input);
  }

  /** The input by its config alone, unopened. */
  build(): inputs.BaseInput {
    const { data } = this;
    return data instanceof inputs.BaseInput ? data : build(this.#fixedConfig(data));
  }

  /** Digest of the data, which is opened. */
  get digest(): string {
    this.open();
    return this.#digest;
  }

  /** Differences between the data and its record, returned once; undefined without any. */
  takeChanges(): string | undefined {
    const changes = this.#changes;
    this.#changes = undefined;
    return changes;
  }

  async close(): Promise<void> {
    if (this.#input !== this.data) await this.#input?.close();
  }

  /** The record of the training data, if there is one. */
  get #training(): inputs.DataIdentity | undefined {
    return this.records.read(TRAIN);
  }

  get #trainingRecord(): string {
    return this.records.pathOf(TRAIN);
  }

  #fixedConfig(config: Config<inputs.BaseInput>): Config<inputs.BaseInput> {
    return inputs.withRecorded(config, this.#training ?? {});
  }

  #open(): inputs.InputSource {
    const { record, records } = this;
    checkAgreement(this.task, this.build());
    const input = this.#openInput();
    const identity = inputs.withDigests(inputs.recordedIdentity(input));
    this.#checkIds(identity, input);
    this.#digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16);
    const recorded = records.read(record);
    if (recorded === undefined && Object.keys(identity).length > 0) records.write(record, identity);
    const changes = recorded === undefined ? [] : inputs.dataChanges(recorded, identity);
    if (changes.length > 0) this.#changes = `${changes.join('; ')} (${records.pathOf(record)})`;
    return input;
  }

  #openInput(): inputs.InputSource {
    const { data } = this;
    if (data instanceof inputs.BaseInput) return data;
    const config = this.#fixedConfig(data);
    const { moduleUrl } = this.options;
    try {
      if (!this.records.readsAhead) return build(config);
      return inputs.openInput(config, { modules: moduleUrl === '' ? [] : [moduleUrl] });
    } catch (error) {
      if (config === data || !(error instanceof inputs.InputError)) throw error;
      const fixed = `The run is trained with the tokenizer of ${this.#trainingRecord}.`;
      throw new inputs.InputError(`${error.message} ${fixed}`, { cause: error });
    }
  }

  /** Checks that ids mean the same as in training, and fit the model's vocabulary. */
  #checkIds(identity: inputs.DataIdentity, input: Pick<inputs.InputSource, 'name' | 'vocabularyFor'>): void {
    this.#checkTokenizer(identity, input.name);
    this.#checkParts(identity, input.name);
    checkVocabulary(this.task, input, identity);
  }

  #checkParts(identity: inputs.DataIdentity, name: string): void {
    const [changed] = inputs.changedParts(this.#training ?? {}, identity);
    if (changed === undefined) return;
    throw new JobError(
      `Input '${name}': ${changed.path || 'it'} has ${changed.now}, and the run is trained with ${changed.before} ` +
        `(${this.#trainingRecord}). The same numbers would mean something else: restore what it reads, or use another ` +
        '--job_log_dir.',
    );
  }

  #checkTokenizer({ tokenizer: now }: inputs.DataIdentity, name: string): void {
    const before = this.#training?.tokenizer;
    if (now === undefined || before === undefined || now.identity === before.identity) return;
    throw new JobError(
      `Input '${name}': its tokenizer is ${now.identity}, and the run is trained with ${before.identity} ` +
        `(${this.#trainingRecord}). ` +
        'The same ids would mean other text: give the input the tokenizer of training, or use another --job_log_dir.',
    );
  }
}
