/** @file Rules of operations that address elements by computed indices. */
import { sizeOf } from '../types.js';
import { perInputElement, type RuleTable, resolveAxis, spec } from './rule.js';

export const indexingRules: RuleTable = {
  /** Rows of `x` along `axis`, chosen by `indices`. */
  GatherV2: {
    inputs: ['x', 'indices'],
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis ?? 0, x!.shape.length) }),
    infer: ([x, indices], attrs) => {
      const axis = attrs.axis as number;
      return [spec([...x!.shape.slice(0, axis), ...indices!.shape, ...x!.shape.slice(axis + 1)], x!.dtype)];
    },
  },
  /** out[i] = sum of the rows x[r] with segmentIds[r] = i. Deterministic, whatever the number of threads. */
  UnsortedSegmentSum: {
    inputs: ['x', 'segmentIds'],
    attrs: (raw) => ({ numSegments: raw.numSegments }),
    infer: ([x], attrs) => [spec([attrs.numSegments as number, ...x!.shape.slice(1)], x!.dtype)],
    flops: perInputElement(),
  },
  OneHot: {
    inputs: ['indices'],
    attrs: (raw) => ({
      depth: raw.depth,
      onValue: raw.onValue ?? 1,
      offValue: raw.offValue ?? 0,
      dtype: raw.dtype ?? 'float32',
    }),
    infer: ([indices], attrs) => [spec([...indices!.shape, attrs.depth as number], attrs.dtype as 'float32')],
    flops: (_, [out]) => sizeOf(out!.shape),
  },
};
