/** @file TrainProgram: gradients of a batch, then the learner's update (paxml's SingleTaskTrainProgram). */
import {
  type Executable,
  firstNonFinite,
  foldIn,
  type HostTensor,
  hashString,
  heldViews,
  IndexError,
  type NonFinite,
  type PrngKey,
  prngKey,
  type Tree,
} from '../compiler/index.js';
import type { BatchCount, BatchKind, InputSource, InputState, Skipped } from '../inputs/index.js';
import type { FlatUpdater, UpdateReport } from '../learners/index.js';
import { type JobOptions, phase, timed } from '../runs/index.js';
import { metricValues, type SingleTask, trainStep, type WeightedValues } from '../tasks/index.js';
import type { BatchBuffers, RowNames } from './batchBuffers.js';
import { BatchFeed, type Reading } from './batchFeed.js';
import { CorruptionCheck } from './corruptionCheck.js';
import { type TextsOf, textsOf } from './gatheredMedia.js';
import { type KindStep, KindSteps } from './kindSteps.js';
import { agree, announce, RankFailure } from './ranks/agreement.js';
import { optionsOfRanks } from './ranks/rankStep.js';
import type { BoundStep, StepOutputs } from './stepCalls.js';
import { hostParams, type TrainMemory } from './taskState.js';

/** Results of a training step. */
export interface TrainReport {
  readonly loss: number;
  readonly metrics: WeightedValues;
  /** Summaries of layers, by name. */
  readonly summaries: Readonly<Record<string, number>>;
  readonly update: UpdateReport;
}

/** Latency budget of a call in seconds: signals and the console wait for its end. */
const CALL_SECONDS = 0.1;

/** Takes training steps on a state, in place. */
export class TrainProgram {
  private readonly stream: PrngKey;
  /** Steps that are taken twice, and compared. */
  readonly check: CorruptionCheck;
  /** Position of the last step's batch in the buffers. */
  #lastPlace = 0;
  /** Whether an update is in progress or was interrupted. */
  #isUpdating = false;

  private constructor(
    /** Those that it was made with; where several ranks train, with rank 0's choices. */
    readonly options: JobOptions,
    main: SingleTask,
    readonly state: TrainMemory,
    private readonly input: InputSource,
    private readonly feed: BatchFeed,
    private readonly steps: KindSteps,
    /** The step of the last batch, or of the first. */
    private present: KindStep,
  ) {
    this.stream = foldIn(prngKey(main.hp.train.hp.randomSeed), hashString('train'));
    const { runner } = present.step.executable;
    const hint =
      runner === 'native' ? '' : ` Or the engine (${runner}) adds in no fixed order: see --engine=native.`;
    this.check = new CorruptionCheck(
      state.split?.parts ?? state,
      main.hp.train.hp.corruptionCheckIntervalSteps,
      hint,
    );
  }

  /**
   * Compiles the step for the shapes of the input's next batch, without taking it. Of several ranks, each has an input of its
   * own rows.
   *
   * @throws JobError if the input is empty.
   */
  static async create(
    given: JobOptions,
    task: SingleTask,
    state: TrainMemory,
    input: InputSource,
    reading: Reading = (read) => read(),
  ): Promise<TrainProgram> {
    const options = given.ranks ? await optionsOfRanks(given, given.ranks) : given;
    const steps = new KindSteps({ options, task, state, input });
    steps.check();
    const feed = new BatchFeed(input, reading);
    const batch = await timed(options, 'first_batch', () => feed.peek(state.step));
    const present = await steps.compile(feed.kind, batch);
    return new TrainProgram(options, task, state, input, feed, steps, present);
  }

  /** The compiled step and its memory. */
  get step(): BoundStep {
    return this.present.step;
  }

  /** The task that it trains. */
  get task(): SingleTask {
    return this.present.task;
  }

  /** Counts of a batch, for throughput. */
  get batch(): BatchCount {
    return this.present.batch;
  }

  /** The compiled step. */
  get executable(): Executable {
    return this.step.executable;
  }

  /** The memory of batches. */
  get buffers(): BatchBuffers {
    return this.step.buffers;
  }

  /** Source of norms of gradients and parameters. */
  get updater(): FlatUpdater {
    return this.step.updater;
  }

  /** Most steps per call of `runSteps`. */
  get mostSteps(): number {
    return this.input.followsTraining === true ? 1 : this.step.mostSteps;
  }

  /** Steps per call within the latency budget; one while the step time is unknown. */
  timelySteps(stepSeconds: number | undefined): number {
    const timely = stepSeconds === undefined ? 1 : Math.floor(CALL_SECONDS / stepSeconds);
    return Math.max(1, Math.min(timely, this.mostSteps));
  }

  /** Takes one step. */
  async run(): Promise<TrainReport> {
    const [report] = await this.runSteps(1);
    return report!;
  }

  /**
   * Takes several steps in one call. All randomness depends only on seed and step, so results do not depend on how
   * steps are grouped into calls.
   *
   * @param count from 1 to `mostSteps`; fewer steps are taken if the input ends, at least one.
   * @param loaded called before the first step, once its batch and key are in place.
   * @throws JobError if the input has ended or an index is out of range, or where a step that is taken twice has two
   *   results; RangeError for another count; errors of the input. Steps before the failing one are taken first.
   */
  async runSteps(count: number, loaded?: () => Promise<void>): Promise<TrainReport[]> {
    const { options, state, feed, mostSteps } = this;
    if (!(count >= 1 && count <= mostSteps))
      throw new RangeError(`${count} steps at once, and the program takes 1 to ${mostSteps}`);
    const { ranks } = options;
    if (ranks?.rank === 0) await announce(ranks, 'step');
    const first = state.step;
    const load = () => this.#load(first, count);
    const [kind, loadedSteps] = await (ranks ? agree(ranks, load) : load());
    const { call, keys, steps, updater } = this.step;
    const own = this.steps.ownSteps(kind, first);
    for (let i = 0; i < loadedSteps; i++) {
      keys.set(foldIn(this.stream, first + i), 2 * i);
      steps[i] = first + i;
      updater.prepare(own + i, i);
    }
    await loaded?.();
    let taken = loadedSteps;
    let failure: unknown;
    this.#isUpdating = true;
    try {
      await phase(options, 'step', () => this.#take(first + 1, taken));
    } catch (error) {
      if (error instanceof RankFailure) this.#isUpdating = false;
      if (!(error instanceof IndexError)) throw error;
      // Steps before the one with the bad index are complete; that one has changed nothing.
      taken = error.run;
      failure = await feed.refuse(this.present, error, first + taken + 1);
    }
    this.#isUpdating = false;
    if (taken === 0) throw failure;
    state.step = first + taken;
    feed.trained(taken);
    this.#lastPlace = taken - 1;
    const [outputs] = call.outputs as unknown as [StepOutputs];
    return Array.from({ length: taken }, (_, i) => reportOf(outputs, updater.report(i), i, kind?.part));
  }

  /** Loads the batches of a call's steps. @returns their kind, and how many they are */
  async #load(first: number, count: number): Promise<[BatchKind | null, number]> {
    const { options, feed } = this;
    const kind = await this.#turnToNextKind();
    const most = Math.min(count, this.mostSteps);
    const loaded = await timed(options, 'input_wait', () =>
      phase(options, 'input', () => feed.load(this.present, first, most)),
    );
    return [kind, loaded];
  }

  /** Compiles the step of the next batch's kind, if it is the first of its kind. */
  async #turnToNextKind(): Promise<BatchKind | null> {
    const { options, feed, steps } = this;
    const { kind } = feed;
    if (feed.hasFailed) return kind;
    const compiled = steps.get(kind);
    if (compiled === undefined) {
      const batch = await timed(options, 'input_wait', () => feed.peek(this.state.step));
      this.present = await timed(options, 'compile', () => steps.compile(kind, batch));
    } else this.present = compiled;
    return kind;
  }

  /** Takes the steps of a call, the first of them twice where it is to be checked: such a call has no other. */
  async #take(step: number, count: number): Promise<void> {
    const { call } = this.step;
    if (count === 1 && this.check.isAt(step))
      await this.check.takeTwice(step, async () => {
        await call.run(1);
        const [{ loss }] = call.outputs as unknown as [StepOutputs];
        return loss.data[0]!;
      });
    else await call.run(count);
  }

  /** Rows of each batch of all hosts together. */
  get globalBatchSize(): number {
    return this.input.getGlobalBatchSize();
  }

  /** Seconds that steps have waited for their batches. */
  get inputSeconds(): number {
    return this.feed.seconds;
  }

  /** Examples left out of the batches since the last call. */
  takeSkipped(): Skipped {
    return this.input.skipped.take();
  }

  /** Summaries of layers in the last step that are no scalars, by name. */
  get media(): StepOutputs['media'] {
    const [{ media }] = this.step.call.outputs as unknown as [StepOutputs];
    return media;
  }

  /** Texts of ids by the input's vocabulary. */
  get textsOf(): TextsOf {
    return textsOf(this.input);
  }

  /** Names of the data rows of a step of the last call, from 0; none where the input knows no names. */
  rowNames(step: number): Promise<RowNames> {
    return this.feed.rowNames(step);
  }

  /** The input's state after the last trained batch. */
  get inputState(): InputState {
    return this.feed.state;
  }

  /** Whether the state is that of a completed step, not of a failed update. */
  get isWhole(): boolean {
    return !this.#isUpdating;
  }

  /**
   * Reruns the last step with checks. It computes the same with the parameters that it began with, which are still those
   * of the state where its update was skipped.
   *
   * @returns the first non-finite value, if any.
   */
  firstNonFinite(params = this.state.params): Promise<NonFinite | undefined> {
    const { task, state, step, stream } = this;
    const key = Int32Array.from(foldIn(stream, state.step - 1));
    const inputs = {
      params: hostParams({ layout: state.layout, views: heldViews(state.layout, params) }),
      batch: step.buffers.batchAt(this.#lastPlace) as unknown as Tree<HostTensor>,
      prngKey: { shape: [2], dtype: 'int32', data: key } satisfies HostTensor,
      step: { shape: [], dtype: 'int32', data: Int32Array.of(state.step - 1) } satisfies HostTensor,
    };
    const { numThreads } = this.options;
    return firstNonFinite(trainStep(task), inputs, numThreads === undefined ? {} : { numThreads });
  }
}

/** The report of step `i` of a call. @param part name of the batch's input, of several, by which metrics are told */
function reportOf(
  { loss, metrics, summaries }: StepOutputs,
  update: UpdateReport,
  i: number,
  part?: string,
): TrainReport {
  const values = metricValues(metrics, i);
  const own = Object.fromEntries(Object.entries(summaries).map(([name, { data }]) => [name, data[i]!]));
  const value = loss.data[i]!;
  if (part === undefined) return { loss: value, metrics: values, summaries: own, update };
  const named = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).map(([name, each]) => [`${part}/${name}`, each]));
  return {
    loss: value,
    metrics: named({ loss: { value, weight: 1 }, ...values }),
    summaries: named(own),
    update: { ...update, auxiliary: { ...update.auxiliary, [part]: update.learningRate } },
  };
}
