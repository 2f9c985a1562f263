/** @file Evaluations of data at a job's present step, by compiled steps that all programs share. */
import { setImmediate } from 'node:timers/promises';
import {
  type Batch,
  describeSkipped,
  EndOfData,
  InputError,
  type InputSource,
  type InputState,
  nextBatch,
} from '../inputs/index.js';
import { JobError, type JobOptions } from '../runs/index.js';
import type { EvalResult, EvaluateSettings, ProgramInput, ProgramRun, SingleTask } from '../tasks/index.js';
import { EvalSteps } from './evalStep.js';
import type { Weights } from './evaluatedWeights.js';
import { MeasuredEvaluation } from './measuredEvaluation.js';
import { type ProgramDataset, TRAIN } from './programDataset.js';
import type { ProgramInputs } from './programInputs.js';
import { peekWhole } from './ranks/wholeBatch.js';

/** Components of evaluations. */
export interface EvaluationParts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly weights: Weights;
  readonly inputs: ProgramInputs;
  /** Batches that are expected in all. */
  readonly runs?: number | undefined;
  /** The training input; absent in a job that does not train. */
  readonly training?: InputSource | undefined;
}

/** An evaluation's data, beginning and interruption. */
interface Asked extends EvaluateSettings {
  /** The program that asks. */
  readonly program: string;
  readonly throwIfStopped: ProgramRun['throwIfStopped'];
}

/** Evaluates data for programs, one evaluation at a time. */
export class Evaluations {
  /** By task, of parameters and of their average. */
  readonly #steps = [new Map<SingleTask, EvalSteps>(), new Map<SingleTask, EvalSteps>()] as const;

  constructor(private readonly parts: EvaluationParts) {}

  /** @throws as `ProgramRun.evaluate` */
  async evaluate(input: ProgramInput | typeof TRAIN, asked: Asked): Promise<EvalResult> {
    const { useEmaStates = this.parts.task.hp.train.usesEmaStates('eval') } = asked;
    if (input === TRAIN) return this.#evaluateTraining(useEmaStates);
    const dataset = this.parts.inputs.of(asked.program, input);
    return this.#evaluateDataset(this.#stepsOf(useEmaStates, dataset.name), dataset, asked);
  }

  /** @param part name of the data, by which one of several tasks evaluates it */
  #stepsOf(useEmaStates: boolean, part?: string): EvalSteps {
    const { options, task: main, weights, runs } = this.parts;
    const [task, known] = [main.taskOf(part), this.#steps[useEmaStates ? 1 : 0]];
    let steps = known.get(task);
    if (steps === undefined) {
      steps = new EvalSteps(options, task, weights(useEmaStates), runs, useEmaStates);
      known.set(task, steps);
    }
    return steps;
  }

  async #evaluateTraining(useEmaStates: boolean): Promise<EvalResult> {
    const { training, task, options } = this.parts;
    if (training === undefined)
      throw new JobError(`--mode=${options.mode} reads no training data, so there is no batch to evaluate.`);
    const part = training.kindOf(training.getState())?.part;
    const steps = this.#stepsOf(useEmaStates, part);
    const evaluation = new MeasuredEvaluation(task.taskOf(part), steps, training);
    const batch = await peekWhole(options, training);
    if (batch === undefined) throw new EndOfData(training.name);
    await evaluation.add(batch);
    const result = evaluation.result();
    if (part === undefined) return result;
    const metrics = Object.entries(result.metrics).map(
      ([name, value]) => [`${part}/${name}`, value] as const,
    );
    return { ...result, metrics: Object.fromEntries(metrics) };
  }

  /**
   * Evaluates the batches that `evalLoopNumBatches` and `resetForEval` select. Padding rows have weight 0, so the
   * result does not depend on how examples are batched.
   */
  async #evaluateDataset(steps: EvalSteps, dataset: ProgramDataset, asked: Asked): Promise<EvalResult> {
    const { from = null, throwIfStopped } = asked;
    const input = dataset.open();
    const limit = batchLimit(dataset, input);
    const goesOn = !dataset.settings.resetForEval && limit !== -1;
    input.reset();
    if (goesOn && from !== null) restorePosition(input, from);
    const take = () => (goesOn ? nextBatchAround(input) : nextBatch(input));
    const evaluation = new MeasuredEvaluation(this.parts.task.taskOf(dataset.name), steps, input);
    let batches = 0;
    for (let batch = await take(); batch; ) {
      throwIfStopped();
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
    const end = goesOn ? input.getState() : null;
    return evaluation.result({ changes: dataset.takeChanges(), skipped, end });
  }
}

/** Number of batches per evaluation; -1 means to the end of the data. @throws JobError for endless data */
function batchLimit({ settings }: ProgramDataset, input: InputSource): number {
  const { evalLoopNumBatches, resetForEval } = settings;
  const limit = evalLoopNumBatches ?? (resetForEval && !input.isEndless ? -1 : 1);
  if (limit !== -1 || !input.isEndless) return limit;
  throw new JobError(
    `Input '${input.name}' has no end, so evalLoopNumBatches -1 would never finish. ` +
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
