/** @file VariableSource: named tensors on disk from which variables can start. */
import type { AxisOrder } from './axes.js';

/** Open files with named tensors. */
export interface VariableSource {
  /** The checkpoint's directory, or the file or folder of weights. */
  readonly path: string;
  readonly names: readonly string[];
  /** Its description in a run's record, besides the path. */
  readonly origin: Readonly<Record<string, string | number>>;
  /** Undefined where there is no such tensor. */
  shapeOf(name: string): readonly number[] | undefined;
  /** The reason why a tensor's dtype can't be read as float32; undefined where it can. */
  dtypeProblem(name: string): string | undefined;
  /**
   * Reads a tensor as float32.
   *
   * @param target has as many elements as `order` takes.
   * @param order where the elements go; one after the other where absent.
   * @throws CheckpointError where the file can't be read, and for elements that float32 can't hold
   */
  readInto(name: string, target: Float32Array, order?: AxisOrder): void;
  /** Whether two tensors are the same, element by element. */
  areEqual(a: string, b: string): boolean;
  close(): void;
}
