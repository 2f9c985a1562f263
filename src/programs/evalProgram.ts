/** @file EvalProgram: metrics of one dataset at the current parameters (paxml's SingleTaskEvalProgram). */
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import type { Config } from '../hparams/index.js';
import {
  type BaseInput,
  type Batch,
  describeSkipped,
  InputError,
  type InputSource,
  type InputState,
  type JsonValue,
  nextBatch,
  peekBatch,
} from '../inputs/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import type { EvalSteps } from './evalStep.js';
import { JobError } from './jobErrors.js';
import { MeasuredEvaluation } from './measuredEvaluation.js';
import type { JobOptions } from './options.js';
import { ProgramDataset } from './programDataset.js';
import type { EvalResult } from './results.js';
import type { Run } from './run.js';

const inputState = z.custom<InputState>((state) => typeof state === 'object' && state !== null);

/** Input positions before and after an evaluation that does not restart its data. */
const rollingPosition = z.strictObject({
  /** The training step of the evaluation. */
  step: z.int(),
  /** null means the first batch. */
  from: inputState.nullable(),
  to: inputState,
});

/** Evaluates one dataset, opening its input at first use. */
export class EvalProgram implements Program<Run> {
  readonly phase = 'evaluation';
  /** `eval_test_<dataset>`. */
  readonly name: string;
  readonly dataset: ProgramDataset;
  #position: z.infer<typeof rollingPosition> | undefined;

  constructor(
    options: JobOptions,
    private readonly task: SingleTask,
    private readonly steps: EvalSteps,
    dataset: Config<BaseInput>,
  ) {
    this.name = `eval_test_${dataset.name ?? 'input'}`;
    this.dataset = new ProgramDataset(options, task, dataset, this.name);
  }

  isDue(step: number, isLast: boolean): boolean {
    return isEvaluated(this.task, step, isLast);
  }

  async run(run: Run): Promise<undefined> {
    run.evaluated(this.name, await this.evaluate(run));
  }

  /**
   * Evaluates the batches that `evalLoopNumBatches` and `resetForEval` select. Padding rows have weight 0, so the
   * result does not depend on how examples are batched. Repeated at the same step, it reads the same batches.
   *
   * @throws InterruptedError if the run is stopped; a resumed run restarts the evaluation.
   */
  async evaluate(run: Pick<Run, 'step' | 'throwIfStopped'>): Promise<EvalResult> {
    const { step } = run;
    const input = this.dataset.open();
    const limit = batchLimit(this.dataset.config, input);
    const isRolling = !this.dataset.config.resetForEval && limit !== -1;
    input.reset();
    const last = this.#position;
    const from = last?.step === step ? last.from : (last?.to ?? null);
    if (isRolling && from !== null) restorePosition(input, from);
    const take = () => (isRolling ? nextBatchAround(input) : nextBatch(input));
    const evaluation = new MeasuredEvaluation(this.task, this.steps, input);
    let batches = 0;
    for (let batch = await take(); batch; ) {
      run.throwIfStopped();
      const isLast = ++batches === limit;
      // Prepares the next batch while this one is evaluated.
      const working = evaluation.add(batch);
      const taking = isLast ? undefined : setImmediate().then(take);
      // After an error, nothing keeps running in the background.
      await Promise.allSettled([working, taking]);
      await working;
      batch = await taking;
    }
    const skipped = input.skipped.take();
    if (batches === 0) {
      const why = skipped.count === 0 ? '' : ` (${describeSkipped(skipped)})`;
      throw new JobError(`Input '${input.name}' has no batch to evaluate${why}.`);
    }
    if (isRolling) this.#position = { step, from, to: input.getState() };
    return evaluation.result(this.dataset.takeChanges(), skipped);
  }

  getState(): JsonValue | undefined {
    return this.#position;
  }

  /** Resumes at the position of an earlier process. */
  setState(state: JsonValue): void {
    this.#position = rollingPosition.parse(state);
  }

  close(): Promise<void> {
    return this.dataset.close();
  }
}

/** Evaluates the next training batch without taking it. */
export class EvalTrainProgram implements Program<Run> {
  readonly phase = 'evaluation';
  readonly name = 'eval_train';

  constructor(
    private readonly task: SingleTask,
    private readonly steps: EvalSteps,
    private readonly input: InputSource,
  ) {}

  isDue(step: number, isLast: boolean): boolean {
    return isEvaluated(this.task, step, isLast);
  }

  async run(run: Run): Promise<undefined> {
    const { input } = this;
    const evaluation = new MeasuredEvaluation(this.task, this.steps, input);
    const batch = await peekBatch(input);
    // Data that ends with the last training step has no further batch.
    if (batch === undefined) return;
    await evaluation.add(batch);
    run.evaluated(this.name, evaluation.result());
  }

  async close(): Promise<void> {}
}

function isEvaluated({ hp }: SingleTask, step: number, isLast: boolean): boolean {
  return isLast || step % hp.train.hp.evalIntervalSteps === 0;
}

/** Number of batches per evaluation; -1 means to the end of the data. @throws JobError for endless data */
function batchLimit(dataset: Config<BaseInput>, input: InputSource): number {
  const { evalLoopNumBatches, resetForEval } = dataset;
  const limit = evalLoopNumBatches ?? (resetForEval && !input.isEndless ? -1 : 1);
  if (limit !== -1 || !input.isEndless) return limit;
  throw new JobError(
    `Input '${input.name}' has no end, so evalLoopNumBatches -1 would evaluate for ever. ` +
      'Set it to a number of batches, or let the data end (repeat, numBatches).',
  );
}

/** Moves an input to a position; to the first batch if changed data no longer has it. */
function restorePosition(input: InputSource, position: InputState): void {
  try {
    input.setState(position);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    input.reset();
  }
}

/** The next batch, wrapping around at the end; undefined if the data is empty. */
async function nextBatchAround(input: InputSource): Promise<Batch | undefined> {
  const next = await nextBatch(input);
  if (next !== undefined) return next;
  input.reset();
  return nextBatch(input);
}
