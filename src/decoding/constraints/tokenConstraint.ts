/** @file A constraint on a vocabulary: the tokens that may come next, and the texts of rows under it. */
import { automatonOf } from './automaton.js';
import { constraintError, LIMITS } from './limits.js';
import type { Grammar } from './textExpressions.js';
import { TextReader, type TextState } from './textStates.js';
import type { VocabularyTrie } from './vocabularyTrie.js';

/** Bytes of bits that are kept, at most. */
const MOST_BYTES = 1 << 25;

/** Bits of tokens: of id i bit i % 32 of number i / 32. */
export type TokenBits = Uint32Array;

const withBits = (bits: TokenBits, ids: Iterable<number>, isSet: boolean): TokenBits => {
  const changed = bits.slice();
  for (const id of ids) {
    if (isSet) changed[id >>> 5]! |= 1 << (id & 31);
    else changed[id >>> 5]! &= ~(1 << (id & 31));
  }
  return changed;
};

/** A grammar over the tokens of a vocabulary. */
export class TokenConstraint {
  readonly #reader: TextReader;
  #bytesKept = 0;
  /** Places that may be visited next. */
  #visits: number = LIMITS.visits;

  /**
   * @param endIds tokens that end a text.
   * @throws ConfigError for a grammar beyond the limits
   */
  constructor(
    grammar: Grammar,
    private readonly trie: VocabularyTrie,
    readonly endIds: ReadonlySet<number>,
  ) {
    this.#reader = new TextReader(automatonOf(grammar));
    this.tokensAt(this.#reader.start);
  }

  /** A text without tokens yet. */
  begin(): ConstrainedText {
    return new ConstrainedText(this, this.#reader.start);
  }

  /** The tokens that may come next, ends included. @throws ConfigError where they take too long to find */
  tokensAt(state: TextState): TokenBits {
    if (state.tokens) return state.tokens;
    const before = this.#reader.visits;
    const found = this.trie.tokensAt(state, this.#reader, this.#visits);
    const left = this.#visits - (this.#reader.visits - before);
    this.#visits = Math.min(LIMITS.visits, left + LIMITS.meanVisits);
    const ends = [...this.endIds].filter((id) => id < this.trie.vocabSize);
    state.tokens = state.mayEnd ? withBits(found, ends, true) : found;
    this.#bytesKept += found.byteLength;
    if (this.#bytesKept > MOST_BYTES) {
      this.#reader.forget();
      this.#bytesKept = 0;
    }
    return state.tokens;
  }

  /** The state behind a token. @throws Error for one that may not come */
  after(state: TextState, id: number): TextState {
    const bytes = this.trie.bytesOf(id);
    let next = state;
    for (const byte of bytes ?? []) next = this.#reader.after(next, byte);
    if (bytes === undefined || next.isDead)
      throw new Error(`Token ${id} is none that the constraint allows.`);
    return next;
  }
}

/** The text of a row as far as it is drawn. It does not change, so that rows may fork. */
export class ConstrainedText {
  constructor(
    private readonly constraint: TokenConstraint,
    private readonly state: TextState,
  ) {}

  /**
   * The tokens that may come next.
   *
   * @param mayEnd whether an end may be drawn where another token may come.
   * @throws ConfigError where the vocabulary has none, or they take too long to find
   */
  allowed(mayEnd = true): TokenBits {
    const bits = this.constraint.tokensAt(this.state);
    const others = mayEnd || !this.state.mayEnd ? bits : withBits(bits, this.constraint.endIds, false);
    if (others.some((word) => word !== 0)) return others;
    if (bits.some((word) => word !== 0)) return bits;
    throw constraintError('no token of the vocabulary goes on with the text.');
  }

  /** The text with one more token, none of those that end it. */
  with(id: number): ConstrainedText {
    return this.constraint.endIds.has(id)
      ? this
      : new ConstrainedText(this.constraint, this.constraint.after(this.state, id));
  }

  /** Whether it is whole and nothing comes behind it, where no token ends a text. */
  get isOver(): boolean {
    return this.state.mayEnd && this.constraint.tokensAt(this.state).every((word) => word === 0);
  }
}

/** Whether a token may come. */
export const isAllowed = (allowed: TokenBits, id: number): boolean =>
  ((allowed[id >>> 5]! >>> (id & 31)) & 1) === 1;

/** Writes a value at the tokens that may not come. */
function forbid(row: Float32Array | Int32Array, allowed: TokenBits, value: number): void {
  // By 32 tokens: in most places nearly all may come, or nearly none.
  for (let first = 0; first < row.length; first += 32) {
    const bits = allowed[first >>> 5]!;
    if (bits === 0) row.fill(value, first, first + 32);
    else for (let off = ~bits; off !== 0; off &= off - 1) row[first + 31 - Math.clz32(off & -off)] = value;
  }
}

/**
 * A row of logits, [V], with -Infinity at the tokens that may not come.
 *
 * @param to memory of the result, [V]; by default its own.
 */
export function allowedLogits(
  logits: Float32Array,
  allowed: TokenBits,
  to = new Float32Array(logits.length),
): Float32Array {
  to.set(logits);
  forbid(to, allowed, Number.NEGATIVE_INFINITY);
  return to;
}

/** Writes bits as numbers: 1 at the tokens that may come, else 0; all may where there are no bits. */
export function writeAllowed(
  to: Int32Array,
  begin: number,
  size: number,
  allowed: TokenBits | undefined,
): void {
  const row = to.subarray(begin, begin + size);
  row.fill(1);
  if (allowed) forbid(row, allowed, 0);
}
