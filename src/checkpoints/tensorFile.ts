/** @file TensorFile: an open file of named tensors in any format. */
import type { MapFile } from '../files/index.js';
import type { AxisOrder } from './axes.js';
import type { Elements } from './storedElements.js';

/** A file whose tensors are read one by one. */
export interface TensorFile {
  readonly path: string;
  readonly names: readonly string[];
  /** Undefined where there is no such tensor. */
  shapeOf(name: string): readonly number[] | undefined;
  /** The reason why a tensor's dtype can't be read as float32; undefined where it can. */
  dtypeProblem(name: string): string | undefined;
  /** A tensor's elements in an order of its axes. @param map reorders the elements where the system has them */
  elements(name: string, order?: AxisOrder, map?: MapFile): Elements;
  /** Whether a tensor has the type, shape and bytes of another, in this file or in `file`. */
  isEqual(name: string, file: TensorFile, other: string): boolean;
  close(): void;
}
