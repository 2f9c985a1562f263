/** @file Sequences of token ids in a batch, each row cut into its segments, and the meaning of the ids. */
import { arraysOf, type BaseInput, type Batch, InputError } from '../../inputs/index.js';

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

/** All arrays called `ids` of a batch, [rows, …, length], with the values of parallel arrays for each id. */
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

/** Meaning of the ids at one path of a batch. */
export interface Vocabulary {
  /** Id of unknown text; null without one. */
  readonly unkId: number | null;
  /** Ids are below it; null if the input does not know it. */
  readonly size: number | null;
  readonly has: (id: number) => boolean;
  /** Text of ids that the vocabulary has; null without text. */
  readonly decode: (ids: readonly number[]) => string | null;
}

/** The vocabulary of the ids at a path. An input may have strings for its ids, and no vocabulary. */
export function vocabularyOf(input: BaseInput, path: string): Vocabulary {
  const ids = input.vocabularyFor(path);
  const size = ids?.vocabSize ?? input.dataIdentity().vocabSize ?? null;
  const decode = (shown: readonly number[]): string | null => {
    try {
      return ids?.decode(shown) ?? input.idsToStrings({ shape: [1, shown.length], data: shown })[0]!;
    } catch (error) {
      if (error instanceof InputError) return null;
      throw error;
    }
  };
  return { unkId: ids?.unkId ?? null, size, decode, has: (id) => id >= 0 && (size === null || id < size) };
}

/** Text of ids, without those that the vocabulary lacks. */
export function textOf(ids: ArrayLike<number>, { decode, has }: Vocabulary): string | null {
  return decode(Array.from(ids).filter(has));
}
