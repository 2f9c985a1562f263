/** @file Values of JSON as texts: strings and their escapes, blanks, and values of any kind. */
import { type CodePoints, charactersOf, codePoints, complement, intersection } from './codePoints.js';
import { ANY_INTEGER, ANY_NUMBER } from './jsonNumbers.js';
import { constraintError, LIMITS } from './limits.js';
import {
  character,
  choice,
  type Expression,
  literal,
  optional,
  repeat,
  rule,
  sequence,
} from './textExpressions.js';

const CONTROLS = codePoints([0, 31]);
const ESCAPED = codePoints(...CONTROLS, ...charactersOf('"\\'));
/** Characters that strings have as they are. */
const PLAIN = complement(ESCAPED);
const HEX = codePoints([48, 57], [65, 70], [97, 102]);
const hex = (count: number): Expression => repeat(character(HEX), count, count);

/** An escape of any character of one unit of UTF-16: surrogates alone are no characters. */
const ESCAPE = sequence(
  literal('\\'),
  choice(
    character(charactersOf('"\\/bfnrt')),
    sequence(
      literal('u'),
      choice(
        sequence(character(intersection(HEX, complement(charactersOf('dD')))), hex(3)),
        sequence(character(charactersOf('dD')), character(codePoints([48, 55])), hex(2)),
      ),
    ),
  ),
);

/** Any character of a string. */
const ANY_CHARACTER = choice(character(PLAIN), ESCAPE);

/** The names of the rules that every grammar of JSON has. */
const NAMES = {
  blanks: ' blanks',
  string: ' string',
  character: ' character',
  value: ' value',
  object: ' object',
  number: ' number',
  integer: ' integer',
};

/** Blanks between values: as in llama.cpp's grammars, so few that no model writes them without end. */
const BLANKS = rule(NAMES.blanks);
export const STRING = rule(NAMES.string);
const CHARACTER = rule(NAMES.character);
export const VALUE = rule(NAMES.value);
export const OBJECT = rule(NAMES.object);
export const NUMBER = rule(NAMES.number);
export const INTEGER = rule(NAMES.integer);

const quoted = (inside: Expression): Expression => sequence(literal('"'), inside, literal('"'));

/** A string whose characters are those of an expression, escaped where JSON has to. */
export const stringOf = (inside: Expression): Expression => quoted(escaped(inside));

/** A string of `least` to `most` characters. */
export const stringOfLength = (least: number, most: number): Expression =>
  quoted(repeat(CHARACTER, least, most));

/** The texts of an expression as strings have them. */
function escaped(expression: Expression): Expression {
  switch (expression.kind) {
    case 'character':
      return escapedCharacter(expression.set);
    case 'sequence':
      return sequence(...expression.parts.map(escaped));
    case 'choice':
      return choice(...expression.options.map(escaped));
    case 'repeat':
      return repeat(escaped(expression.body), expression.least, expression.most);
    case 'rule':
      return expression;
  }
}

function escapedCharacter(set: CodePoints): Expression {
  const special = intersection(set, ESCAPED);
  if (special.length === 0) return character(set);
  const points = special.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  const escapes = points.map((point) => literal(JSON.stringify(String.fromCharCode(point)).slice(1, -1)));
  return choice(character(intersection(set, PLAIN)), ...escapes);
}

/** Items between brackets: of a list that may be empty, items behind the first have a comma before them. */
export const within = (open: string, items: Expression, close: string): Expression =>
  sequence(literal(open), BLANKS, items, literal(close));

/** An item, and the blanks behind it. */
export const item = (of: Expression): Expression => sequence(of, BLANKS);
export const COMMA = sequence(literal(','), BLANKS);

/** Between `least` and `most` items. */
export function list(of: Expression, least: number, most: number): Expression {
  if (most === 0) return sequence();
  const some = sequence(item(of), repeat(sequence(COMMA, item(of)), Math.max(0, least - 1), most - 1));
  return least === 0 ? optional(some) : some;
}

/** A name and its value. */
export const member = (name: Expression, value: Expression): Expression =>
  sequence(name, BLANKS, literal(':'), BLANKS, value);

/** The rules that every grammar of JSON has. */
export const JSON_RULES: ReadonlyMap<string, Expression> = new Map([
  [
    NAMES.blanks,
    optional(choice(literal(' '), sequence(literal('\n'), repeat(character(charactersOf(' \t')), 0, 20)))),
  ],
  [NAMES.character, ANY_CHARACTER],
  [NAMES.string, quoted(repeat(CHARACTER, 0))],
  [NAMES.number, ANY_NUMBER],
  [NAMES.integer, ANY_INTEGER],
  [NAMES.object, within('{', list(member(STRING, VALUE), 0, Number.POSITIVE_INFINITY), '}')],
  [
    NAMES.value,
    choice(
      ...[OBJECT, STRING, NUMBER, literal('true'), literal('false'), literal('null')],
      within('[', list(VALUE, 0, Number.POSITIVE_INFINITY), ']'),
    ),
  ],
]);

/**
 * Any name but some, without escapes, by which another name could be spelled.
 *
 * @throws ConfigError for names that are longer than a nested expression may be
 */
export function nameBesides(names: readonly string[]): Expression {
  const points = names.map((name) => [...name]);
  const longest = points.reduce((most, { length }) => Math.max(most, length), 0);
  if (longest > LIMITS.name)
    throw constraintError(
      `the schema has a property whose name has ${longest} characters, of at most ${LIMITS.name} where others are allowed.`,
    );
  return quoted(besides(points));
}

/** Texts of plain characters that are none of `names`, as rows of characters. */
function besides(names: readonly (readonly string[])[]): Expression {
  if (names.length === 0) return repeat(character(PLAIN), 0);
  const firsts = [...new Set(names.flatMap(([first]) => (first === undefined ? [] : [first])))];
  const others = intersection(PLAIN, complement(charactersOf(firsts.join(''))));
  const isTaken = names.some(({ length }) => length === 0);
  return choice(
    ...(isTaken ? [] : [sequence()]),
    sequence(character(others), repeat(character(PLAIN), 0)),
    ...firsts
      .filter((first) => intersection(charactersOf(first), PLAIN).length > 0)
      .map((first) =>
        sequence(
          character(charactersOf(first)),
          besides(names.filter(([other]) => other === first).map((name) => name.slice(1))),
        ),
      ),
  );
}
