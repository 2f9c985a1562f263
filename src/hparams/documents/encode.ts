/** @file Values as JSON: what JSON lacks is written as an object with one key, which begins with `$`. */

import { showValue } from '../fields/describe.js';
import { deeper, isContainer } from '../nodes/containers.js';
import { handlerOf } from '../nodes/containerTypes.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { formatLink, type PathLink } from '../walking/paths.js';
import type { JsonValue } from './format.js';
import { constantNameOf } from './registered.js';

/** Arrays of numbers by the name they have in documents. Buffer stands first: its instances are Uint8Arrays too. */
export const numberArrays = {
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

  constructor(private readonly refuse: (path: string, problem: string) => void) {}

  encode(value: unknown, path: PathLink | undefined, depth = 0): JsonValue {
    if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
    if (typeof value === 'number')
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: showValue(value) };
    if (value === undefined) return { $undefined: true };
    if (typeof value === 'bigint') return { $bigint: String(value) };
    const constant = constantNameOf(value);
    if (constant !== undefined) return { $constant: constant };
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
