/** @file Sequences of token ids in a batch, each row cut into its segments. */
import { arraysOf, type Batch } from '../../inputs/index.js';

type Numbers = Float32Array | Int32Array | Uint8Array;

/** Consecutive positions of one segment. */
export interface Segment {
  /** Its number in `segmentIds`; 1 where rows are not packed. */
  readonly number: number;
  /** First position in the row. */
  readonly start: number;
  readonly ids: Numbers;
  readonly labels: Numbers | undefined;
  readonly weights: Numbers | undefined;
}

/** A row; one without segments is padding alone. */
interface SequenceRow {
  /** Positions, padding included. */
  readonly length: number;
  readonly segments: readonly Segment[];
}

/** The rows of one array of ids. */
export interface Sequences {
  /** Path of the ids in the batch: `ids`, `src.ids`. */
  readonly path: string;
  /** Paths of all arrays that have an entry for each id, the ids included. */
  readonly arrays: readonly string[];
  readonly rows: readonly SequenceRow[];
}

/** Number of a position's segment; 0 for padding. */
function segmentNumbers(length: number, paddings: Numbers | undefined, segmentIds: Numbers | undefined) {
  return Array.from({ length }, (_, t) => ((paddings?.[t] ?? 0) > 0 ? 0 : (segmentIds?.[t] ?? 1)));
}

function segmentsOf(length: number, part: (name: string) => Numbers | undefined): Segment[] {
  const numbers = segmentNumbers(length, part('paddings'), part('segmentIds'));
  const segments: Segment[] = [];
  for (let start = 0, end = 0; start < length; start = end) {
    while (end < length && numbers[end] === numbers[start]) end++;
    if (numbers[start] === 0) continue;
    const cut = (name: string) => part(name)?.subarray(start, end);
    const [ids, labels, weights] = [cut('ids')!, cut('labels'), cut('weights')];
    segments.push({ number: numbers[start]!, start, ids, labels, weights });
  }
  return segments;
}

/** All arrays called `ids` of a batch, [rows, …, length], with what other arrays beside them say of each id. */
export function sequencesOf(batch: Batch): Sequences[] {
  const arrays = new Map(arraysOf(batch));
  const found = [...arrays].filter(([path, { shape }]) => /(^|\.)ids$/.test(path) && shape.length > 1);
  return found.map(([path, { shape, data }]) => {
    const prefix = path.slice(0, -'ids'.length);
    const alike = [...arrays].filter(
      ([other, { shape: of }]) => other.startsWith(prefix) && String(of) === String(shape),
    );
    const length = shape.at(-1)!;
    const rows = Array.from({ length: data.length / length }, (_, row) => {
      const part = (name: string) =>
        alike.find(([other]) => other === prefix + name)?.[1].data.subarray(row * length, (row + 1) * length);
      return { length, segments: segmentsOf(length, part) };
    });
    return { path, arrays: alike.map(([other]) => other), rows };
  });
}
