/** @file Rows of batches: added, copied from batch to batch, folded into a dimension of their own. */
import { newHostArray, sizeOf } from '../compiler/program/index.js';
import { arraysOf, type Batch, type BatchSpecs, mapBatch, mapSpecs, specsOf } from './batch.js';

const withRows = (shape: readonly number[], rows: number): number[] => [rows, ...shape.slice(1)];

/** Specs of batches with another number of rows. */
export function specsWithRows(specs: BatchSpecs, rows: (now: number) => number): BatchSpecs {
  return mapSpecs(specs, (spec) => ({
    ...spec,
    shape: withRows(spec.shape, rows(spec.shape[0]!)),
  })) as BatchSpecs;
}

/** Name of the numbers of a batch's examples in an evaluation's data, [batchSize]; -1 for padding. */
export const EXAMPLE_IDS = 'exampleIds';

/** Values of padding by an array's name; 0 in all others. */
const PADDING: Readonly<Record<string, number>> = { paddings: 1, [EXAMPLE_IDS]: -1 };

/** A batch of padding alone: `paddings` are 1, `exampleIds` -1, all else is 0. */
export function paddingOf(specs: BatchSpecs): Batch {
  return mapSpecs(specs, ({ shape, dtype }, name) => {
    const data = newHostArray(dtype, sizeOf(shape));
    data.fill(PADDING[name] ?? 0);
    return { shape, dtype, data };
  }) as Batch;
}

/** A batch of `rows` rows of padding, shaped like another. */
export function paddingLike(batch: Batch, rows: number): Batch {
  return paddingOf(specsWithRows(specsOf(batch), () => rows));
}

/** Copies `count` rows from row `from` of a batch to row `at` of another of the same kind. */
export function copyRows(source: Batch, from: number, count: number, target: Batch, at: number): void {
  const targets = new Map(arraysOf(target));
  for (const [path, { shape, data }] of arraysOf(source)) {
    const size = sizeOf(shape.slice(1));
    targets.get(path)!.data.set(data.subarray(from * size, (from + count) * size) as never, at * size);
  }
}

/** Number of rows of a batch. */
export function rowsOf(batch: Batch): number {
  for (const [, { shape }] of arraysOf(batch)) return shape[0]!;
  return 0;
}

/** Arrays by which rows of padding are known, the surest first, and the value that they have throughout a row of padding. */
const MARKS: readonly (readonly [name: string, ofPadding: number])[] = [
  [EXAMPLE_IDS, -1],
  ['paddings', 1],
  ['weights', 0],
];

/** The rows of a batch that are examples; all where no array of the batch tells padding. */
export function exampleRows(batch: Batch): number[] {
  const arrays = [...arraysOf(batch)];
  const rows = Array.from({ length: rowsOf(batch) }, (_, row) => row);
  for (const [name, ofPadding] of MARKS) {
    const found = arrays.filter(([path]) => path === name || path.endsWith(`.${name}`));
    if (found.length === 0) continue;
    const isExample = (row: number) =>
      found.some(([, { shape, data }]) => {
        const size = sizeOf(shape.slice(1));
        return data.subarray(row * size, (row + 1) * size).some((value) => value !== ofPadding);
      });
    return rows.filter(isExample);
  }
  return rows;
}

/** A batch with `rows` more rows of padding at its end. */
export function padBatch(batch: Batch, rows: number): Batch {
  if (rows === 0) return batch;
  const count = rowsOf(batch);
  const padded = paddingLike(batch, count + rows);
  copyRows(batch, 0, count, padded, 0);
  return padded;
}

/** Numbers of one example: one, or lists of them as the shape has dimensions. */
export type RowValues = number | readonly RowValues[];

/** A row's numbers, as lists in lists. */
export function nestedRow(
  { shape, data }: { readonly shape: readonly number[]; readonly data: ArrayLike<number> },
  row: number,
): RowValues {
  const inner = shape.slice(1);
  const size = sizeOf(inner);
  const nested = ([length, ...rest]: readonly number[], from: number): RowValues => {
    if (length === undefined) return data[from]!;
    const step = sizeOf(rest);
    return Array.from({ length }, (_, i) => nested(rest, from + i * step));
  };
  return nested(inner, row * size);
}

/** [n · rows, …] as [rows, n, …]; [rows, …] is unchanged. */
function folded(shape: readonly number[], rows: number): readonly number[] {
  const [all, ...rest] = shape;
  return all === rows ? shape : [rows, all! / rows, ...rest];
}

/** Specs of `foldRows`. */
export function foldSpecs(specs: BatchSpecs, rows: number): BatchSpecs {
  return mapSpecs(specs, (spec) => ({ ...spec, shape: folded(spec.shape, rows) })) as BatchSpecs;
}

/** A batch of `rows` rows, in which each holds as many of the given ones as there are to it. */
export function foldRows(batch: Batch, rows: number): Batch {
  return mapBatch(batch, (array) => ({ ...array, shape: folded(array.shape, rows) })) as Batch;
}
