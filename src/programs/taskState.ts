/** @file Memory of a task: flat parameters, plus optimizer slots and gradients in training. */
import { totalmem } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { createTrainState, type TrainState } from '../checkpoints/index.js';
import {
  computedDtype,
  type FlatArray,
  type FlatLayout,
  flatViews,
  floatsOf,
  type HostTensor,
  heldViews,
  readyToFill,
  TensorMemory,
  type Tree,
  takeMemory,
} from '../compiler/index.js';
import type { Batch, BatchSpecs } from '../inputs/index.js';
import { changingPart, EMA, fillSlots, type SlotLayout, slotBytes } from '../learners/index.js';
import { type EngineOptions, JobError } from '../runs/index.js';
import { formatCount } from '../system/text/index.js';
import type { Shard, SingleTask } from '../tasks/index.js';
import type { SharedCheckpoints } from './ranks/sharedCheckpoints.js';

/** Parameters in flat buffers, shared by all programs, which therefore see updates. */
export interface FlatParams {
  readonly layout: FlatLayout;
  /** Every variable by path, as memory holds it. */
  readonly views: Readonly<Record<string, FlatArray>>;
  /** Where ranks hold them in parts, of which these are the whole as of when that was asked for last. */
  readonly split?: StateInParts;
}

/** A training state with the compiler's layouts. */
export type FlatTrainState = TrainState &
  FlatParams & {
    readonly changing: FlatLayout;
    readonly slotLayouts: Readonly<Record<string, SlotLayout>>;
    /** Where engines may hold the buffers between steps; absent where they are read and written by each step. */
    readonly memory?: TensorMemory;
  };

/** A state to evaluate and decode with: its views may be of a mapped file, and not of one buffer. */
export type RestoredState = Omit<FlatTrainState, 'params'>;

/** All memory used by updates. */
export type TrainMemory = FlatTrainState & {
  readonly grads: Float32Array;
  /** `grads` but for those that may be rows and indices, which steps then never touch here. */
  readonly denseGrads: readonly Float32Array[];
};

/** The part of a training state that a rank holds. */
export interface StateInParts {
  /** What steps read and change. */
  readonly parts: TrainMemory;
  /** The parts of each variable, in the order of the task's. */
  readonly shards: readonly Shard[];
  /** Changes the parts: the whole is no longer theirs, and theirs are those of no step meanwhile. */
  change(update: () => Promise<void>): Promise<void>;
  /** Where training begins: on rank 0 as it decides, which it tells the others. */
  source: StateSource;
  readonly checkpoints: SharedCheckpoints;
  /** On rank 0: has all ranks read their chunks of a checkpoint. @throws CheckpointError */
  read(directory: string): Promise<void>;
  /** Gives each rank its part of the state that training begins from. All ranks call it. */
  fill(options: EngineOptions): Promise<void>;
  /** On rank 0: sums of squares of each variable by path, over its parts. */
  squares(): Promise<ReadonlyMap<string, SquaresOfVariable>>;
  /** On another rank: takes part in a turn. */
  take(turn: PartsTurn): Promise<void>;
  /** Evaluation steps by the parts, once the task has been opened. */
  forward?: ForwardInParts;
}

/** An evaluation step, as rank 0 asks for it. */
export interface AskedPass {
  /** Whether of the average of the parameters. */
  readonly isAverage: boolean;
  readonly inputName: string;
  /** Of the whole batch. */
  readonly specs: BatchSpecs;
  readonly key: readonly number[];
}

/** Evaluation steps that ranks compute together. */
export interface ForwardInParts {
  /** On rank 0: the outputs for a batch, which the next call overwrites. */
  run(asked: AskedPass, batch: Batch): Promise<Tree<HostTensor>>;
  /** Takes part on another rank. */
  follow(): Promise<void>;
}

/** Turns between steps, of all that hold parts. */
export type PartsTurn = 'gather' | 'save' | 'norms' | 'evaluate';

/** Sums of squares of a variable's elements, and of its gradient's. */
export interface SquaresOfVariable {
  readonly size: number;
  readonly params: number;
  readonly grads: number;
}

/** Source of the parts that training begins with. */
export type StateSource =
  /** The state of rank 0. */
  | { readonly from: 'whole' }
  /** Initial values, which each rank draws. */
  | { readonly from: 'seed' }
  /** The checkpoint that all have read. */
  | {
      readonly from: 'checkpoint';
      /** Variables whose slots are those of a first step, and slots of all variables that are. */
      readonly unfrozen: readonly string[];
      readonly slotsAdded: readonly string[];
    };

/** All variables by path, as tensors. */
export function hostParams({ layout, views }: FlatParams): Record<string, HostTensor> {
  const floats = floatsOf(layout, views);
  return Object.fromEntries(
    layout.entries.map(({ name, shape, storage }) => [
      name,
      { shape, dtype: computedDtype(storage), data: floats[name]! },
    ]),
  );
}

const gigabytes = (bytes: number): string => `${Math.ceil(bytes / 1e9).toLocaleString('en-US')} GB`;

/** A task's parameters, zeroed. @throws JobError if they exceed the machine's memory. */
export function paramsOf(task: SingleTask): FlatTrainState {
  return allocate(task, task.layout());
}

/**
 * A task's parameters, optimizer slots, and gradients of variables that are not frozen, zeroed.
 *
 * @param layout of the variables, or of the parts of them that a rank holds.
 * @throws JobError if they exceed the machine's memory.
 */
export function trainStateOf(task: SingleTask, layout = task.layout()): TrainMemory {
  const state = allocate(task, layout, true);
  const grads = new Float32Array(state.changing.size);
  return { ...state, grads, denseGrads: partsBeside(new Set(task.tablePaths()), state.changing, grads) };
}

/** A task's state without memory, of a rank that has parts of it alone. */
export function outlineOf(task: SingleTask): TrainMemory {
  const layout = task.layout();
  const none = new Float32Array(0);
  return {
    ...{ step: 0, layout, changing: changingPart(layout), slotLayouts: task.slotLayouts() },
    ...{ params: none, views: {}, slots: {}, grads: none, denseGrads: [] },
  };
}

/** The state in memory that steps may hold on their device: whoever reads its buffers calls `memory.toHost` before. */
export function heldByEngine(state: TrainMemory): TrainMemory {
  const memory = new TensorMemory([state.params, state.grads, ...Object.values(state.slots)]);
  return { ...state, memory };
}

/** The parts of a buffer of gradients that other variables than these have, without what lies between them. */
export function partsBeside(
  paths: ReadonlySet<string>,
  { entries }: FlatLayout,
  grads: Float32Array,
): Float32Array[] {
  const parts: { begin: number; end: number }[] = [];
  for (const [i, { name, offset, size }] of entries.entries()) {
    if (paths.has(name)) continue;
    const previous = entries[i - 1];
    const part = previous === undefined || paths.has(previous.name) ? undefined : parts.at(-1);
    if (part === undefined) parts.push({ begin: offset, end: offset + size });
    else part.end = offset + size;
  }
  return parts.map(({ begin, end }) => grads.subarray(begin, end)).filter(({ length }) => length > 0);
}

function allocate(task: SingleTask, layout: FlatLayout, trains = false): FlatTrainState {
  const changing = changingPart(layout);
  const slotLayouts = trains ? task.slotLayouts(layout) : {};
  const elements = layout.size + (trains ? changing.size : 0);
  const bytes = elements * Float32Array.BYTES_PER_ELEMENT + slotBytes(slotLayouts);
  if (bytes > totalmem()) {
    const count = Object.keys(slotLayouts).length;
    const what = trains ? `take, with gradients and ${count} slots of the optimizer,` : 'take';
    throw new JobError(
      `The ${formatCount(layout.size)} parameters of the model ${what} ${gigabytes(bytes)} of memory, and this machine ` +
        `has ${gigabytes(totalmem())}. Models are not yet split over machines: make it smaller with --set.`,
    );
  }
  const state = createTrainState(layout, slotLayouts, changing);
  return { ...state, layout, changing, slotLayouts, views: heldViews(layout, state.params) };
}

/** Values that take the place of those drawn for some of the variables. */
interface InitialValues {
  /** Writes variables into the state. */
  load(): void;
  /** Writes slots, whose others are those of a first step. */
  loadSlots?(): void;
}

/** Fills a new state with initial parameters, given ones included, and slots. */
export async function initialize(
  options: EngineOptions,
  task: SingleTask,
  state: TrainMemory,
  given?: InitialValues,
): Promise<void> {
  const written = [...largeSlots(state), ...state.denseGrads];
  await Promise.all([task.initialize(state.views, options), takeMemory(written, options)]);
  given?.load();
  fillSlots(state);
  given?.loadSlots?.();
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

/** Buffers of slots that are worth taking memory for by several threads; narrow ones are smaller. */
export const largeSlots = ({ slots }: TrainState): Float32Array[] =>
  Object.values(slots).filter((slot) => slot instanceof Float32Array);

/** The moving average in place of the parameters; variables that are not trained are the same in both. */
export function averaged({ layout, views, changing, slots, split }: FlatTrainState): FlatParams {
  const average = { ...views, ...flatViews(changing, slots[EMA] as Float32Array) };
  return { layout, views: average, ...(split && { split }) };
}
