/** @file Text of a continuation as its tokens come: whole characters, up to the first stop text. */
import type { TokenDecoder } from '../inputs/index.js';

/** Length of the longest end of `text` that is the beginning of a longer stop text. */
export function stopPrefixLength(text: string, stops: readonly string[]): number {
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const end = text.slice(text.length - length);
    if (stops.some((stop) => stop.startsWith(end))) return length;
  }
  return 0;
}

/** Turns tokens into pieces of text. The pieces together are the text of all tokens before a stop text. */
export class ContinuedText {
  /** Text that may be the beginning of a stop text. */
  #held = '';
  /** Characters that are certain. */
  #certain = 0;

  constructor(
    private readonly decoder: TokenDecoder,
    private readonly stops: readonly string[],
  ) {}

  /** Characters of all tokens so far, those of a character that is not complete aside. */
  get length(): number {
    return this.#certain + this.#held.length;
  }

  /** Takes a token; gives the text that is certain by now, and whether a stop text has ended it. */
  take(id: number): { readonly piece: string; readonly isStopped: boolean } {
    const fresh = this.#held + this.decoder.take(id);
    const found = this.stops.map((stop) => fresh.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) return { piece: fresh.slice(0, Math.min(...found)), isStopped: true };
    const certain = fresh.length - stopPrefixLength(fresh, this.stops);
    this.#held = fresh.slice(certain);
    this.#certain += certain;
    return { piece: fresh.slice(0, certain), isStopped: false };
  }

  /** The text that was held back, once no further token comes. */
  rest(): string {
    return this.#held + this.decoder.rest();
  }
}
