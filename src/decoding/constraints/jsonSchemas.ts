/** @file JSON schemas as grammars of their values (JSON Schema 2020-12, the part that grammars can hold to). */

import { FORMATS } from './jsonFormats.js';
import { integers, numbers } from './jsonNumbers.js';
import { type Members, members } from './jsonObjects.js';
import {
  INTEGER,
  JSON_RULES,
  list,
  NUMBER,
  OBJECT,
  STRING,
  stringOf,
  stringOfLength,
  VALUE,
  within,
} from './jsonTexts.js';
import { checkDepth, checkSize, constraintError, LIMITS } from './limits.js';
import { regularExpression } from './regularExpressions.js';
import { anyOf, choice, type Expression, type Grammar, literal, rule } from './textExpressions.js';

/** A value of JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
/** A schema that is an object. */
type Schema = { readonly [name: string]: Json | undefined };

/** Words that say nothing about values. */
const ANNOTATIONS = [
  ...['$schema', '$id', '$comment', '$anchor', '$defs', 'definitions', 'title', 'description', 'default'],
  ...[
    'examples',
    'deprecated',
    'readOnly',
    'writeOnly',
    'contentMediaType',
    'contentEncoding',
    'discriminator',
  ],
];
/** Words by the type whose values they are about. */
const WORDS = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'prefixItems', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  boolean: [],
  null: [],
} as const satisfies Record<string, readonly string[]>;
type Type = keyof typeof WORDS;
const TYPES = Object.keys(WORDS) as readonly Type[];
/** Words of which one alone describes values, with annotations beside it. */
const WHOLE = ['$ref', 'enum', 'const', 'anyOf', 'oneOf', 'allOf'] as const;

const isObject = (value: Json | undefined): value is { readonly [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

class Translator {
  /** Rules of schemas that are named, by their pointers. */
  readonly #pointers = new Map<string, string>();
  readonly #pending: [name: string, schema: Json, at: string][] = [];
  #count = 0;

  constructor(
    private readonly root: Json,
    private readonly rules: Map<string, Expression>,
    private readonly name: string,
  ) {}

  /** Adds the rule of the root's values, and those of all that it refers to. */
  addRules(): void {
    this.rules.set(this.name, this.values(this.root, '#', 0));
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop())
      this.rules.set(next[0], this.values(next[1], next[2], 0));
  }

  /** The values of a schema. @param at its place in the root, for errors @param depth its nesting */
  values(schema: Json | undefined, at: string, depth: number): Expression {
    checkDepth(depth, 'schema');
    if (schema === true || schema === undefined) return VALUE;
    if (schema === false) return choice();
    if (!isObject(schema))
      throw this.#error(at, `expected a schema, got ${JSON.stringify(schema)?.slice(0, 60)}`);
    const words = Object.keys(schema).filter((word) => !ANNOTATIONS.includes(word));
    const whole = WHOLE.find((word) => words.includes(word));
    if (whole !== undefined) return this.#whole(schema, whole, words, at, depth);
    const types = this.#typesOf(schema, words, at);
    const supported = new Set<string>(['type', ...types.flatMap((type) => WORDS[type])]);
    this.#checkWords(words, supported, at);
    return choice(...types.map((type) => this.#typed(type, schema, at, depth)));
  }

  /** The types of values: those that are named, or those that the words are about. */
  #typesOf({ type }: Schema, words: readonly string[], at: string): readonly Type[] {
    if (type === undefined) {
      // Words limit values of their own types alone; of texts that are generated, those are meant.
      const about = TYPES.filter((each) => WORDS[each].some((word) => words.includes(word)));
      return about.length > 0
        ? about.filter((each) => each !== 'integer')
        : TYPES.filter((each) => each !== 'integer');
    }
    const given = Array.isArray(type) ? type : [type];
    const unknown = given.find((each) => !TYPES.includes(each as Type));
    if (unknown !== undefined || given.length === 0)
      throw this.#error(
        at,
        `has the type ${JSON.stringify(unknown ?? type)}, and expected ${TYPES.join(', ')}`,
      );
    // Numbers are among the integers' texts already.
    return given.includes('number') ? given.filter((each) => each !== 'integer') : given;
  }

  #checkWords(words: readonly string[], supported: ReadonlySet<string>, at: string): void {
    const unknown = words.find((word) => !supported.has(word));
    if (unknown === undefined) return;
    throw this.#error(
      at,
      `has '${unknown}', which is not supported there: it may have ${[...supported].join(', ')}`,
    );
  }

  #whole(
    schema: Schema,
    word: (typeof WHOLE)[number],
    words: readonly string[],
    at: string,
    depth: number,
  ): Expression {
    const given = schema[word];
    if (word === 'enum' || word === 'const') {
      this.#checkWords(words, new Set([word, 'type']), at);
      const all = word === 'const' ? [given!] : given;
      if (!Array.isArray(all) || all.length === 0)
        throw this.#error(at, 'has an enum that is no list of values');
      const fitting = schema.type === undefined ? all : all.filter((value) => isOfType(value, schema.type!));
      return anyOf(fitting.map((value) => JSON.stringify(value)));
    }
    this.#checkWords(words, new Set([word]), at);
    if (word === '$ref') return this.#referred(given!, at);
    if (!Array.isArray(given) || given.length === 0)
      throw this.#error(at, `has ${word} that is no list of schemas`);
    const options = given as readonly Json[];
    if (word === 'allOf') {
      if (options.length > 1) throw this.#error(at, 'has allOf of several schemas: write them as one');
      return this.values(options[0]!, `${at}/allOf/0`, depth + 1);
    }
    if (word === 'oneOf') this.#checkDisjoint(options, at);
    return choice(...options.map((option, i) => this.values(option, `${at}/${word}/${i}`, depth + 1)));
  }

  /** @throws ConfigError where a value may fit two schemas of which it must fit one */
  #checkDisjoint(options: readonly Json[], at: string): void {
    const kinds = options.map((option) => kindsOf(this.#resolved(option)));
    for (const [i, own] of kinds.entries()) {
      const other = kinds
        .slice(0, i)
        .find(
          (before) =>
            own === null || before === null || before.some((kind) => own.some((one) => overlap(one, kind))),
        );
      if (other !== undefined)
        throw this.#error(
          at,
          'has oneOf whose schemas differ neither in their types nor in a property that is constant: use anyOf',
        );
    }
  }

  #resolved(schema: Json): Json {
    let at = schema;
    for (let steps = 0; steps < 16 && isObject(at) && typeof at.$ref === 'string'; steps++)
      at = this.#target(at.$ref, '') ?? true;
    return at;
  }

  #referred(pointer: Json, at: string): Expression {
    if (typeof pointer !== 'string') throw this.#error(at, 'has a $ref that is no text');
    const found = this.#pointers.get(pointer);
    if (found !== undefined) return rule(found);
    const schema = this.#target(pointer, at);
    if (schema === undefined)
      throw this.#error(
        at,
        `refers to ${JSON.stringify(pointer.slice(0, 60))}, which is not in the schema: expected '#/…'`,
      );
    const name = `${this.name} ${pointer} ${this.#count++}`;
    this.#pointers.set(pointer, name);
    this.#pending.push([name, schema, pointer]);
    return rule(name);
  }

  #target(pointer: string, at: string): Json | undefined {
    if (!/^#(\/|$)/.test(pointer))
      throw this.#error(at, `refers to ${JSON.stringify(pointer.slice(0, 60))}, and only '#/…' is supported`);
    let schema: Json | undefined = this.root;
    for (const part of pointer.split('/').slice(1)) {
      const name = decodeURIComponent(part.replaceAll('~1', '/').replaceAll('~0', '~'));
      const own: object | null = typeof schema === 'object' ? schema : null;
      schema = own !== null && Object.hasOwn(own, name) ? (own as Schema)[name] : undefined;
    }
    return schema;
  }

  #typed(type: Type, schema: Schema, at: string, depth: number): Expression {
    if (type === 'object') return this.#object(schema, at, depth);
    if (type === 'array') return this.#array(schema, at, depth);
    if (type === 'string') return this.#string(schema, at);
    if (type === 'boolean') return choice(literal('true'), literal('false'));
    if (type === 'null') return literal('null');
    const [least, above] = [
      this.#number(schema, 'minimum', at),
      this.#number(schema, 'exclusiveMinimum', at),
    ];
    const [most, below] = [this.#number(schema, 'maximum', at), this.#number(schema, 'exclusiveMaximum', at)];
    const [low, high] = [
      Math.max(least ?? -Infinity, above ?? -Infinity),
      Math.min(most ?? Infinity, below ?? Infinity),
    ];
    if (low === -Infinity && high === Infinity) return type === 'integer' ? INTEGER : NUMBER;
    const bounds = { least: low, most: high, isAbove: low === above, isBelow: high === below };
    return type === 'integer' ? integers(bounds) : numbers(bounds);
  }

  #string(schema: Schema, at: string): Expression {
    const { pattern, format, minLength, maxLength } = schema;
    const hasLength = minLength !== undefined || maxLength !== undefined;
    const known = typeof format === 'string' ? FORMATS[format] : undefined;
    if ([pattern !== undefined, known !== undefined, hasLength].filter(Boolean).length > 1)
      throw this.#error(
        at,
        'has several of pattern, format, and minLength or maxLength: say all in the pattern',
      );
    if (pattern !== undefined) {
      if (typeof pattern !== 'string') throw this.#error(at, 'has a pattern that is no text');
      return stringOf(regularExpression(pattern, 'anywhere'));
    }
    // Other formats are annotations, as in the standard.
    if (known !== undefined) return stringOf(known);
    return hasLength ? stringOfLength(...this.#bounds(schema, 'minLength', 'maxLength', at)) : STRING;
  }

  #array(schema: Schema, at: string, depth: number): Expression {
    const [least, most] = this.#bounds(schema, 'minItems', 'maxItems', at);
    const { prefixItems = [], items } = schema;
    if (!Array.isArray(prefixItems)) throw this.#error(at, 'has prefixItems that are no list of schemas');
    const first = prefixItems.map((each: Json, i) => this.values(each, `${at}/prefixItems/${i}`, depth + 1));
    const rest = (): Expression => this.values(items, `${at}/items`, depth + 1);
    if (first.length === 0) return within('[', list(rest(), least, items === false ? 0 : most), ']');
    const wanted = [...first.map((value, i) => ({ value, isRequired: i < least }))];
    if (most < first.length || least > first.length)
      throw this.#error(at, 'has prefixItems with a minItems of more, or a maxItems of fewer items');
    const others = items === undefined || items === false ? undefined : rest();
    const chain = members({ wanted, others, inOrder: true, add: (body) => this.#rule(at, body) });
    return within('[', chain, ']');
  }

  #object(schema: Schema, at: string, depth: number): Expression {
    const { properties = {}, required = [], additionalProperties: additional } = schema;
    if (!isObject(properties)) throw this.#error(at, 'has properties that are no object');
    if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
      throw this.#error(at, 'has required names that are no list of texts');
    const names = Object.keys(properties);
    const unlisted = (required as readonly string[]).filter((name) => !names.includes(name));
    if (names.length === 0 && unlisted.length === 0 && (additional === undefined || additional === true))
      return OBJECT;
    const value = (name: string): Expression =>
      names.includes(name)
        ? this.values(properties[name], `${at}/properties/${name}`, depth + 1)
        : this.values(additional, `${at}/additionalProperties`, depth + 1);
    const all: Members = {
      wanted: [...names, ...unlisted].map((name) => ({
        name,
        value: value(name),
        isRequired: required.includes(name),
      })),
      // Where properties are listed, others must be allowed by word.
      others:
        additional === undefined
          ? names.length > 0
            ? undefined
            : VALUE
          : additional === false
            ? undefined
            : this.values(additional, `${at}/additionalProperties`, depth + 1),
      add: (body) => this.#rule(at, body),
    };
    return within('{', members(all), '}');
  }

  #rule(at: string, body: Expression): Expression {
    const name = `${this.name} ${at} ${this.#count++}`;
    this.rules.set(name, body);
    return rule(name);
  }

  #number(schema: Schema, word: string, at: string): number | undefined {
    const given = schema[word];
    if (given === undefined || typeof given === 'number') return given;
    throw this.#error(at, `has ${word} that is no number`);
  }

  #bounds(schema: Schema, least: string, most: string, at: string): readonly [number, number] {
    const [low, high] = [this.#number(schema, least, at) ?? 0, this.#number(schema, most, at) ?? Infinity];
    if (low < 0 || high < low) throw this.#error(at, `has ${least} ${low} and ${most} ${high}`);
    const counted = Number.isFinite(high) ? high : low;
    if (counted > LIMITS.states)
      throw this.#error(at, `counts to ${counted}, and an automaton has ${LIMITS.states} states at most`);
    return [low, high];
  }

  #error(at: string, problem: string): Error {
    return constraintError(`the schema${at === '#' ? '' : ` at ${at.slice(0, 200)}`} ${problem}.`);
  }
}

function isOfType(value: Json, type: Json): boolean {
  if (Array.isArray(type)) return type.some((each) => isOfType(value, each));
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'null') return value === null;
  return type === 'object' ? isObject(value) : typeof value === type;
}

/** A kind of values: a type, and of objects the properties that are constant. */
interface Kind {
  readonly type: string;
  readonly constants: ReadonlyMap<string, readonly string[]>;
}

/** Kinds of a schema's values; null where they are not known. */
function kindsOf(schema: Json): readonly Kind[] | null {
  if (!isObject(schema) || !('type' in schema || 'const' in schema || 'enum' in schema)) return null;
  const constants = (of: Schema): readonly string[] | undefined => {
    const values = 'const' in of ? [of.const!] : of.enum;
    return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : undefined;
  };
  const own = constants(schema);
  if (own !== undefined) return [{ type: 'constant', constants: new Map([['', own]]) }];
  const { properties = {}, required = [] } = schema;
  const names = Array.isArray(required) ? required : [];
  const fixed = Object.entries(isObject(properties) ? properties : {}).flatMap(([name, property]) => {
    const values = isObject(property) && names.includes(name) ? constants(property) : undefined;
    return values === undefined ? [] : [[name, values] as const];
  });
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.map((type) => ({
    type: type === 'integer' ? 'number' : String(type),
    constants: new Map(fixed),
  }));
}

/** Whether a value may be of both kinds. */
function overlap(a: Kind, b: Kind): boolean {
  if (a.type !== b.type) return a.type === 'constant' || b.type === 'constant';
  for (const [name, values] of a.constants) {
    const others = b.constants.get(name);
    if (others && !values.some((value) => others.includes(value))) return false;
  }
  return true;
}

/** Adds the rule `name` to those of JSON: a schema's values, properties in its order. @throws ConfigError for others than grammars can hold to */
export function addSchema(rules: Map<string, Expression>, name: string, schema: Json): void {
  checkSize(JSON.stringify(schema), 'schema');
  new Translator(schema, rules, name).addRules();
}

/** The values of a schema as JSON writes them. @throws ConfigError as `addSchema` */
export function jsonSchema(schema: Json): Grammar {
  const rules = new Map(JSON_RULES);
  addSchema(rules, 'root', schema);
  return { rules, root: 'root' };
}

/** Any object of JSON. */
export const anyObject = (): Grammar => ({ rules: new Map([...JSON_RULES, ['root', OBJECT]]), root: 'root' });

/** Any text that fits an expression. */
export const grammarOf = (expression: Expression): Grammar => ({
  rules: new Map([['root', expression]]),
  root: 'root',
});
