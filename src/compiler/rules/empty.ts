/** @file What operations give that read no elements, and yet have a result: docs/guide/numerics.md. */
import type { Attrs } from '../graph.js';
import type { DType } from '../types.js';

type Element = (dtype: DType, attrs: Attrs) => number;

const zero: Element = () => 0;

/** The element that the whole result consists of where an input has none: that of a sum without terms is 0. */
const ELEMENTS: Readonly<Record<string, Element>> = {
  Sum: zero,
  Prod: () => 1,
  Max: (dtype) => (dtype === 'int32' ? -(2 ** 31) : Number.NEGATIVE_INFINITY),
  Min: (dtype) => (dtype === 'int32' ? 2 ** 31 - 1 : Number.POSITIVE_INFINITY),
  Mean: () => Number.NaN,
  All: () => 1,
  Any: zero,
  PadV2: (_, attrs) => attrs.value as number,
  UnsortedSegmentSum: zero,
  BatchMatMul: zero,
  Conv2D: zero,
  Conv2DBackpropInput: zero,
  Conv2DBackpropFilter: zero,
  DepthwiseConv2dNative: zero,
  DepthwiseConv2dNativeBackpropInput: zero,
  DepthwiseConv2dNativeBackpropFilter: zero,
};

/** The element that a result of `op` consists of where one of its inputs is empty; undefined where there is no such. */
export const elementOfEmpty = (op: string, dtype: DType, attrs: Attrs): number | undefined =>
  ELEMENTS[op]?.(dtype, attrs);
