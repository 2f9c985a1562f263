/** @file The buffers of a task in memory: its parameters, and in training all that an update needs. */
import { totalmem } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { createTrainState } from '../checkpoints/index.js';
import { flatViews, readyToFill, takeMemory } from '../compiler/index.js';
import { EMA } from '../learners/index.js';
import { formatCount } from '../summaries/index.js';
import type { SingleTask } from '../tasks/index.js';
import { JobError } from './errors.js';
import type { FlatParams } from './flatParams.js';
import type { EngineOptions } from './options.js';
import type { FlatTrainState, TrainMemory } from './stepCalls.js';

const gigabytes = (bytes: number): string => `${Math.ceil(bytes / 1e9).toLocaleString('en-US')} GB`;

/** The parameters of a task, zero. @throws JobError where the machine has less memory than they take. */
export function paramsOf(task: SingleTask): FlatTrainState {
  return allocate(task, [], 1);
}

/**
 * The parameters and the optimizer's slots of a task, and memory for gradients, zero.
 *
 * @throws JobError where the machine has less memory than they take.
 */
export function trainStateOf(task: SingleTask): TrainMemory {
  const { slotNames } = task.hp.train.hp.learner;
  const state = allocate(task, slotNames, 2 + slotNames.length);
  return { ...state, grads: new Float32Array(state.layout.size) };
}

function allocate(task: SingleTask, slotNames: readonly string[], buffers: number): FlatTrainState {
  const layout = task.layout();
  const bytes = buffers * layout.size * Float32Array.BYTES_PER_ELEMENT;
  if (bytes > totalmem()) {
    const what =
      buffers === 1 ? 'take' : `take, with gradients and ${slotNames.length} slots of the optimizer,`;
    throw new JobError(
      `The ${formatCount(layout.size)} parameters of the model ${what} ${gigabytes(bytes)} of memory, and this machine ` +
        `has ${gigabytes(totalmem())}. Models are not yet split over machines: make it smaller with --set.`,
    );
  }
  return { ...createTrainState(layout, slotNames), layout };
}

/** Fills a new state with what training starts from. */
export async function initialize(
  options: EngineOptions,
  task: SingleTask,
  state: TrainMemory,
): Promise<void> {
  const { layout, params, slots, grads } = state;
  await Promise.all([
    task.initialize(flatViews(layout, params), options),
    takeMemory([...Object.values(slots), grads], options),
  ]);
  task.hp.train.hp.learner.initializeSlots(state);
}

/**
 * Begins with it, and comes back when other threads are at it, where machine code may do it: this thread has programs to
 * compile meanwhile, and does not look up from that.
 */
export async function beginToInitialize(
  options: EngineOptions,
  task: SingleTask,
  state: TrainMemory,
): Promise<{ readonly done: Promise<void> }> {
  await readyToFill(state.layout.size, options);
  const done = initialize(options, task, state);
  await setImmediate();
  return { done };
}

/** The moving average in the place of the parameters; variables that do not train are the same in both. */
export function averaged({ layout, slots }: FlatTrainState): FlatParams {
  return { layout, params: slots[EMA]! };
}
