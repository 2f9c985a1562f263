/** @file Compiled training steps by kind of batch: of each task that is trained, for each shape of its batches. */
import { evalShape, type TensorSpec, type Tree } from '../compiler/index.js';
import {
  type Batch,
  type BatchCount,
  type BatchKind,
  batchCount,
  type InputSource,
} from '../inputs/index.js';
import type { JobOptions } from '../runs/index.js';
import { type SingleTask, trainStep } from '../tasks/index.js';
import { eagerStep } from './eagerStep.js';
import { rowShare } from './ranks/jobMesh.js';
import { rankStep } from './ranks/rankStep.js';
import { splitStep } from './ranks/splitStep.js';
import { type BoundStep, compileStep, trainSpecs } from './stepCalls.js';
import type { TrainMemory } from './taskState.js';
import { checkTrained } from './trainedTasks.js';

/** Components of training steps. */
export interface StepParts {
  readonly options: JobOptions;
  /** The run's task, which says which one trains on batches of which kind. */
  readonly task: SingleTask;
  readonly state: TrainMemory;
  readonly input: InputSource;
}

/** The step for batches of a kind. */
export interface KindStep {
  readonly kind: BatchKind | null;
  /** The task that it trains. */
  readonly task: SingleTask;
  readonly step: BoundStep;
  /** Counts of a batch, for throughput. */
  readonly batch: BatchCount;
}

/** The state as the task of a part sees it: its own groups and slots. */
function stateOf({ task, state }: StepParts, part: string | undefined): TrainMemory {
  if (part === undefined || !task.auxiliaryNames.includes(part)) return state;
  const prefix = `${part}.`;
  const own = Object.entries(state.slots).filter(([name]) => name.startsWith(prefix));
  return {
    ...state,
    layout: task.layout(part),
    slots: Object.fromEntries(own.map(([name, slot]) => [name.slice(prefix.length), slot])),
  };
}

/** Steps that are compiled once a batch of their kind comes. */
export class KindSteps {
  readonly #steps = new Map<string, KindStep>();

  constructor(private readonly parts: StepParts) {}

  /** The step for batches of a kind, if it is compiled. */
  get(kind: BatchKind | null): KindStep | undefined {
    return this.#steps.get(kind?.name ?? '');
  }

  /** Compiles the step for batches of a kind. @param batch one of them */
  async compile(kind: BatchKind | null, batch: Batch): Promise<KindStep> {
    const { options, task: main, input } = this.parts;
    const { ranks } = options;
    const task = main.taskOf(kind?.part);
    const state = stateOf(this.parts, kind?.part);
    const make = options.debug === 'eager' ? eagerStep : compileStep;
    const step = state.split
      ? await splitStep({ options, task, state, split: state.split, inputName: input.name, batch })
      : ranks
        ? await rankStep(options, task, state, input.name, batch, ranks)
        : await make(options, task, state, input.name, batch);
    const made = {
      kind,
      task,
      step,
      batch: batchCount(step.buffers.specs, input.batchUnit, rowShare(options).count),
    };
    this.#steps.set(kind?.name ?? '', made);
    return made;
  }

  /** Finished steps of the learner that a step of this kind belongs to: those of its own task alone. */
  ownSteps(kind: BatchKind | null, step: number): number {
    const { task } = this.parts;
    const { counts, part } = kind ?? {};
    if (counts === undefined || task.auxiliaryNames.length === 0) return step;
    return Object.entries(counts).reduce(
      (sum, [name, count]) => (task.taskOf(name) === task.taskOf(part) ? sum + count : sum),
      0,
    );
  }

  /**
   * Traces the steps of all kinds, so that none fails later for its shapes.
   *
   * @throws ConfigError for an auxiliary task that no input trains, and as the steps.
   */
  check(): void {
    const { task, input } = this.parts;
    checkTrained(task, input);
    const kinds = Object.values(input.kindSpecs() ?? {});
    if (kinds.length < 2) return;
    for (const { part, specs } of kinds) {
      const trained = task.taskOf(part);
      const inputs = trainSpecs(trained, stateOf(this.parts, part), { specs });
      evalShape(trainStep(trained) as never, inputs as Tree<TensorSpec> as never);
    }
  }
}
