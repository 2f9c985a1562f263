/** @file AddedTokens: tokens such as <|endoftext|> that are found in a text before it is split into words. */

/** A token and its text. */
export interface AddedToken {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Whether it is found, but stays text: as in the Rust library, no token overlaps it. */
  readonly isText: boolean;
}

/** A token in a text. */
interface Place {
  readonly at: number;
  readonly end: number;
  readonly id: number;
}

/** Tokens that begin with the same bytes. */
interface Prefix {
  readonly next: Map<number, Prefix>;
  /** The token that ends here. */
  token?: AddedToken;
}

const prefix = (): Prefix => ({ next: new Map() });

/** Finds tokens in texts: the leftmost, of those the longest, in as many steps a place as the longest has bytes. */
export class AddedTokens {
  readonly #root = prefix();
  readonly #isFirst = new Uint8Array(256);

  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) {
      this.#isFirst[token.bytes[0]!] = 1;
      let at = this.#root;
      for (const byte of token.bytes) {
        const next = at.next.get(byte) ?? prefix();
        at.next.set(byte, next);
        at = next;
      }
      at.token ??= token;
    }
  }

  /** The tokens in a text, in its order. */
  *in(text: Uint8Array): Generator<Place> {
    const isFirst = this.#isFirst;
    if (!isFirst.includes(1)) return;
    for (let at = 0; at < text.length; at++) {
      if (isFirst[text[at]!] === 0) continue;
      const token = this.#longestAt(text, at);
      if (token === undefined) continue;
      const end = at + token.bytes.length;
      if (!token.isText) yield { at, end, id: token.id };
      at = end - 1;
    }
  }

  #longestAt(text: Uint8Array, at: number): AddedToken | undefined {
    let found: AddedToken | undefined;
    let here: Prefix | undefined = this.#root;
    for (let i = at; here !== undefined; i++) {
      found = here.token ?? found;
      here = i < text.length ? here.next.get(text[i]!) : undefined;
    }
    return found;
  }
}
