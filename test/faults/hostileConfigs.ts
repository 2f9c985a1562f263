/** @file A config with fields of all forms, and what campaigns of hostile input expect of it. */
import { afterAll, beforeAll, expect } from 'vitest';
import { z } from 'zod';
import { ConfigError, Configurable, instance, sub } from '../../src/hparams/index.js';
import { UsageError } from '../../src/system/text/index.js';

export class Leaf extends Configurable.with({ size: z.int().default(1), note: z.string().optional() }) {}

/** Fields of all forms; those of `loose` take any value. */
export const forms = {
  any: z.any().default(null),
  unknown: z.unknown().default(null),
  list: z.array(z.unknown()).default([]),
  table: z.record(z.string(), z.unknown()).default({}),
  shape: z.looseObject({ size: z.number().default(1) }).default({ size: 1 }),
  size: z.int().default(1),
  rate: z.number().default(1),
  flag: z.boolean().default(false),
  text: z.string().default(''),
  big: z.bigint().default(0n),
  choice: z.enum(['a', 'b']).default('a'),
  pair: z.tuple([z.number(), z.string()]).default([1, 'a']),
  either: z.union([z.number(), z.string()]).default(1),
  empty: z.number().nullable().default(null),
  leaf: sub(Leaf),
  part: instance(Leaf),
  parts: z.array(instance(Leaf)).default([]),
};
export class Hostile extends Configurable.with(forms) {}
export type Field = keyof typeof forms;
export const fields = Object.keys(forms) as Field[];

/** Names that every object has, or that the language, promises and printers ask for. */
export const inherited = [
  ...Object.getOwnPropertyNames(Object.prototype),
  ...[
    'then',
    'toJSON',
    'length',
    'size',
    'prototype',
    'name',
    'inspect',
    'nodeType',
    '$$typeof',
    '_x',
    '$class',
  ],
];

const prototypes = [Object.prototype, Array.prototype, Function.prototype, Map.prototype, Promise.prototype];
const shapeOf = (each: object) =>
  Reflect.ownKeys(each).map((key) => [key, Object.getOwnPropertyDescriptor(each, key)!.value]);
const before = prototypes.map(shapeOf);

/** Has the file's tests fail where a promise is rejected that nobody waits for. */
export function expectNoRejections(): void {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => {
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
}

/** Fails where a prototype that all objects share is not as it was. */
export function expectNoPollution(): void {
  for (const [i, each] of prototypes.entries()) {
    const now = shapeOf(each);
    const isSame = now.every(([key, value], k) => key === before[i]![k]?.[0] && value === before[i]![k]?.[1]);
    expect([i, now.length, isSame]).toEqual([i, before[i]!.length, true]);
  }
}

/** The error that `action` ends with, which names `place`; undefined where it ends well. */
export function refusal(action: () => void, place: RegExp): Error | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    expect(error).toSatisfy(
      (each: unknown) => each instanceof ConfigError || each instanceof UsageError,
      `a ConfigError or UsageError, got ${(error as Error)?.stack}`,
    );
    const { message } = error as Error;
    expect(message).toMatch(place);
    expect(message.length).toBeLessThan(20_000);
    return error as Error;
  }
}

export const wholes = new RegExp(`Hostile|Leaf|\\b(${fields.join('|')})\\b`);

/** A value with its containers copied, so that views and null prototypes compare as what they hold. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, plain);
  if (typeof value !== 'object' || value === null) return value;
  // A Map or a Set is read as a copy whose methods refuse edits.
  if (value instanceof Map || value instanceof Set) return [...value].map(plain);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.entries(value).map(([key, part]) => [key, plain(part)]);
}
