/** @file Statistics of the token ids of batches: tokens a row, padding, weights, frequent and unknown ids. */
import { type Sequences, textOf, type Vocabulary } from './sequences.js';

/** Number of the most frequent ids in the report. */
const FREQUENT = 10;

/** An id, how often it occurs, and its text. */
interface FrequentToken {
  readonly id: number;
  readonly count: number;
  readonly share: number;
  readonly text: string | null;
}

/** Of all batches read. Rows of padding alone count as positions, not as rows. */
export interface TokenStatistics {
  readonly path: string;
  readonly rows: number;
  readonly positions: number;
  readonly tokens: number;
  readonly tokensPerRow: { readonly min: number; readonly mean: number; readonly max: number };
  readonly segmentsPerRow: number;
  /** Share of the positions that are padding. */
  readonly paddingShare: number;
  /** Sum of the weights over the number of positions; null without weights. */
  readonly weightShare: number | null;
  readonly vocabSize: number | null;
  readonly distinct: number;
  /** Occurrences of the id of unknown text; null if there is no such id. */
  readonly unknown: number | null;
  /** Ids and labels that are none of the vocabulary's. */
  readonly outside: number;
  readonly frequent: readonly FrequentToken[];
}

/** Counts the ids at one path of batches. */
export class TokenCounter {
  readonly #counts = new Map<number, number>();
  readonly #tokensPerRow: number[] = [];
  #positions = 0;
  #segments = 0;
  #weight: number | null = null;
  #outside = 0;

  constructor(
    private readonly path: string,
    private readonly vocabulary: Vocabulary,
  ) {}

  add({ rows }: Sequences): void {
    for (const { length, segments } of rows) {
      this.#positions += length;
      if (segments.length === 0) continue;
      this.#segments += segments.length;
      this.#tokensPerRow.push(segments.reduce((sum, { ids }) => sum + ids.length, 0));
      for (const { ids, labels, weights } of segments) {
        for (const id of ids) this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
        for (const weight of weights ?? []) this.#weight = (this.#weight ?? 0) + weight;
        for (const id of [...ids, ...(labels ?? [])]) if (!this.vocabulary.has(id)) this.#outside++;
      }
    }
  }

  get statistics(): TokenStatistics {
    const perRow = this.#tokensPerRow;
    const [positions, rows] = [this.#positions, perRow.length];
    const tokens = perRow.reduce((sum, count) => sum + count, 0);
    const share = (count: number, of: number) => (of === 0 ? 0 : count / of);
    const { unkId, size } = this.vocabulary;
    return {
      ...{ path: this.path, rows, positions, tokens },
      tokensPerRow: {
        min: perRow.reduce((a, b) => Math.min(a, b), rows === 0 ? 0 : Number.POSITIVE_INFINITY),
        mean: share(tokens, rows),
        max: perRow.reduce((a, b) => Math.max(a, b), 0),
      },
      segmentsPerRow: share(this.#segments, rows),
      paddingShare: share(positions - tokens, positions),
      weightShare: this.#weight === null ? null : share(this.#weight, positions),
      ...{ vocabSize: size, distinct: this.#counts.size },
      unknown: unkId === null ? null : (this.#counts.get(unkId) ?? 0),
      outside: this.#outside,
      frequent: [...this.#counts]
        .sort(([a, m], [b, n]) => n - m || a - b)
        .slice(0, FREQUENT)
        .map(([id, count]) => ({
          id,
          count,
          share: share(count, tokens),
          text: textOf([id], this.vocabulary),
        })),
    };
  }
}
