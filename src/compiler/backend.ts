/** @file Contract of a lowering: flat memory in, runs out. */
import type { HostArray } from './tensors.js';

/** Flat memory of a call: one array for each input and output of the graph. */
export interface FlatBinding {
  readonly inputs: readonly HostArray[];
  readonly outputs: readonly HostArray[];
  /** Outputs that are copied to inputs after each run, for backends that repeat runs themselves. */
  readonly carried?: readonly Carried[];
  readonly parted?: Parted | undefined;
}

/** Numbers of an output and of an input. */
export interface Carried {
  readonly output: number;
  readonly input: number;
}

/** Which arrays of a call have a part for each run, one behind another, and for how many runs. */
export interface Parted {
  readonly runs: number;
  readonly inputs: readonly boolean[];
  readonly outputs: readonly boolean[];
}

/** What runs a program: `auto` decides for each. */
export type Runner = 'native' | 'wasm' | 'onnx' | 'eager';

/** What a lowering supplies; trees are dealt with in `Executable`. */
export interface Backend {
  readonly runner: Runner;
  /** Prepares a call on fixed memory, which may be views into larger buffers. */
  bind(binding: FlatBinding): (times?: number) => Promise<void>;
  /** Whether a call heeds `times`, `carried` and `parted`; elsewhere it runs once. */
  readonly repeats?: boolean;
  /** Whether a slice is replaced in place where the result is bound to its source's memory. */
  readonly updatesInPlace?: boolean;
  /** Whether an output may lie on an input: no element is read after it is written. Never where absent. */
  mayOverwrite?(output: number, input: number): boolean;
  /** Which inputs and outputs are bound to bfloat16 elements, Uint16Arrays; none where absent. */
  readonly halves?: { readonly inputs: readonly boolean[]; readonly outputs: readonly boolean[] } | undefined;
  /** Frozen inputs have changed. */
  refresh?(): void;
  /** Frees what the lowering holds. */
  dispose(): Promise<void>;
}
