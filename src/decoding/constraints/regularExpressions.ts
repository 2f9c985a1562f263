/** @file Regular expressions in JavaScript's syntax, as far as they describe regular sets of texts. */
import { CharacterReader } from './characterReader.js';
import { ANY, type CodePoints, charactersOf, codePoints, complement } from './codePoints.js';
import { checkDepth, checkSize } from './limits.js';
import { character, choice, type Expression, repeat, sequence } from './textExpressions.js';

const DIGITS = codePoints([48, 57]);
const WORD = codePoints([48, 57], [65, 90], [95, 95], [97, 122]);
const BLANKS = codePoints(
  ...([
    [9, 13],
    [32, 32],
    [160, 160],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
  ] as const),
  ...([
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ] as const),
);
/** Of `.`: all characters but ends of lines. */
const WITHIN_LINE = complement(charactersOf('\n\r\u2028\u2029'));
const CLASSES: Readonly<Record<string, CodePoints>> = {
  ...{ d: DIGITS, D: complement(DIGITS), w: WORD, W: complement(WORD), s: BLANKS, S: complement(BLANKS) },
};

/** A part of an alternative: an expression, or the beginning or end of the text. */
type Part = Expression | '^' | '$';

/** How the ends of an expression that is not anchored are read. */
export type Matching =
  /** The whole text is described, anchored or not. */
  | 'whole'
  /** Any text may come before and behind, as in JSON schemas. */
  | 'anywhere';

class Parser {
  readonly #reader: CharacterReader;

  constructor(
    pattern: string,
    private readonly matching: Matching,
  ) {
    this.#reader = new CharacterReader(pattern, 'regular expression');
  }

  parse(): Expression {
    const parsed = this.#choice(0);
    if (!this.#reader.isAtEnd) throw this.#reader.error("has ')' without '('");
    return parsed;
  }

  #choice(depth: number): Expression {
    checkDepth(depth, 'regular expression');
    const options: Expression[] = [];
    do {
      const parts: Part[] = [];
      while (!this.#reader.isAtEnd && !this.#reader.sees('|') && !this.#reader.sees(')'))
        parts.push(this.#repeated(depth));
      options.push(this.#anchored(parts, depth === 0));
    } while (this.#reader.takes('|'));
    return options.length === 1 ? options[0]! : choice(...options);
  }

  /** An alternative whose anchors stand at its ends. */
  #anchored(parts: readonly Part[], isOutermost: boolean): Expression {
    const begins = parts[0] === '^';
    const ends = parts.length > (begins ? 1 : 0) && parts.at(-1) === '$';
    const inner = parts.slice(begins ? 1 : 0, ends ? -1 : undefined);
    if ((!isOutermost && (begins || ends)) || inner.some((part) => typeof part === 'string'))
      throw this.#reader.error('has an anchor elsewhere than at the ends of the whole');
    const any = this.matching === 'anywhere' && isOutermost ? [repeat(character(ANY), 0)] : [];
    return sequence(...(begins ? [] : any), ...(inner as Expression[]), ...(ends ? [] : any));
  }

  #repeated(depth: number): Part {
    const part = this.#atom(depth);
    const bounds = this.#quantifier();
    if (bounds === undefined) return part;
    if (typeof part === 'string') throw this.#reader.error('repeats an anchor');
    // Lazy or not, the texts are the same.
    this.#reader.takes('?');
    return repeat(part, ...bounds);
  }

  #quantifier(): readonly [number, number] | undefined {
    if (this.#reader.takes('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.#reader.takes('+')) return [1, Number.POSITIVE_INFINITY];
    if (this.#reader.takes('?')) return [0, 1];
    return this.#reader.takes('{') ? this.#reader.bounds() : undefined;
  }

  #atom(depth: number): Part {
    const reader = this.#reader;
    const taken = reader.take();
    if (taken === '^' || taken === '$') return taken;
    if (taken === '.') return character(WITHIN_LINE);
    if (taken === '[') return character(this.#class());
    if (taken === '(') return this.#group(depth);
    if (taken === '\\') return character(this.#escaped());
    if ('*+?{'.includes(taken)) throw reader.error(`repeats nothing by '${taken}'`);
    return character(charactersOf(taken));
  }

  #group(depth: number): Expression {
    const reader = this.#reader;
    if (reader.takes('?')) {
      const isNamed = reader.sees('<') && !reader.sees('<=') && !reader.sees('<!');
      if (isNamed) reader.takeWhile((each) => each !== '>');
      if (!reader.takes(isNamed ? '>' : ':'))
        throw reader.error('looks around or sets flags within a group, which is not supported');
    }
    const inner = this.#choice(depth + 1);
    reader.expect(')');
    return inner;
  }

  #escaped(): CodePoints {
    const named = CLASSES[this.#reader.next];
    if (named !== undefined) {
      this.#reader.take();
      return named;
    }
    if (this.#reader.next === 'b') throw this.#reader.error("has '\\b', which is not supported");
    const point = this.#reader.escape();
    return codePoints([point, point]);
  }

  #class(): CodePoints {
    const reader = this.#reader;
    const isNegated = reader.takes('^');
    const sets: CodePoints[] = [];
    while (!reader.takes(']')) {
      const first = this.#classMember();
      const isRange = reader.sees('-') && !reader.sees('-]');
      if (!isRange) {
        sets.push(first);
        continue;
      }
      reader.take();
      const last = this.#classMember();
      const [from, to] = [first[0]![0], last[0]![0]];
      if (first.length > 1 || last.length > 1 || first[0]![1] !== from || last[0]![1] !== to || to < from)
        throw reader.error('has a range of no characters');
      sets.push([[from, to]]);
    }
    const all = codePoints(...sets.flat());
    return isNegated ? complement(all) : all;
  }

  #classMember(): CodePoints {
    const taken = this.#reader.take();
    if (taken !== '\\') return charactersOf(taken);
    if (this.#reader.takes('b')) return codePoints([8, 8]);
    return this.#escaped();
  }
}

/**
 * The texts of a regular expression with JavaScript's meaning of the flag `u`. Not regular, or not supported: lookaround,
 * back references, `\b`, `\p`, and anchors within.
 *
 * @throws ConfigError for others, with the place.
 */
export function regularExpression(pattern: string, matching: Matching = 'whole'): Expression {
  checkSize(pattern, 'regular expression');
  return new Parser(pattern, matching).parse();
}
