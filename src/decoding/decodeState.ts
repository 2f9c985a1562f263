/** @file State of a decode in the host's memory, whose rows are moved and copied rather than computed again. */
import { type BoundArray, flatArrayType, type Pages, sizeOf } from '../compiler/index.js';
import type { DecodeStateSpec } from '../layers/index.js';

/** Bytes of arrays, at the least. */
export const bytesOf = (specs: Iterable<Pick<DecodeStateSpec, 'shape' | 'roundedTo'>>): number =>
  [...specs].reduce(
    (sum, { shape, roundedTo }) =>
      sum + flatArrayType(roundedTo ?? 'float32').BYTES_PER_ELEMENT * sizeOf(shape),
    0,
  );

/** An array as `outer` blocks of `rows` rows of `size` elements. */
interface Blocks {
  readonly outer: number;
  readonly rows: number;
  readonly size: number;
  /** Elements of a row between those of a token and the next, where it has a place for each token: parts of `places`. */
  readonly parts?: { readonly count: number; readonly places: number };
}

function blocksOf({ shape, rowAxis = 0, isPerToken = false }: DecodeStateSpec): Blocks {
  const [outer, size] = [sizeOf(shape.slice(0, rowAxis)), sizeOf(shape.slice(rowAxis + 1))];
  // [rows, heads, tokens, depth]
  const parts = isPerToken && { count: sizeOf(shape.slice(rowAxis + 1, -2)), places: shape.at(-2)! };
  return { outer, rows: shape[rowAxis]!, size, ...(parts && { parts }) };
}

/** The ranges of an array that the first row has for places of tokens. */
function* placesOf(
  { outer, rows, size, parts }: Blocks,
  begin: number,
  count: number,
): Generator<{ readonly from: number; readonly to: number }> {
  const step = size / parts!.count;
  const width = step / parts!.places;
  for (let block = 0; block < outer; block++)
    for (let part = 0; part < size; part += step) {
      const from = block * rows * size + part + begin * width;
      yield { from, to: from + count * width };
    }
}

/** The elements of a row in a block that are there once `filled` tokens are: of each part those from its begin on. */
function filledParts(
  { size, parts }: Blocks,
  filled: number,
): { readonly step: number; readonly length: number } {
  if (!parts) return { step: size, length: size };
  const step = size / parts.count;
  return { step, length: (step / parts.places) * Math.min(filled, parts.places) };
}

/** Copies rows `from` over rows `to` within an array, of places of tokens the first `filled`. */
function overwriteRows(
  array: BoundArray,
  blocks: Blocks,
  moves: readonly (readonly [to: number, from: number])[],
  filled: number,
): void {
  const { outer, rows, size } = blocks;
  const { step, length } = filledParts(blocks, filled);
  for (let block = 0; block < outer; block++) {
    for (const [to, from] of moves) {
      const [begin, end] = [(block * rows + from) * size, (block * rows + to) * size];
      for (let part = 0; part < size; part += step)
        array.copyWithin(end + part, begin + part, begin + part + length);
    }
  }
}

/**
 * Writes to each row of `to` the row of `from` that `origins` has for it, of places of tokens the first `filled`. Both have the
 * same outer blocks.
 */
function copyRows(
  to: BoundArray,
  from: BoundArray,
  blocks: Blocks,
  sources: number,
  origins: ArrayLike<number>,
  filled: number,
): void {
  const { outer, rows, size } = blocks;
  const { step, length } = filledParts(blocks, filled);
  for (let block = 0; block < outer; block++) {
    for (let row = 0; row < rows; row++) {
      const [begin, end] = [(block * sources + origins[row]!) * size, (block * rows + row) * size];
      for (let part = 0; part < size; part += step)
        to.set(from.subarray(begin + part, begin + part + length), end + part);
    }
  }
}

/** The state of some rows: an array for each path, in the format of the programs that read it. */
export class DecodeState {
  readonly #blocks: ReadonlyMap<string, Blocks>;

  /**
   * @param prompts arrays, by path, of the state of prompts that rows share and steps read beside their own.
   * @param pages of the places of tokens, where these take memory as they are written.
   */
  constructor(
    specs: Readonly<Record<string, DecodeStateSpec>>,
    readonly arrays: Readonly<Record<string, BoundArray>>,
    readonly prompts: Readonly<Record<string, BoundArray>> = {},
    private readonly pages?: Pages,
  ) {
    this.#blocks = new Map(Object.entries(specs).map(([path, spec]) => [path, blocksOf(spec)]));
  }

  /** The state before the first token. */
  clear(): void {
    this.releaseAll();
    for (const [path, { parts }] of this.#blocks) if (!parts || !this.pages) this.arrays[path]!.fill(0);
  }

  /** As `release`, of all tokens of all rows. */
  releaseAll(): void {
    for (const [path, { outer, rows, size, parts }] of this.#blocks)
      if (parts) this.pages?.giveBack(this.arrays[path]!, { begin: 0, length: outer * rows * size });
  }

  /** Gives back the memory that a row has for tokens from the first `kept` on, which it no longer has then. */
  release(row: number, kept = 0): void {
    for (const [path, blocks] of this.pages ? this.#blocks : []) {
      const { outer, rows, size, parts } = blocks;
      if (!parts || kept >= parts.places) continue;
      const { step, length } = filledParts(blocks, kept);
      for (let block = 0; block < outer; block++) {
        const begin = (block * rows + row) * size;
        // Nothing kept, the row is one range, within which there are more whole pages.
        const ranges =
          kept === 0
            ? { begin, length: size }
            : { begin: begin + length, length: step - length, count: parts.count, step };
        this.pages!.giveBack(this.arrays[path]!, ranges);
      }
    }
  }

  /** The state before the first token, but for the places of tokens, which are written before they are read. */
  clearRows(): void {
    for (const [path, { parts }] of this.#blocks) if (!parts) this.arrays[path]!.fill(0);
  }

  /** Whether all of it has a place for each token, so that what some tokens have left there is a part of it. */
  get isPerToken(): boolean {
    return [...this.#blocks.values()].every(({ parts }) => parts !== undefined);
  }

  /** Copies what the first row has at places of tokens. Where `isPerToken`. */
  takePlaces(begin: number, count: number): Record<string, BoundArray> {
    return Object.fromEntries(
      [...this.#blocks].map(([path, blocks]) => {
        const array = this.arrays[path]!;
        const ranges = [...placesOf(blocks, begin, count)];
        const { from, to } = ranges[0]!;
        const copy = new (array.constructor as new (size: number) => BoundArray)(ranges.length * (to - from));
        for (const [i, range] of ranges.entries())
          copy.set(array.subarray(range.from, range.to), i * (to - from));
        return [path, copy];
      }),
    );
  }

  /** Writes what `takePlaces` has copied. */
  putPlaces(begin: number, count: number, copies: Readonly<Record<string, BoundArray>>): void {
    for (const [path, blocks] of this.#blocks) {
      let at = 0;
      for (const { from, to } of placesOf(blocks, begin, count)) {
        this.arrays[path]!.set(copies[path]!.subarray(at, at + to - from), from);
        at += to - from;
      }
    }
  }

  /** Bytes of the arrays, without those of prompts. */
  get byteLength(): number {
    return Object.values(this.arrays).reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /**
   * Gives each row i the state of row `origins[i]`. Where no row is both read and overwritten, only those that change are
   * copied.
   *
   * @param filled tokens that rows have, at most.
   */
  reorder(origins: ArrayLike<number>, filled = Number.POSITIVE_INFINITY): void {
    const moves = Array.from(origins).flatMap((from, to) => (from === to ? [] : [[to, from] as const]));
    if (moves.length === 0) return;
    const isApart = moves.every(([, from]) => origins[from] === from);
    for (const [path, blocks] of this.#blocks) {
      const array = this.arrays[path]!;
      if (isApart) {
        overwriteRows(array, blocks, moves, filled);
        continue;
      }
      copyRows(array, array.slice(), blocks, blocks.rows, origins, filled);
    }
  }

  /**
   * Gives a row the state of the one row of `from`; that before the first token, where there is none.
   *
   * @param filled tokens that it has, at most.
   */
  replaceRow(row: number, from?: DecodeState, filled = Number.POSITIVE_INFINITY): void {
    for (const [path, blocks] of this.#blocks) {
      const { outer, rows, size } = blocks;
      const array = this.arrays[path]!;
      const { step, length } = filledParts(blocks, from ? filled : 0);
      for (let block = 0; block < outer; block++) {
        const begin = (block * rows + row) * size;
        for (let part = 0; part < size; part += step) {
          const source = block * size + part;
          if (from) array.set(from.arrays[path]!.subarray(source, source + length), begin + part);
          else array.fill(0, begin + part, begin + part + length);
        }
      }
    }
  }

  /**
   * Gives the state of each row of `from`, of which this state's rows are a multiple, to consecutive rows, without the arrays
   * that they read there.
   *
   * @param filled tokens that they have, at most.
   */
  spread(from: DecodeState, filled: number): void {
    for (const [path, blocks] of this.#blocks) {
      if (path in this.prompts) continue;
      const sources = from.#blocks.get(path)!.rows;
      const origins = Array.from({ length: blocks.rows }, (_, row) =>
        Math.floor((row * sources) / blocks.rows),
      );
      copyRows(this.arrays[path]!, from.arrays[path]!, blocks, sources, origins, filled);
    }
  }
}
