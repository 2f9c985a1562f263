/** @file Memory of a task: flat parameters, plus optimizer slots and gradients in training. */
import { totalmem } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { createTrainState, type TrainState } from '../checkpoints/index.js';
import {
  type FlatLayout,
  flatViews,
  type HostTensor,
  readyToFill,
  type TensorSpec,
  takeMemory,
} from '../compiler/index.js';
import { EMA } from '../learners/index.js';
import { formatCount } from '../summaries/index.js';
import type { SingleTask } from '../tasks/index.js';
import { JobError } from './jobErrors.js';
import type { EngineOptions } from './options.js';

/** Parameters in one buffer, shared by all programs, which therefore see updates. */
export interface FlatParams {
  readonly params: Float32Array;
  readonly layout: FlatLayout;
}

/** A training state with the compiler's layout. */
export type FlatTrainState = TrainState & FlatParams;

/** All memory used by updates. */
export type TrainMemory = FlatTrainState & { readonly grads: Float32Array };

/** Specs of all variables by path. */
export function paramSpecs({ layout }: Pick<FlatParams, 'layout'>): Record<string, TensorSpec> {
  return Object.fromEntries(
    layout.entries.map(({ name, shape }) => [name, { shape, dtype: 'float32' as const }]),
  );
}

/** All variables by path, as views. */
export function hostParams({ layout, params }: FlatParams): Record<string, HostTensor> {
  const views = flatViews(layout, params);
  return Object.fromEntries(
    layout.entries.map(({ name, shape }) => [name, { shape, dtype: 'float32' as const, data: views[name]! }]),
  );
}

const gigabytes = (bytes: number): string => `${Math.ceil(bytes / 1e9).toLocaleString('en-US')} GB`;

/** A task's parameters, zeroed. @throws JobError if they exceed the machine's memory. */
export function paramsOf(task: SingleTask): FlatTrainState {
  return allocate(task, [], 1);
}

/**
 * A task's parameters, optimizer slots and gradients, zeroed.
 *
 * @throws JobError if they exceed the machine's memory.
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

/** Values that take the place of those drawn for some of the variables. */
interface InitialValues {
  /** Writes them into the state. */
  load(): void;
}

/** Fills a new state with initial parameters, given ones included, and slots. */
export async function initialize(
  options: EngineOptions,
  task: SingleTask,
  state: TrainMemory,
  given?: InitialValues,
): Promise<void> {
  const { layout, params, slots, grads } = state;
  await Promise.all([
    task.initialize(flatViews(layout, params), options),
    takeMemory([...Object.values(slots), grads], options),
  ]);
  given?.load();
  task.hp.train.hp.learner.initializeSlots(state);
}

/**
 * Starts `initialize`, and returns once other threads work on it, if machine code may: this thread continues with
 * compiling programs, which blocks it.
 */
export async function beginToInitialize(
  options: EngineOptions,
  task: SingleTask,
  state: TrainMemory,
  given?: InitialValues,
): Promise<{ readonly done: Promise<void> }> {
  await readyToFill(state.layout.size, options);
  const done = initialize(options, task, state, given);
  await setImmediate();
  return { done };
}

/** The moving average in place of the parameters; non-trainable variables are the same in both. */
export function averaged({ layout, slots }: FlatTrainState): FlatParams {
  return { layout, params: slots[EMA]! };
}
