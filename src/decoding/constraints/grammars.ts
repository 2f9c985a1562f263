/** @file Grammars in llama.cpp's form of EBNF (GBNF): `root ::= "yes" | "no" [.!]*`. */
import { CharacterReader } from './characterReader.js';
import { ANY, type CodePoints, codePoints, complement } from './codePoints.js';
import { checkDepth, checkSize, constraintError } from './limits.js';
import {
  character,
  choice,
  type Expression,
  type Grammar,
  literal,
  repeat,
  rule,
  sequence,
} from './textExpressions.js';

const isOfName = (each: string): boolean => /^[A-Za-z0-9_-]$/.test(each);

class Parser {
  readonly #reader: CharacterReader;
  readonly #rules = new Map<string, Expression>();
  /** Rules that others name. */
  readonly #named = new Set<string>();

  constructor(text: string) {
    this.#reader = new CharacterReader(text, 'grammar');
  }

  parse(): Grammar {
    this.#blanks(true);
    while (!this.#reader.isAtEnd) {
      const name = this.#reader.takeWhile(isOfName);
      if (name === '') throw this.#reader.error('expected the name of a rule');
      if (this.#rules.has(name)) throw this.#reader.error(`has the rule '${name}' twice`);
      this.#blanks(false);
      this.#reader.expect('::=');
      this.#blanks(true);
      this.#rules.set(name, this.#choice(0));
      this.#blanks(true);
    }
    for (const name of ['root', ...this.#named])
      if (!this.#rules.has(name)) throw constraintError(`the grammar lacks the rule '${name}'.`);
    return { rules: this.#rules, root: 'root' };
  }

  /** Passes blanks and comments, and ends of lines where a rule goes on behind them. */
  #blanks(passesLines: boolean): void {
    const isBlank = (each: string): boolean =>
      each === ' ' || each === '\t' || (passesLines && /[\r\n]/.test(each));
    do this.#reader.takeWhile(isBlank);
    while (this.#reader.sees('#') && this.#reader.takeWhile((each) => each !== '\n') !== '');
  }

  #choice(depth: number): Expression {
    checkDepth(depth, 'grammar');
    const options: Expression[] = [];
    do {
      // Lines may end behind a bar, and anywhere between parentheses.
      this.#blanks(options.length > 0 || depth > 0);
      options.push(this.#sequence(depth));
      this.#blanks(depth > 0);
    } while (this.#takesBar());
    return options.length === 1 ? options[0]! : choice(...options);
  }

  /** A bar, which may begin a line. */
  #takesBar(): boolean {
    const { at } = this.#reader;
    this.#blanks(true);
    if (this.#reader.takes('|')) return true;
    this.#reader.at = at;
    return false;
  }

  #sequence(depth: number): Expression {
    const parts: Expression[] = [];
    for (let part = this.#item(depth); part !== undefined; part = this.#item(depth)) {
      parts.push(this.#repeated(part));
      this.#blanks(depth > 0);
    }
    return parts.length === 1 ? parts[0]! : sequence(...parts);
  }

  #item(depth: number): Expression | undefined {
    const reader = this.#reader;
    if (reader.takes('"')) return this.#literal('"');
    if (reader.takes("'")) return this.#literal("'");
    if (reader.takes('[')) return character(this.#class());
    if (reader.takes('.')) return character(ANY);
    if (reader.takes('(')) {
      const inner = this.#choice(depth + 1);
      reader.expect(')');
      return inner;
    }
    const name = reader.takeWhile(isOfName);
    if (name === '') return undefined;
    this.#named.add(name);
    return rule(name);
  }

  #repeated(body: Expression): Expression {
    const reader = this.#reader;
    if (reader.takes('*')) return repeat(body, 0);
    if (reader.takes('+')) return repeat(body, 1);
    if (reader.takes('?')) return repeat(body, 0, 1);
    return reader.takes('{') ? repeat(body, ...reader.bounds()) : body;
  }

  #literal(quote: string): Expression {
    let text = '';
    while (!this.#reader.takes(quote)) text += String.fromCodePoint(this.#point());
    return literal(text);
  }

  #point(): number {
    return this.#reader.takes('\\') ? this.#reader.escape() : this.#reader.take().codePointAt(0)!;
  }

  #class(): CodePoints {
    const reader = this.#reader;
    const isNegated = reader.takes('^');
    const ranges: [number, number][] = [];
    while (!reader.takes(']')) {
      const first = this.#point();
      const last = reader.sees('-') && !reader.sees('-]') && reader.takes('-') ? this.#point() : first;
      if (last < first) throw reader.error('has a range of no characters');
      ranges.push([first, last]);
    }
    const all = codePoints(...ranges);
    return isNegated ? complement(all) : all;
  }
}

/** A grammar, whose whole texts are those of the rule `root`. @throws ConfigError for errors of syntax, with the place */
export function grammar(text: string): Grammar {
  checkSize(text, 'grammar');
  return new Parser(text).parse();
}
