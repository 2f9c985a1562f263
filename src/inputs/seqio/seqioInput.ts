/** @file SeqioInput: batches of a task or a mixture (Pax's SeqIOInput). */
import { build, type Config, toJSON } from '../../hparams/index.js';
import { type Batch, type BatchSpecs, type BatchUnit, TOKEN_UNIT } from '../batch.js';
import { EXAMPLE_IDS, paddingOf } from '../batchRows.js';
import { type DataIdentity, withRecorded } from '../dataIdentity.js';
import { ExampleInput } from '../exampleInput.js';
import { EndOfData, InputError } from '../inputErrors.js';
import type { ExampleMetrics, ExampleOptions, IdVocabulary, InputState, RowTraits } from '../inputSource.js';
import type { JsonValue } from '../jsonValue.js';
import { type PartStates, recordedParts } from '../recordedParts.js';
import { savedPosition } from '../savedPosition.js';
import { SkippedExamples } from '../skippedExamples.js';
import type { BaseFeatureConverter, Segment } from './featureConverter.js';
import { InputCaches } from './inputCaches.js';
import type { LaneSetting } from './lane.js';
import { joinLanes, type Lanes, lanesState } from './lanes.js';
import { type Measured, PREDICTIONS, SCORES, TaskEvaluation } from './metrics/taskEvaluation.js';
import { alignedExample, alignedExamples, laneExamples, type NumberedExample } from './numberedExamples.js';
import { areOneToOne } from './preprocessor.js';
import { rowsOfExamples } from './rowsOfExamples.js';
import { newLanes, type OpenData, openData } from './seqioData.js';
import { seqioFields, seqioRules } from './seqioFields.js';
import { answerFeature, type MixtureOrTask, Task, vocabularyIdentity, withoutMetrics } from './seqioTask.js';
import { SequenceModelFeatures } from './sequenceModelFeatures.js';
import type { TaskCache } from './taskCache.js';
import { digestOf } from './taskExamples.js';

/**
 * Examples of tasks as batches. Training shuffles and repeats; evaluations read in order, once. Where each example gives
 * one row, the state is the number of rows that all hosts have read. Where rows are packed, or preprocessors drop or split
 * examples, or tasks are mixed, it is the place in each of `numLanes` lanes. A run resumes exactly, and with
 * another batch size or number of hosts it neither repeats nor drops an example.
 */
export class SeqioInput extends ExampleInput.with(seqioFields, seqioRules) {
  #mixture!: MixtureOrTask;
  #converter!: BaseFeatureConverter;
  #caches!: InputCaches;
  /** Opened on first use. */
  #data: OpenData | undefined;
  #digest: string | undefined;

  protected override setup(): void {
    super.setup();
    this.#mixture = build(this.hp.mixtureOrTask);
    this.#converter = build(this.hp.featureConverter);
    this.#caches = new InputCaches(this.name, this.hp, this.#mixture, () => this.#learned());
    const { taskFeatureLengths: lengths } = this.hp;
    this.named(() => {
      for (const { hp } of this.#tasks) this.#converter.readFeatures({ features: hp.features, lengths });
      this.#caches.chooseRecords();
    });
    if (this.repeats && !this.#isAligned && this.hp.numInfeedHosts > this.hp.numLanes)
      throw new InputError(
        `Input '${this.name}': numLanes is ${this.hp.numLanes}, and ${this.hp.numInfeedHosts} hosts need one each.`,
      );
  }

  /** `repeat` with its default. */
  override get repeats(): boolean {
    return this.hp.repeat ?? this.hp.isTraining;
  }

  override get isEndless(): boolean {
    return this.repeats;
  }

  /** Rows are numbered before they are shuffled: each task has its own order. */
  protected override get shuffles(): boolean {
    return false;
  }

  /** The rows of data without lanes. */
  protected override get numRows(): number {
    if (this.repeats) return Number.POSITIVE_INFINITY;
    const [{ size } = { size: 0 }] = this.#open().tasks;
    const count = Math.min(size, this.hp.evalNumExamples ?? size);
    return this.hp.evalAutoPad ? count : count - (count % this.getGlobalBatchSize());
  }

  override get batchUnit(): BatchUnit {
    return TOKEN_UNIT;
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, taskFeatureLengths } = this.hp;
    const specs = this.#converter.batchSpecs(batchSize, taskFeatureLengths);
    return this.#isEnumerated ? { ...specs, [EXAMPLE_IDS]: { shape: [batchSize], dtype: 'int32' } } : specs;
  }

  override async getNext(): Promise<Batch> {
    const { lanes } = this.#open();
    return lanes === null ? super.getNext() : this.#batchOf(lanes);
  }

  override numReaders(most: number): number {
    const { lanes } = this.#open();
    return lanes === null ? super.numReaders(most) : lanes.numReaders(most);
  }

  override async skip(batches: number): Promise<void> {
    const { lanes } = this.#open();
    if (lanes === null) await super.skip(batches);
    else lanes.skip(batches);
  }

  override async peek(): Promise<Batch> {
    const { lanes } = this.#open();
    if (lanes === null) return super.peek();
    const { state } = lanes;
    try {
      return await this.skipped.uncounted(async () => this.#batchOf(lanes));
    } finally {
      lanes.state = state;
    }
  }

  override reset(): void {
    super.reset();
    const { lanes, setting } = this.#open();
    if (lanes !== null) lanes.state = newLanes(setting, this.hp).state;
  }

  override getState(): InputState {
    const { lanes } = this.#open();
    return lanes === null ? super.getState() : ({ ...lanes.state, ...this.identity() } as InputState);
  }

  override setState(state: InputState): void {
    const { lanes, setting } = this.#open();
    if (lanes === null) super.setState(state);
    else {
      savedPosition(this.name, { ...state, position: 0 }, this.identity());
      lanes.state = lanesState(this.name, state, setting);
    }
  }

  /**
   * The state from which any number of hosts can continue after several shared the data: the furthest of each lane.
   *
   * @param states of all hosts, after as many batches. @throws InputError for states of other data.
   */
  override joinStates(states: readonly InputState[]): InputState {
    const { lanes, setting } = this.#open();
    const identity = this.identity();
    const positions = states.map((state) =>
      savedPosition(this.name, lanes === null ? state : { ...state, position: 0 }, identity),
    );
    if (lanes === null) return { position: Math.max(...positions), ...identity };
    const joined = joinLanes(states.map((state) => lanesState(this.name, state, setting)));
    return { ...joined, ...identity } as unknown as InputState;
  }

  /** The places of the records that rows were made of. */
  override async rowNames(state: InputState): Promise<readonly string[]> {
    const { lanes, setting } = this.#open();
    if (lanes === null) return super.rowNames(state);
    const places = new Map<number, () => string>();
    const onExample: LaneSetting['onExample'] = (id, _task, { place }) => places.set(id, place);
    // One lane makes all rows of a batch, so that numbers of examples are those of that lane.
    const again = newLanes({ ...setting, skipped: new SkippedExamples(), onExample }, this.hp);
    again.state = lanesState(this.name, state, setting);
    const rows = again.next() ?? [];
    return rows.map((row) => [...new Set(row.map(({ id }) => places.get(id)!()))].join(' + '));
  }

  protected override rowName(q: number): string {
    return this.#open().setting.tasks[0]!.at(q).place();
  }

  override rowTraits(): RowTraits {
    const { labels, hp } = this.#converter;
    return {
      ...(labels && { labels }),
      ...{ isPadded: true, ...(hp.pack && { packedBy: 'featureConverter.pack' }) },
    };
  }

  /** Encoders read the feature `inputs`; all else are ids of answers. */
  override vocabularyFor(path: string): IdVocabulary {
    const { hp: task } = this.#tasks[0]!;
    const feature = path.startsWith('src.') ? task.features.inputs! : answerFeature(task);
    const { vocabSize, hp } = feature;
    const converter = this.#converter;
    const { bosId } = converter instanceof SequenceModelFeatures ? converter.hp : {};
    return {
      ...{ vocabSize, unkId: hp.tokenizer.unkId },
      ...(path.startsWith('tgt.') && bosId !== undefined && { targetStart: [bosId] }),
      decode: (ids) => feature.decode(ids),
      hasText: (id) => feature.hasText(id),
      tokenBytes: (id) => hp.tokenizer.tokenBytes(id),
    };
  }

  /**
   * A row for each example, as the preprocessors of the first task make one: of a record as its source has it, or of a text, which
   * is the `inputs` of a record without targets.
   */
  override async exampleBatch(
    examples: readonly unknown[],
    _paths: readonly string[],
    { first }: ExampleOptions,
  ): Promise<Batch> {
    const { taskFeatureLengths: lengths } = this.hp;
    return rowsOfExamples(examples, this.#tasks[0]!, this.#converter, { lengths, first });
  }

  override dataIdentity(): DataIdentity {
    const { tasks, contents } = this.#open();
    return { ...this.knownIdentity(), files: tasks.flatMap(({ table }) => table.files), contents };
  }

  override recordedParts(): PartStates {
    return recordedParts(this.#mixture, ['mixtureOrTask']);
  }

  override knownIdentity(): DataIdentity {
    return vocabularyIdentity(this.#tasks);
  }

  override predictMetrics(): ExampleMetrics<ArrayLike<number>> | null {
    return this.#evaluationOf(PREDICTIONS);
  }

  override scoreMetrics(): ExampleMetrics<number> | null {
    const evaluation = this.#evaluationOf(SCORES);
    if (evaluation === null || this.#converter.weighsTargetsAlone(this.hp.taskFeatureLengths))
      return evaluation;
    throw new InputError(
      `Input '${this.name}': score metrics are of the targets' likelihood, and the converter gives inputs a weight, too: ` +
        'set weightsOnTargetsOnly to true.',
    );
  }

  override async close(): Promise<void> {
    for (const task of this.#tasks) task.close();
    this.#data = undefined;
  }

  /** The caches of the tasks in a directory, whether there or not. */
  taskCaches(directory: string): TaskCache[] {
    return this.named(() => this.#caches.in(directory));
  }

  protected override emptyBatch(): Batch {
    return paddingOf(this.batchSpecs());
  }

  protected override fillRow(q: number, batch: Batch, b: number): void {
    this.#fill(batch, b, [alignedExample(this.#open().setting, q).segment]);
  }

  /** Identity of the rows: a saved position is valid for equal ones only. */
  protected override identity(): { readonly [name: string]: JsonValue } {
    const { packingRows, numLanes } = this.hp;
    return {
      data: this.#open().contents,
      config: this.#configDigest,
      shuffle: this.#shuffles,
      repeat: this.repeats,
      seed: this.hp.inputRandomSeed ?? 0,
      ...(!this.#isAligned && { numLanes: this.repeats ? numLanes : 1, packingRows }),
    };
  }

  /**
   * The tasks' config without metrics, the same with or without the learned state of tokenizers, which other threads
   * are given.
   */
  #learned(): Config<MixtureOrTask> {
    return withoutMetrics(withRecorded(this.hp.mixtureOrTask, this.knownIdentity()));
  }

  get #tasks(): readonly Task[] {
    return [...new Set(this.#mixture.tasks())];
  }

  get #shuffles(): boolean {
    return this.hp.isTraining && this.hp.shuffle !== false;
  }

  /** Whether rows have the numbers of their examples: a packed row has several. */
  get #isEnumerated(): boolean {
    return !this.hp.isTraining && !this.#converter.hp.pack;
  }

  /** Whether each example gives one row. */
  get #isAligned(): boolean {
    const [task, ...others] = this.#tasks;
    const isOneToOne = areOneToOne(task!.stages.slice(task!.firstStage));
    return others.length === 0 && isOneToOne && !this.#converter.hp.pack;
  }

  #evaluationOf<Output>(measured: Measured<Output>): TaskEvaluation<Output> | null {
    const hasMetrics = this.#tasks.some((task) => Object.keys(measured.metricsOf(task)).length > 0);
    if (!hasMetrics || !this.#isEnumerated || this.repeats) return null;
    const isLone = this.#mixture instanceof Task;
    return new TaskEvaluation(this.name, measured, () => this.#numberedExamples(), isLone);
  }

  #numberedExamples(): Iterable<NumberedExample> {
    const { setting, lanes } = this.#open();
    if (lanes === null) return alignedExamples(setting, this.numRows);
    return laneExamples(setting, this.hp.evalAutoPad ? 1 : this.getGlobalBatchSize());
  }

  #batchOf(lanes: Lanes): Batch {
    const rows = this.named(() => lanes.next());
    if (rows === undefined) throw new EndOfData(this.name);
    const batch = this.emptyBatch();
    for (const [b, row] of rows.entries()) this.#fill(batch, b, row);
    return batch;
  }

  #fill(batch: Batch, b: number, segments: readonly Segment[]): void {
    this.#converter.fill(batch, b, segments, this.hp.taskFeatureLengths);
    exampleIdsOf(batch)?.fill(segments[0]!.id, b, b + 1);
  }

  #open(): OpenData {
    this.#data ??= this.named(() =>
      openData(this.hp, {
        mixture: this.#mixture,
        tasks: this.#tasks,
        converter: this.#converter,
        shuffles: this.#shuffles,
        repeats: this.repeats,
        isAligned: this.#isAligned,
        skipped: this.skipped,
      }),
    );
    return this.#data;
  }

  /** Digest of the settings that determine the rows. */
  get #configDigest(): string {
    const { featureConverter, taskFeatureLengths, splitName } = this.hp;
    this.#digest ??= digestOf([
      toJSON(this.#learned(), { modules: false }),
      toJSON(featureConverter, { modules: false }),
      taskFeatureLengths,
      splitName,
    ]);
    return this.#digest;
  }
}

/** The numbers of a batch's examples, where it has them. */
function exampleIdsOf(batch: Batch): Int32Array | undefined {
  return (batch[EXAMPLE_IDS] as { readonly data: Int32Array } | undefined)?.data;
}
