/** @file AddedTokens: tokens such as <|endoftext|> that are found in a text before it is split into words. */

/** A token and its text. */
export interface AddedToken {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Whether it is found, but stays text: what overlaps it is no token either, as in the Rust library. */
  readonly isText: boolean;
}

/** A token in a text. */
interface Place {
  readonly at: number;
  readonly end: number;
  readonly id: number;
}

/** Finds tokens in texts: the leftmost, of those the longest. */
export class AddedTokens {
  /** Tokens by their first byte, long ones first. */
  readonly #byFirst: (AddedToken[] | undefined)[] = [];
  readonly #isFirst = new Uint8Array(256);

  constructor(tokens: readonly AddedToken[]) {
    for (const token of [...tokens].sort((a, b) => b.bytes.length - a.bytes.length)) {
      const first = token.bytes[0]!;
      this.#isFirst[first] = 1;
      (this.#byFirst[first] ??= []).push(token);
    }
  }

  /** The tokens in a text, in its order. */
  *in(text: Uint8Array): Generator<Place> {
    const isFirst = this.#isFirst;
    if (!isFirst.includes(1)) return;
    for (let at = 0; at < text.length; at++) {
      if (isFirst[text[at]!] === 0) continue;
      const token = this.#byFirst[text[at]!]!.find(({ bytes }) => isAt(text, at, bytes));
      if (token === undefined) continue;
      const end = at + token.bytes.length;
      if (!token.isText) yield { at, end, id: token.id };
      at = end - 1;
    }
  }
}

function isAt(text: Uint8Array, at: number, bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (text[at + i] !== bytes[i]) return false;
  return true;
}
