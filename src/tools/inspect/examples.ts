/** @file The first rows of batches as people read them: texts of segments, values of features. */
import { arraysOf, type Batch } from '../../inputs/index.js';
import { isPicture, namesOf } from './pictureGrid.js';
import { type Segment, type Sequences, textOf, type Vocabulary } from './sequences.js';

/** Values of an array that are shown for a row. */
const VALUES = 16;

/** A segment of a row, decoded. */
export interface ShownSegment {
  readonly segment: number;
  readonly start: number;
  readonly ids: readonly number[];
  readonly text: string | null;
  /** The weight of each label; null without weights. */
  readonly weights: readonly number[] | null;
  /** Text of the labels with a weight; null where each label is the next id and counts, or ids have no text. */
  readonly target: string | null;
}

/** A row's values in an array: the first of them, and how many there are. */
export interface ShownValues {
  readonly first: readonly number[];
  readonly size: number;
  /** Names of the first values, where these are ids of classes; else null. */
  readonly names: readonly string[] | null;
}

/** Batches as their input makes them. */
export interface Described {
  readonly sequences: readonly Sequences[];
  /** By the path of the ids. */
  readonly vocabularies: ReadonlyMap<string, Vocabulary>;
  /** Names of the classes for the ids at a path. */
  classNamesFor(path: string): readonly string[] | null;
}

/** A row of a batch. */
export interface Example {
  readonly batch: number;
  readonly row: number;
  /** By the path of the ids, the segments of the row. */
  readonly sequences: Readonly<Record<string, readonly ShownSegment[]>>;
  /** By path, of the arrays that are neither of sequences nor pictures. */
  readonly values: Readonly<Record<string, ShownValues>>;
}

/** Whether each label but the last is the next id, and all count. */
function isPlain({ ids, labels, weights }: Segment): boolean {
  const follows = labels === undefined || ids.subarray(1).every((id: number, t: number) => id === labels[t]);
  return follows && (weights === undefined || weights.every((weight: number) => weight > 0));
}

function shownSegment(segment: Segment, vocabulary: Vocabulary): ShownSegment {
  const { number, start, ids, labels, weights } = segment;
  const counted = labels && Array.from(labels).filter((_, t) => weights === undefined || weights[t]! > 0);
  return {
    ...{ segment: number, start, ids: [...ids], text: textOf(ids, vocabulary) },
    weights: weights === undefined ? null : [...weights],
    target: counted === undefined || isPlain(segment) ? null : textOf(counted, vocabulary),
  };
}

/**
 * The first `count` rows of batch number `index`. MultiInput has several sequences in a row: they are one behind the other.
 */
export function examplesOf(batch: Batch, index: number, count: number, described: Described): Example[] {
  const { sequences, vocabularies } = described;
  const arrays = [...arraysOf(batch)];
  const rows = arrays[0]?.[1].shape[0] ?? 0;
  const inSequences = new Set(sequences.flatMap(({ arrays }) => arrays));
  const others = arrays.filter(([path, array]) => !inSequences.has(path) && !isPicture(array));
  return Array.from({ length: Math.min(rows, count) }, (_, row) => {
    const shown = sequences.map(({ path, rows: all }) => {
      const each = all.length / rows;
      const own = all.slice(row * each, (row + 1) * each).flatMap(({ segments }) => segments);
      return [path, own.map((segment) => shownSegment(segment, vocabularies.get(path)!))];
    });
    const values = others.map(([path, { data }]): [string, ShownValues] => {
      const size = data.length / rows;
      const first = [...data.subarray(row * size, row * size + Math.min(size, VALUES))];
      return [path, { first, size, names: namesOf(first, described.classNamesFor(path)) }];
    });
    return { batch: index, row, sequences: Object.fromEntries(shown), values: Object.fromEntries(values) };
  });
}
