/** @file Shapes of batches: with another number of rows, and their bytes. */
import { byteSize, type TensorSpec } from '../compiler/index.js';
import type { BatchSpecs } from '../inputs/index.js';

const isSpec = (spec: TensorSpec | BatchSpecs): spec is TensorSpec => 'dtype' in spec;

/** The specs with another number of rows. */
export function withRows(specs: BatchSpecs, rowsOf: (rows: number) => number): BatchSpecs {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => {
      if (!isSpec(spec)) return [name, withRows(spec, rowsOf)];
      const [rows, ...rest] = spec.shape;
      return [name, { ...spec, shape: [rowsOf(rows!), ...rest] }];
    }),
  );
}

/** Rows of a batch. */
export function rowsOf(specs: BatchSpecs): number {
  const [first] = Object.values(specs) as [TensorSpec | BatchSpecs];
  return isSpec(first) ? first.shape[0]! : rowsOf(first);
}

/** Bytes of a batch. */
export function specBytes(specs: BatchSpecs): number {
  return Object.values(specs).reduce(
    (sum, spec) => sum + (isSpec(spec) ? byteSize(spec) : specBytes(spec)),
    0,
  );
}
