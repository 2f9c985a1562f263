/** @file Contract of a lowering: executes a graph on flat memory. */
import type { BoundArray, HostArray, NarrowType } from './tensors.js';

/** Flat memory of a call: one array per graph input and output. */
export interface FlatBinding {
  readonly inputs: readonly HostArray[];
  readonly outputs: readonly HostArray[];
  /** Outputs copied to inputs after each run, for backends that repeat runs themselves. */
  readonly carried?: readonly Carried[];
  readonly stacked?: Stacked | undefined;
}

/** An output and the input that it is copied to, by number. */
export interface Carried {
  readonly output: number;
  readonly input: number;
}

/** Arrays of a call that hold one tensor per run, stacked along a leading axis, and the number of runs. */
export interface Stacked {
  readonly runs: number;
  readonly inputs: readonly boolean[];
  readonly outputs: readonly boolean[];
}

/** Storage of float32 inputs and outputs, by number, that an engine holds in fewer bytes than their specs say. */
export interface PortStorages {
  readonly inputs: Readonly<Record<number, NarrowType>>;
  readonly outputs: Readonly<Record<number, NarrowType>>;
}

/** Ranges of an array's elements, of one length and at equal distances. */
interface Ranges {
  readonly begin: number;
  readonly length: number;
  /** Default 1. */
  readonly count?: number;
  /** Elements from the begin of one to that of the next. */
  readonly step?: number;
}

/** Pages of the system's memory under arrays. */
export interface Pages {
  /** Has the buffers of arrays that nothing has been written to take small pages, each as it is written, rather than large ones. */
  keepSmall(arrays: readonly BoundArray[]): void;
  /** Gives the memory of ranges back to the system, where it takes it; they then have zeros or their old values. */
  giveBack(array: BoundArray, ranges: Ranges): void;
}

/** The engine that runs a program; `auto` chooses per program. */
export type Runner = 'native' | 'onnx' | 'eager';

/** Operations of a lowering; `Executable` handles the trees. */
export interface Backend {
  readonly runner: Runner;
  /** Prepares a call on fixed memory, which may be views into larger buffers. */
  bind(binding: FlatBinding): (times?: number) => Promise<void>;
  /** Whether it reads and writes arrays in a `TensorMemory` by a copy on its device; others do on the host. */
  readonly holdsCopies?: boolean;
  /** Whether a call heeds `times`, `carried` and `stacked`; other backends run once. */
  readonly repeats?: boolean;
  /** Whether `updateSlice` writes in place where its result is bound to its operand's memory. */
  readonly updatesInPlace?: boolean;
  /** Where it reads and writes arrays where they are. */
  readonly pages?: Pages | undefined;
  /** Whether an output may share an input's memory: no element is read after it is overwritten. Absent means never. */
  mayOverwrite?(output: number, input: number): boolean;
  /** Storage that the engine has chosen, of what it was allowed to; absent means that of the specs. */
  readonly storages?: PortStorages | undefined;
  /** Invalidates the results of frozen inputs. */
  refresh?(): void;
  /** Frees the lowering's memory. */
  dispose(): Promise<void>;
}
