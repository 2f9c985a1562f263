/** @file Inference over data at a job's present step: outputs of the task's inference runner, batch after batch. */
import { type HostTensor, sizeOf } from '../../compiler/index.js';
import { build } from '../../hparams/index.js';
import { type Batch, EXAMPLE_IDS, exampleRows, type InputSource, nextBatch } from '../../inputs/index.js';
import { JobError } from '../../runs/index.js';
import {
  type BaseInferenceRunner,
  evalKey,
  type Inference,
  type InferPosition,
  type InferredBatch,
  type InferSettings,
  InferWriter,
  inferStep,
  type ProgramInput,
  type ProgramRun,
  type SingleTask,
} from '../../tasks/index.js';
import type { DecodeParts } from '../decodes.js';
import { expectedInferRuns } from '../expectedRuns.js';
import { ForwardCalls } from '../forwardCalls.js';
import type { ProgramDataset } from '../programDataset.js';

/** The program that asks, and its interruption. */
interface Asked extends InferSettings {
  readonly program: string;
  readonly throwIfStopped: ProgramRun['throwIfStopped'];
  /** Waits for other measurements, which share the memory of a job. */
  readonly inTurn: <T>(act: () => Promise<T>) => Promise<T>;
}

/** A batch, with the position of the data behind it. */
interface Taken {
  readonly batch: Batch;
  readonly position: InferPosition;
  readonly exampleIds: readonly number[];
  readonly rows: readonly number[];
}

/** Runs the inference runners of tasks for programs. */
export class Inferences {
  /** By task and runner, which is that of the task where none is given, of parameters and of their average. */
  readonly #calls = [new Map<SingleTask, Passes>(), new Map<SingleTask, Passes>()] as const;

  constructor(private readonly parts: DecodeParts) {}

  /** @throws as `ProgramRun.infer` */
  infer(data: ProgramInput, asked: Asked): Inference {
    const { useEmaStates = this.parts.task.hp.train.usesEmaStates('decode'), program, runner } = asked;
    const dataset = this.parts.inputs.of(program, data);
    const task = this.parts.task.taskOf(dataset.name);
    const calls = this.#callsOf(task, useEmaStates, dataset, runner);
    const input = dataset.open();
    return {
      digest: dataset.digest,
      changes: dataset.takeChanges(),
      takeSkipped: () => input.skipped.take(),
      batches: (from = null) => outputsOf({ calls, task, dataset, asked }, from),
    };
  }

  #callsOf(
    task: SingleTask,
    useEmaStates: boolean,
    dataset: ProgramDataset,
    runner?: BaseInferenceRunner,
  ): ForwardCalls {
    const { options, weights } = this.parts;
    const ofTasks = this.#calls[useEmaStates ? 1 : 0];
    const known: Passes = ofTasks.get(task) ?? new Map();
    ofTasks.set(task, known);
    let calls = known.get(runner);
    if (calls === undefined) {
      const step = inferStep(task.model, runner ?? writerOf(task).hp.inferenceRunner);
      const runs = expectedInferRuns(dataset.settings.evalLoopNumBatches);
      calls = new ForwardCalls({
        ...{ options, task, params: weights(useEmaStates), name: 'infer_step', step, runs },
      });
      known.set(runner, calls);
    }
    return calls;
  }
}

/** By runner. */
type Passes = Map<BaseInferenceRunner | undefined, ForwardCalls>;

/** The writer of a task; that of the defaults where it has none. */
export const writerOf = ({ hp }: SingleTask): InferWriter => hp.inferWriter ?? build(InferWriter.config());

interface Read {
  readonly calls: ForwardCalls;
  readonly task: SingleTask;
  readonly dataset: ProgramDataset;
  readonly asked: Asked;
}

/** Outputs from a position on. The next batch is read while one is computed, and computed while its outputs are used. */
async function* outputsOf(
  { calls, task, dataset, asked }: Read,
  from: InferPosition | null,
): AsyncGenerator<InferredBatch> {
  const input = dataset.open();
  const limit = batchLimit(dataset, input);
  input.reset();
  if (from !== null) input.setState(from.state);
  // Training may have changed the parameters.
  calls.refresh();
  let { batches, examples } = from ?? { batches: 0, examples: 0 };
  const take = async (): Promise<Taken | undefined> => {
    asked.throwIfStopped();
    const batch = batches === limit ? undefined : await nextBatch(input);
    if (batch === undefined) return undefined;
    const rows = exampleRows(batch);
    const { [EXAMPLE_IDS]: ids } = batch as { readonly exampleIds?: HostTensor };
    const exampleIds = rows.map((row, i) => ids?.data[row] ?? examples + i);
    batches += 1;
    examples += rows.length;
    return { batch, rows, exampleIds, position: { batches, examples, state: input.getState() } };
  };
  const compute = ({ batch, ...taken }: Taken): Promise<InferredBatch> =>
    asked.inTurn(async () => {
      const call = await calls.of(input.name, batch);
      const key = evalKey(taken.position.batches - 1, task.hp.infer.hp.randomSeed);
      const outputs = await call.run(input.name, batch, key);
      return { ...taken, outputs: copied(outputs as Readonly<Record<string, HostTensor>>) };
    });
  const start = (taken: Taken | undefined) => taken && compute(taken);
  let running = start(await take());
  try {
    while (running !== undefined) {
      const next = await take();
      const done = await running;
      running = start(next);
      yield done;
    }
  } finally {
    // After an error, nothing keeps running in the background.
    await running?.catch(() => {});
  }
  if (batches === 0) throw new JobError(`Input '${input.name}' has no batch to infer.`);
}

/** The next run overwrites outputs. */
const copied = (outputs: Readonly<Record<string, HostTensor>>): Record<string, HostTensor> =>
  Object.fromEntries(
    Object.entries(outputs).map(([name, output]) => [
      name,
      { ...output, data: output.data.slice(0, sizeOf(output.shape)) },
    ]),
  );

/** Number of batches; -1 means to the end of the data. @throws JobError for endless data */
function batchLimit({ settings }: ProgramDataset, input: InputSource): number {
  const limit = settings.evalLoopNumBatches ?? -1;
  if (limit !== -1 || !input.isEndless) return limit;
  throw new JobError(
    `Input '${input.name}' has no end, so inference would never finish. ` +
      'Set evalLoopNumBatches to a number of batches, or let the data end (repeat, numBatches).',
  );
}
