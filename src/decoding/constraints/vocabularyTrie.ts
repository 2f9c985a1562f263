/** @file Vocabularies as tries: tokens by their bytes, in one walk that passes what no text goes on with. */

import { constraintError } from './limits.js';
import type { TextReader, TextState } from './textStates.js';

/** Bytes that a token adds to a text; undefined for one that has none, such as the end of a sequence. */
export type TokenBytes = (id: number) => Uint8Array | undefined;

/** The tokens of a vocabulary in the order of their bytes: a node for each prefix, parents before children. */
export class VocabularyTrie {
  /** Last byte of each node's prefix, its length less one, and the node behind its subtree. */
  readonly #byte: Uint8Array;
  readonly #depth: Uint16Array;
  readonly #end: Int32Array;
  /** The first token of a node, or -1; and of each token the next one with the same bytes. */
  readonly #token: Int32Array;
  readonly #same: Int32Array;
  readonly #longest: number;

  constructor(
    readonly vocabSize: number,
    readonly bytesOf: TokenBytes,
  ) {
    const tokens = Array.from({ length: vocabSize }, (_, id) => ({ id, bytes: bytesOf(id) }))
      .filter((token): token is { id: number; bytes: Uint8Array } => (token.bytes?.length ?? 0) > 0)
      .sort((a, b) => Buffer.compare(a.bytes, b.bytes));
    this.#longest = tokens.reduce((most, { bytes }) => Math.max(most, bytes.length), 0);
    const most = tokens.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const [byte, depth, end] = [new Uint8Array(most), new Uint16Array(most), new Int32Array(most)];
    const token = new Int32Array(most).fill(-1);
    this.#same = new Int32Array(vocabSize).fill(-1);
    /** Nodes of the prefixes of the token before. */
    const path: number[] = [];
    let size = 0;
    let before: Uint8Array = new Uint8Array();
    for (const { id, bytes } of tokens) {
      let shared = 0;
      while (shared < before.length && before[shared] === bytes[shared]) shared++;
      for (const node of path.splice(shared)) end[node] = size;
      for (let i = shared; i < bytes.length; i++) {
        byte[size] = bytes[i]!;
        depth[size] = i;
        path.push(size++);
      }
      const node = path.at(-1)!;
      this.#same[id] = token[node]!;
      token[node] = id;
      before = bytes;
    }
    for (const node of path) end[node] = size;
    this.#byte = byte.slice(0, size);
    this.#depth = depth.slice(0, size);
    this.#end = end.slice(0, size);
    this.#token = token.slice(0, size);
  }

  /** Bits of the tokens that may come next. @throws ConfigError where more than `most` places are visited */
  tokensAt(state: TextState, reader: TextReader, most: number): Uint32Array {
    const bits = new Uint32Array(Math.ceil(this.vocabSize / 32));
    const [byte, depth, end, token, same] = [this.#byte, this.#depth, this.#end, this.#token, this.#same];
    const states = new Array<TextState>(this.#longest + 1).fill(state);
    const last = reader.visits + most;
    for (let node = 0; node < byte.length; ) {
      const next = reader.after(states[depth[node]!]!, byte[node]!);
      if (next.isDead) {
        node = end[node]!;
        continue;
      }
      if (reader.visits > last)
        throw constraintError(
          'its next tokens take too long to find: texts may be at too many places of it.',
        );
      states[depth[node]! + 1] = next;
      for (let id = token[node]!; id >= 0; id = same[id]!) bits[id >>> 5]! |= 1 << (id & 31);
      node++;
    }
    return bits;
  }
}
