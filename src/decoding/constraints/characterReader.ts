/** @file Reader of patterns and grammars, character by character, with the place of an error. */
import { constraintError } from './limits.js';

const ESCAPED: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11, b: 8, 0: 0 };
/** Hexadecimal digits of an escape. */
const DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** A text that is read from its beginning to its end. */
export class CharacterReader {
  readonly #characters: readonly string[];
  at = 0;

  /** @param kind what the text is, as errors name it. */
  constructor(
    text: string,
    private readonly kind: string,
  ) {
    this.#characters = [...text];
  }

  get isAtEnd(): boolean {
    return this.at >= this.#characters.length;
  }

  /** The next character; '' at the end. */
  get next(): string {
    return this.#characters[this.at] ?? '';
  }

  /** Whether a text comes next. */
  sees(text: string): boolean {
    if (text.length === 1) return this.#characters[this.at] === text;
    return [...text].every((each, i) => this.#characters[this.at + i] === each);
  }

  /** Takes a text, where it comes next. */
  takes(text: string): boolean {
    const isNext = this.sees(text);
    if (isNext) this.at += [...text].length;
    return isNext;
  }

  /** Takes one character. @throws ConfigError at the end */
  take(): string {
    if (this.isAtEnd) throw this.error('ends too early');
    return this.#characters[this.at++]!;
  }

  /** Takes the characters that a condition holds for. */
  takeWhile(holds: (character: string) => boolean): string {
    const begin = this.at;
    while (!this.isAtEnd && holds(this.next)) this.at++;
    return this.#characters.slice(begin, this.at).join('');
  }

  /** Takes a text. @throws ConfigError where another comes */
  expect(text: string): void {
    if (!this.takes(text))
      throw this.error(`expected '${text}', got ${this.isAtEnd ? 'its end' : `'${this.next}'`}`);
  }

  /** A whole number; undefined where there is none. */
  number(): number | undefined {
    const digits = this.takeWhile((character) => /^\d$/.test(character));
    return digits === '' ? undefined : Number(digits);
  }

  /** The least and most times of a repetition, behind its brace: `n}`, `n,}` or `n,m}`. */
  bounds(): readonly [least: number, most: number] {
    const least = this.number();
    if (least === undefined) throw this.error('expected a number of repetitions');
    const most = this.takes(',') ? (this.number() ?? Number.POSITIVE_INFINITY) : least;
    this.expect('}');
    if (most < least) throw this.error(`has a repetition of at least ${least} and at most ${most}`);
    return [least, most];
  }

  /** The code point of an escape, behind its backslash; other characters than letters and digits mean themselves. */
  escape(): number {
    const letter = this.take();
    if (letter === 'u' && this.takes('{')) {
      const point = Number.parseInt(this.takeWhile(isHex), 16);
      this.expect('}');
      return this.#checked(point);
    }
    const size = DIGITS[letter];
    if (size !== undefined) return this.#checked(this.#hexadecimal(size));
    const named = ESCAPED[letter];
    if (named !== undefined) return named;
    if (/^[A-Za-z0-9]$/.test(letter)) throw this.error(`has '\\${letter}', which is not supported`);
    return letter.codePointAt(0)!;
  }

  #hexadecimal(size: number): number {
    const digits = Array.from({ length: size }, () => this.take()).join('');
    return /^[0-9a-fA-F]+$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
  }

  #checked(point: number): number {
    const high = point >= 0xd800 && point < 0xdc00;
    if (high && this.takes('\\u'))
      return 0x1_0000 + ((point - 0xd800) << 10) + (this.#hexadecimal(4) - 0xdc00);
    if (point <= 0x10_ffff && !(point >= 0xd800 && point < 0xe000)) return point;
    throw this.error('has an escape of no character');
  }

  error(problem: string): Error {
    return constraintError(`the ${this.kind} ${problem}, at character ${this.at + 1}.`);
  }
}

const isHex = (character: string): boolean => /^[0-9a-fA-F]$/.test(character);
