/** @file From the text of a command-line flag to a value, as the field's schema asks. */
import type { z } from 'zod';
import { refusedKeys } from './containers.js';
import { describeSchema, showValue } from './describe.js';
import { ConfigError } from './errors.js';
import { classesNamed, classNames } from './fields.js';
import { nearest } from './names.js';
import { accepts, definitionOf, type Holder, holderOf, innermost } from './schema.js';
import type { AbstractClass, AnyConfig, ConcreteClass } from './types.js';

/** What a text that means no value of the schema comes to. */
const failed = Symbol('failed');

/**
 * The value that `text` means to `schema`: numbers as JavaScript writes them (`1e-3`), `true` and `false`, `null` where
 * it is allowed, JSON or a comma-separated list for arrays, JSON for records, the name of a class for a config, and
 * strings as they stand.
 *
 * @throws ConfigError that says what is expected; it begins with `label` where one is given.
 */
export function coerce(schema: z.ZodType, text: string, label?: string): unknown {
  const value = read(schema, text);
  const result = value === failed ? undefined : schema.safeParse(value);
  if (result?.success === true) return value;
  const prefix = label === undefined ? '' : `${label}: `;
  const own = result?.error?.issues.find(
    (issue) => issue.code === 'custom' && issue.message !== 'Invalid input',
  );
  const expected = own?.message ?? `expected ${describeSchema(schema)}`;
  throw new ConfigError(`${prefix}${expected}, got '${text}'${hintFor(schema, text)}`);
}

function read(schema: z.ZodType, text: string): unknown {
  if (text === 'null' && accepts(schema, 'nullable')) return null;
  const inner = innermost(schema);
  const holder = holderOf(inner);
  if (holder !== undefined) return readConfig(holder, text);
  const definition = definitionOf(inner);
  switch (definition.type) {
    case 'string':
      return text;
    case 'number':
      return readNumber(text);
    case 'bigint':
      return /^[+-]?\d+n?$/.test(text) ? BigInt(text.replace(/n$/, '')) : failed;
    case 'boolean':
      return readBoolean(text);
    case 'null':
      return text === 'null' ? null : failed;
    case 'date':
      return new Date(text);
    case 'literal':
      return definition.values!.find((value) => String(value) === text) ?? failed;
    case 'enum':
      return Object.values(definition.entries!).find((value) => String(value) === text) ?? failed;
    case 'union':
      return readUnion(definition.options!, text);
    case 'pipe':
      return read(definition.in!, text);
    case 'array':
      return readArray(() => definition.element!, text);
    case 'tuple':
      return readArray((i) => definition.items![i] ?? definition.rest ?? undefined, text);
    case 'record':
    case 'object':
      return readJson(text);
    default: {
      const parsed = readJson(text);
      return parsed === failed ? text : parsed;
    }
  }
}

function readNumber(text: string): unknown {
  const named: Record<string, number> = {
    NaN: Number.NaN,
    Infinity: Infinity,
    '+Infinity': Infinity,
    '-Infinity': -Infinity,
  };
  if (Object.hasOwn(named, text)) return named[text];
  const plain = text.replaceAll(/(?<=\d)_(?=\d)/g, '');
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) || /^0[xbo][\da-f]+$/i.test(plain)
    ? Number(plain)
    : failed;
}

function readBoolean(text: string): unknown {
  const lower = text.toLowerCase();
  return lower === 'true' ? true : lower === 'false' ? false : failed;
}

function readUnion(options: z.ZodType[], text: string): unknown {
  // Every text is a string: what can be read as something else is.
  const rank = (option: z.ZodType): number => Number(definitionOf(innermost(option)).type === 'string');
  for (const option of [...options].sort((a, b) => rank(a) - rank(b))) {
    const value = read(option, text);
    if (value !== failed && option.safeParse(value).success) return value;
  }
  return failed;
}

function readArray(elementAt: (index: number) => z.ZodType | undefined, text: string): unknown {
  const parsed = readJson(text);
  if (Array.isArray(parsed)) return parsed;
  const list = /^\[(.*)\]$/s.exec(text.trim())?.[1] ?? text;
  if (list.trim() === '') return [];
  const items = list.split(',').map((item, i) => {
    const element = elementAt(i);
    return element === undefined ? failed : read(element, item.trim());
  });
  return items.includes(failed) ? failed : items;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text, (key, value: unknown) => {
      if (refusedKeys.has(key)) throw new ConfigError(`'${key}' is not allowed as a key, got '${text}'`);
      return value;
    });
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    return failed;
  }
}

function fitting(holder: Holder): AbstractClass[] {
  const all = classNames().flatMap((name) => classesNamed(name));
  return all.filter((cls) => cls === holder.cls || cls.prototype instanceof holder.cls);
}

function readConfig(holder: Holder, text: string): unknown {
  const named = fitting(holder).filter((cls) => cls.name === text);
  if (named.length !== 1) return failed;
  const cls = named[0] as unknown as ConcreteClass & { config(): AnyConfig; partial(): AnyConfig };
  return holder.kind === 'factory' ? cls.partial() : cls.config();
}

function hintFor(schema: z.ZodType, text: string): string {
  const definition = definitionOf(innermost(schema));
  const holder = holderOf(schema);
  let candidates: string[] = [];
  if (holder !== undefined) candidates = fitting(holder).map((cls) => cls.name);
  else if (definition.type === 'enum') candidates = Object.values(definition.entries!).map(String);
  else if (definition.type === 'literal') candidates = definition.values!.map(String);
  const near = nearest(text, candidates);
  if (near !== undefined) return `. Did you mean ${showValue(near)}?`;
  return holder === undefined || candidates.length === 0
    ? ''
    : `. Known classes: ${candidates.sort().join(', ')}.`;
}
