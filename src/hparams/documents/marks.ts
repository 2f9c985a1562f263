/** @file Marks in documents: objects with one key that begins with '$', for values that JSON lacks. */

import { didYouMean } from '../../system/text/index.js';
import { showValue } from '../fields/describe.js';
import { deeper, isContainer } from '../nodes/containers.js';
import { containerNamed, fileOfContainer, handlerOf } from '../nodes/containerTypes.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { formatLink, type PathLink, type Segment } from '../walking/paths.js';
import { constantNamed, constantNameOf, fileOfConstant, type JsonValue } from './document.js';

/** Arrays of numbers by the name they have in documents. Buffer comes first: its instances are Uint8Arrays too. */
const numberArrays = {
  Buffer,
  Uint8Array,
  Uint8ClampedArray,
  Int8Array,
  Uint16Array,
  Int16Array,
  Uint32Array,
  Int32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
};

/** Turns values to JSON; calls `refuse` for those that have no form. */
export class Encoder {
  /** The numbers of the configs that values may refer to. */
  readonly numbers = new Map<ConfigNode, number>();

  /** @param give receives names that a module provides, and finds its file */
  constructor(
    private readonly refuse: (path: string, problem: string) => void,
    private readonly give: (file: () => string | undefined, name: string) => void,
  ) {}

  encode(value: unknown, path: PathLink | undefined, depth = 0): JsonValue {
    if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
    if (typeof value === 'number')
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: showValue(value) };
    if (value === undefined) return { $undefined: true };
    if (typeof value === 'bigint') return { $bigint: String(value) };
    const constant = constantNameOf(value);
    if (constant !== undefined) {
      this.give(() => fileOfConstant(constant), constant);
      return { $constant: constant };
    }
    if (typeof value !== 'object') return this.none(value, path);
    const number = this.numbers.get(nodeOf(value)!);
    return number === undefined ? this.object(value, path, deeper(depth)) : { $config: number };
  }

  private object(value: object, path: PathLink | undefined, depth: number): JsonValue {
    const part = (item: unknown, segment: PathLink['segment']): JsonValue =>
      this.encode(item, { parent: path, segment }, depth);
    if (Array.isArray(value)) return Array.from(value, part);
    if (isContainer(value))
      return record(Object.entries(value).map(([key, item]) => [key, part(item, { key })]));
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Date.prototype) {
      const time = (value as Date).getTime();
      return { $date: Number.isNaN(time) ? null : (value as Date).toISOString() };
    }
    if (prototype === Map.prototype) {
      const entries = [...(value as Map<unknown, unknown>)];
      return {
        $map: entries.map(([key, item]) => [
          part(key, { key: String(key) }),
          part(item, { key: String(key) }),
        ]),
      };
    }
    if (prototype === Set.prototype) return { $set: [...(value as Set<unknown>)].map(part) };
    const container = handlerOf(value);
    if (container?.fromParts !== undefined) {
      this.give(() => fileOfContainer(value), value.constructor.name);
      return { $container: [value.constructor.name, ...container.flatten(value).map(part)] };
    }
    for (const [name, cls] of Object.entries(numberArrays)) {
      if (prototype === cls.prototype) return { $bytes: [name, base64(value as Uint8Array)] };
    }
    return this.none(value, path);
  }

  private none(value: unknown, path: PathLink | undefined): null {
    this.refuse(
      formatLink(path) || '<root>',
      `${showValue(value)} has no JSON form. Describe it by a config or by plain values, or name it by registerConstant().`,
    );
    return null;
  }
}

// A key that looks like a mark must not be read as one.
function record(entries: [string, JsonValue][]): JsonValue {
  return entries.some(([key]) => key.startsWith('$')) ? { $record: entries } : Object.fromEntries(entries);
}

function base64(array: Uint8Array): string {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');
}

/** Place of a value: in the config, and in the parsed document. */
export interface Where {
  readonly link: PathLink | undefined;
  readonly depth: number;
  readonly owner: object;
  readonly key: string | number;
}

/** Reader of the values inside marks. */
export interface PartReader {
  read(value: unknown, where: Where): unknown;
  /** Place of the part `key` of `owner`, which is at `where`. */
  inside(where: Where, owner: object, key: string | number, segment: Segment): Where;
  /** Refuses a key that would reach an object's prototype. */
  checkKey(key: string, where: Where): void;
  /** The config of an earlier entry. */
  entryAt(number: unknown, where: Where): unknown;
  /** Ends the reading of the value at `where`. */
  fail(where: Where, problem: string, cause?: unknown): never;
}

type Mark = (decoder: PartReader, value: unknown, where: Where) => unknown;

const numbers = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
  ['-0', -0],
]);

// Reading a number's digits takes time that grows with the square of their count.
const mostDigits = 10_000;

const marks: Record<string, Mark> = {
  $config: (decoder, value, where) => decoder.entryAt(value, where),
  $number(decoder, value, where) {
    return (
      numbers.get(value as string) ?? bad(decoder, where, "'NaN', 'Infinity', '-Infinity' or '-0'", value)
    );
  },
  $bigint(decoder, value, where) {
    if (typeof value === 'string' && /^-?\d+$/.test(value) && value.length <= mostDigits)
      return BigInt(value);
    return bad(decoder, where, 'the digits of an integer, as a text', value);
  },
  $date(decoder, value, where) {
    if (value === null) return new Date(Number.NaN);
    const date = new Date(typeof value === 'string' ? value : Number.NaN);
    return Number.isNaN(date.getTime())
      ? bad(decoder, where, 'a date such as 2020-01-31T12:00:00.000Z', value)
      : date;
  },
  $undefined(decoder, value, where) {
    return value === true ? undefined : bad(decoder, where, 'true', value);
  },
  $constant: (_, value) => constantNamed(value),
  $record(decoder, value, where) {
    const record: Record<string, unknown> = {};
    for (const [pair, at] of pairs(decoder, value, where)) {
      const [key] = pair;
      if (typeof key !== 'string') bad(decoder, at, 'a text as key', key);
      decoder.checkKey(key, at);
      if (Object.hasOwn(record, key)) decoder.fail(at, `the key ${showValue(key)} is given twice.`);
      record[key] = decoder.read(pair[1], decoder.inside(at, pair, 1, { key }));
    }
    return record;
  },
  $map(decoder, value, where) {
    const entries = pairs(decoder, value, where).map(([pair, at]): [unknown, unknown] => {
      const key = decoder.read(pair[0], decoder.inside(at, pair, 0, 0));
      return [key, decoder.read(pair[1], decoder.inside(at, pair, 1, { key: showValue(key) }))];
    });
    return new Map(entries);
  },
  $set: (decoder, value, where) => new Set(list(decoder, value, where)),
  $bytes(decoder, value, where) {
    const [name, text] = Array.isArray(value) ? value : [];
    const isKnown = typeof name === 'string' && Object.hasOwn(numberArrays, name);
    if (!isKnown || typeof text !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
      return bad(decoder, where, "a type of array and its bytes, such as ['Uint8Array', 'AAE=']", value);
    }
    const bytes = Buffer.from(text, 'base64');
    if (name === 'Buffer') return bytes;
    const cls = numberArrays[name as Exclude<keyof typeof numberArrays, 'Buffer'>];
    if (bytes.length % cls.BYTES_PER_ELEMENT !== 0) {
      decoder.fail(where, `${bytes.length} bytes are no ${name}.`);
    }
    return new cls(new Uint8Array(bytes).buffer);
  },
  $container(decoder, value, where) {
    const [name, ...parts] = Array.isArray(value) ? value : [];
    const make = typeof name === 'string' ? containerNamed(name) : undefined;
    if (make === undefined) bad(decoder, where, 'the name of a registered container and its parts', value);
    return make(list(decoder, parts, where));
  },
};

/** Decodes `{[mark]: value}`. */
export function decodeMark(decoder: PartReader, mark: string, value: unknown, where: Where): unknown {
  if (Object.hasOwn(marks, mark)) return marks[mark]!(decoder, value, where);
  const hint = didYouMean(mark, ['$class', ...Object.keys(marks)]);
  return decoder.fail(where, `there is no mark '${mark}'.${hint} Write a record with such a key as $record.`);
}

function bad(decoder: PartReader, where: Where, expected: string, value: unknown): never {
  return decoder.fail(where, `${String(where.key)}: expected ${expected}, got ${showValue(value)}.`);
}

function list(decoder: PartReader, value: unknown, where: Where): unknown[] {
  if (!Array.isArray(value)) return bad(decoder, where, 'a list', value);
  return value.map((item, i) => decoder.read(item, decoder.inside(where, value, i, i)));
}

function pairs(decoder: PartReader, value: unknown, where: Where): [[unknown, unknown], Where][] {
  if (!Array.isArray(value)) return bad(decoder, where, 'a list of pairs', value);
  return value.map((pair: unknown, i) => {
    const at = { ...where, depth: where.depth + 1, owner: value, key: i };
    if (Array.isArray(pair) && pair.length === 2) return [pair as [unknown, unknown], at];
    return decoder.fail(at, `expected a pair of a key and a value, got ${showValue(pair)}.`);
  });
}
