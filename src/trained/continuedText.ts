/** @file Text of a continuation as its tokens come: whole characters, up to the first stop text. */

/** Stands for bytes that are no character, or not yet. */
const REPLACEMENT = '\uFFFD';

/** Length of the longest end of `text` that is the beginning of a longer stop text. */
function heldBack(text: string, stops: readonly string[]): number {
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const end = text.slice(text.length - length);
    if (stops.some((stop) => stop.startsWith(end))) return length;
  }
  return 0;
}

/** Turns tokens into pieces of text. The pieces together are the text of all tokens before a stop text. */
export class ContinuedText {
  readonly #ids: number[] = [];
  #given = 0;

  /** @param decode text of token ids */
  constructor(
    private readonly decode: (ids: readonly number[]) => string,
    private readonly stops: readonly string[],
  ) {}

  /** Takes a token; gives the text that is certain by now, and whether a stop text has ended it. */
  take(id: number): { readonly piece: string; readonly isStopped: boolean } {
    this.#ids.push(id);
    const text = this.decode(this.#ids);
    // A character of several tokens ends in a replacement until the last of them is there.
    let end = text.length;
    while (end > this.#given && text[end - 1] === REPLACEMENT) end--;
    const fresh = text.slice(this.#given, end);
    const found = this.stops.map((stop) => fresh.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) return { piece: fresh.slice(0, Math.min(...found)), isStopped: true };
    const piece = fresh.slice(0, fresh.length - heldBack(fresh, this.stops));
    this.#given += piece.length;
    return { piece, isStopped: false };
  }

  /** The text that was held back, once no further token comes. */
  rest(): string {
    return this.decode(this.#ids).slice(this.#given);
  }
}
