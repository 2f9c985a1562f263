/** @file A corpus as one array of token ids with document boundaries, and its split into training and validation. */

/** Token ids in the smallest type that fits the vocabulary. */
export type TokenArray = Uint8Array | Uint16Array | Int32Array;

/** Concatenated documents: document d is tokens[starts[d]] … tokens[starts[d + 1] − 1]. */
export interface TokenStream {
  readonly tokens: TokenArray;
  /** The start of each document, then the end of the last one. */
  readonly starts: readonly number[];
}

/** The split of a corpus that an input reads. */
export type SplitName = 'train' | 'validation' | 'all';

/** The tokens of documents behind one another, in the type of the first one; of none, no bytes. */
export function concatenate<T extends TokenArray>(documents: readonly T[]): T {
  const Type = (documents[0]?.constructor ?? Uint8Array) as new (size: number) => T;
  const tokens = new Type(documents.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const document of documents) {
    tokens.set(document, at);
    at += document.length;
  }
  return tokens;
}

/** The stream of documents, without separators. */
export function streamOf(documents: readonly TokenArray[]): TokenStream {
  const starts = [0];
  for (const document of documents) starts.push(starts.at(-1)! + document.length);
  return { tokens: concatenate(documents), starts };
}

/**
 * Selects held-out files from `count` ordered ones, evenly spaced: file i is held out if floor((i + 1) · fraction)
 * exceeds floor(i · fraction), so that a fraction of 0.1 selects every tenth.
 */
export function heldOutFiles(count: number, fraction: number): boolean[] {
  return Array.from(
    { length: count },
    (_, index) => Math.floor((index + 1) * fraction + 1e-9) > Math.floor(index * fraction + 1e-9),
  );
}

/**
 * Cuts a stream at floor(n · (1 − fraction)) tokens, as nanoGPT's prepare.py does: the front for training, the back for
 * validation. A document across the cut becomes two.
 */
export function splitStream(stream: TokenStream, fraction: number, split: SplitName): TokenStream {
  const total = stream.tokens.length;
  const cut = Math.floor(total * (1 - fraction));
  if (split === 'all') return stream;
  const [from, to] = split === 'train' ? [0, cut] : [cut, total];
  const inside = stream.starts.filter((start) => start > from && start < to).map((start) => start - from);
  return { tokens: stream.tokens.subarray(from, to), starts: [0, ...inside, to - from] };
}
