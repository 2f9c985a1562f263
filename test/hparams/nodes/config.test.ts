/** @file Reading, writing and deleting fields; the messages of what goes wrong. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  assign,
  type ConcreteClass,
  ConfigError,
  Configurable,
  classOf,
  deepCopy,
  history,
  instance,
  isConfig,
  isEqual,
  isSet,
  sub,
  toJSON,
  unset,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Linear extends Configurable.with({
  inputDims: z.int().positive(),
  outputDims: z.int().positive(),
  hasBias: z.boolean().default(true),
}) {
  fprop(): void {}
}
class Scaled extends Linear.with({ scale: z.number().min(0).max(1).default(0.5) }) {}
class Stack extends Configurable.with({
  linearTpl: sub(Linear),
  scaledTpl: sub(Linear, () => Scaled.config({ scale: 1 })),
  dims: z.array(z.int().positive()).default([1, 2]),
  layers: z.array(sub(Linear)).default([]),
  rates: z.record(z.string(), z.number()).default({}),
  first: instance(Linear).optional(),
  note: z.string().nullable().default(null),
}) {}

/** The message without the place, after checking that the place is in this file. */
function problemOf(action: () => unknown): string {
  const message = messageOf(action);
  expect(message).toMatch(/ \(at test\/hparams\/nodes\/config\.test\.ts:\d+\)$/);
  return message.replace(/ \(at .*\)$/, '');
}

test('a field shows its value, else its default, which reading does not store', () => {
  const config = Linear.config({ inputDims: 4 });
  expect(config.inputDims).toBe(4);
  expect(config.hasBias).toBe(true);
  expect(isSet(config, 'hasBias')).toBe(false);
  config.hasBias = false;
  expect([config.hasBias, isSet(config, 'hasBias')]).toEqual([false, true]);
  unset(config, 'hasBias');
  expect([config.hasBias, isSet(config, 'hasBias')]).toEqual([true, false]);
});

test('delete brings the default back, a sub-config with edits included', () => {
  const config: Partial<{ linearTpl: { inputDims: number }; note: string | null }> & object = Stack.config();
  config.linearTpl!.inputDims = 3;
  delete config.linearTpl;
  expect(messageOf(() => config.linearTpl!.inputDims)).toBe(
    'Linear.inputDims is not set and has no default: expected a positive integer.',
  );
  config.note = 'x';
  delete config.note;
  expect(config.note).toBe(null);
});

test('a default sub-config is one object, equal to the default until it is edited', () => {
  const config = Stack.config();
  expect(config.linearTpl).toBe(config.linearTpl);
  expect(isEqual(config, Stack.config())).toBe(true);
  expect(isSet(config, 'linearTpl')).toBe(false);
  expect(toJSON(config).configs).toEqual([{ class: 'Stack', values: {} }]);
  config.linearTpl.inputDims = 3;
  expect(config.linearTpl.inputDims).toBe(3);
  expect(isEqual(config, Stack.config())).toBe(false);
  expect(isSet(config, 'linearTpl')).toBe(true);
  expect(isSet(config, 'scaledTpl')).toBe(false);
  expect(classOf(config.scaledTpl)).toBe(Scaled);
});

test('a default that is one shared object is copied, so that an edit stays where it was made', () => {
  const shared = Linear.config({ inputDims: 1 });
  class Owner extends Configurable.with({ tpl: sub(Linear, () => shared) }) {}
  const config = Owner.config();
  config.tpl.inputDims = 2;
  expect([shared.inputDims, Owner.config().tpl.inputDims, config.tpl.inputDims]).toEqual([1, 1, 2]);
});

test('a default that contains itself is an error, not an endless loop', () => {
  const later: { cls?: ConcreteClass } = {};
  class Endless extends Configurable.with({ child: z.lazy((): z.ZodType => sub(later.cls!)) }) {}
  later.cls = Endless;
  expect(messageOf(() => deepRead(Endless.config()))).toBe(
    'The default of Endless.child contains itself without end. Make the field optional, or give it another default.',
  );
  function deepRead(config: { child: unknown }): unknown {
    return deepRead(config.child as { child: unknown });
  }
});

test('unknown names are errors at once, with a suggestion and the place', () => {
  const config = Linear.config() as unknown as Record<string, unknown>;
  const dims = "Linear has no hyperparameter 'inputDimz'. Did you mean 'inputDims'?";
  expect(problemOf(() => (config.inputDimz = 31337))).toBe(dims);
  expect(problemOf(() => config.inputDimz)).toBe(dims);
  expect(problemOf(() => delete config.inputDimz)).toBe(dims);
  expect(problemOf(() => Object.assign(config, { inputDimz: 1 }))).toBe(dims);
  expect(problemOf(() => Linear.config({ inputDimz: 1 } as object))).toBe(dims);
  expect(problemOf(() => (config.depth = 1))).toBe(
    "Linear has no hyperparameter 'depth'. It has inputDims, outputDims, hasBias.",
  );
  expect(problemOf(() => config.fprop)).toBe(
    "Linear has no hyperparameter 'fprop'. Linear has a member of that name: was build(config) forgotten?",
  );
});

test('values are checked at once, and a refused value is not stored', () => {
  const config = Scaled.config({ inputDims: 4 }) as unknown as Record<string, unknown>;
  const refused: [string, unknown, string][] = [
    ['inputDims', -1, 'expected a positive integer, got -1'],
    ['inputDims', '4', "expected a positive integer, got '4'"],
    ['inputDims', 1.5, 'expected a positive integer, got 1.5'],
    ['inputDims', undefined, 'expected a positive integer, got undefined'],
    ['hasBias', undefined, 'expected true or false, got undefined; delete the field to get its default back'],
    ['hasBias', 1, 'expected true or false, got 1'],
    ['scale', 2, 'expected a number from 0 to 1, got 2'],
    ['scale', Number.NaN, 'expected a number from 0 to 1, got NaN'],
  ];
  for (const [name, value, problem] of refused) {
    expect(problemOf(() => (config[name] = value))).toBe(`Scaled.${name}: ${problem}`);
  }
  expect([config.inputDims, config.hasBias, config.scale]).toEqual([4, true, 0.5]);
});

test('sub-configs must be configs of the class', () => {
  const config = Stack.config() as unknown as Record<string, unknown>;
  const expected = 'expected a Linear config, got';
  expect(problemOf(() => (config.linearTpl = Stack.config()))).toBe(
    `Stack.linearTpl: ${expected} a Stack config`,
  );
  expect(problemOf(() => (config.linearTpl = Linear.partial()))).toBe(
    `Stack.linearTpl: ${expected} a Linear partial`,
  );
  expect(problemOf(() => (config.linearTpl = Linear))).toBe(`Stack.linearTpl: ${expected} function Linear`);
  expect(problemOf(() => (config.layers = [Linear.config(), 3]))).toBe(`Stack.layers[1]: ${expected} 3`);
  config.linearTpl = Scaled.config();
  expect(classOf(config.linearTpl as ReturnType<typeof Scaled.config>)).toBe(Scaled);
});

test('config() reports everything that is wrong at once', () => {
  const values = { inputDims: 0, outputDimz: 3, hasBias: 'no' } as object;
  expect(problemOf(() => Linear.config(values))).toBe(
    [
      'Linear.config(): 3 problems:',
      '  Linear.inputDims: expected a positive integer, got 0',
      "  Linear has no hyperparameter 'outputDimz'. Did you mean 'outputDims'?",
      "  Linear.hasBias: expected true or false, got 'no'",
    ].join('\n'),
  );
});

test('refinements speak in their own words', () => {
  class Even extends Configurable.with({
    size: z
      .int()
      .refine((size) => size % 2 === 0, 'must be even')
      .default(2),
  }) {}
  expect(problemOf(() => (Even.config().size = 3))).toBe('Even.size: must be even, got 3');
});

test('edits of arrays and records in place are checked and recorded', () => {
  const config = Stack.config();
  config.dims.push(7);
  expect(config.dims).toEqual([1, 2, 7]);
  expect(problemOf(() => config.dims.push(-1))).toBe('Stack.dims[3]: expected a positive integer, got -1');
  expect(problemOf(() => (config.dims[0] = 0.5))).toBe('Stack.dims[0]: expected a positive integer, got 0.5');
  expect(config.dims).toEqual([1, 2, 7]);
  config.dims.splice(0, 2);
  config.rates.x = 1;
  expect(problemOf(() => ((config.rates as Record<string, unknown>).y = 'z'))).toBe(
    "Stack.rates.y: expected a number, got 'z'",
  );
  expect([config.dims, config.rates, Stack.config().dims]).toEqual([[7], { x: 1 }, [1, 2]]);
  expect(history(config, 'dims').map((entry) => [entry.kind, entry.value])).toContainEqual([
    'edit',
    [1, 2, 7],
  ]);
  expect(history(config, 'dims').at(-1)!.value).toEqual([7]);
});

test('shortening an array that must not be short leaves it whole', () => {
  class Pair extends Configurable.with({ both: z.array(z.int()).min(2).default([1, 2]) }) {}
  const config = Pair.config({ both: [3, 4] });
  expect(problemOf(() => (config.both.length = 1))).toBe(
    'Pair.both: expected an array of length at least 2 of integers, got [3]',
  );
  expect(config.both).toEqual([3, 4]);
});

test('arrays are copied in: a config owns its containers', () => {
  const dims = [3];
  const first = Stack.config({ dims });
  const second = Stack.config({ dims: first.dims });
  dims.push(4);
  first.dims.push(5);
  expect([first.dims, second.dims]).toEqual([[3, 5], [3]]);
});

test('keys that reach prototypes are refused', () => {
  const config = Stack.config();
  const evil = JSON.parse('{"__proto__": 1}') as Record<string, number>;
  const place =
    /^Stack\.rates: '?(__proto__|constructor|Symbol\(s\))'? is not allowed as a key\. \(at .*config\.test\.ts:\d+\)$/;
  expect(messageOf(() => (config.rates = evil))).toMatch(place);
  expect(messageOf(() => (config.rates.constructor = 1 as never))).toMatch(place);
  expect(messageOf(() => (config.rates = { [Symbol('s')]: 1 } as never))).toMatch(place);
  expect(messageOf(() => ((config.rates as Record<symbol, number>)[Symbol('s')] = 1))).toMatch(place);
  expect(messageOf(() => Stack.config({ [Symbol('s')]: 1 } as never))).toContain(
    "Stack has no hyperparameter 'Symbol(s)'.",
  );
  expect(messageOf(() => Linear.with({ constructor: z.int() }))).toContain(
    "Linear.with: the hyperparameter 'constructor' is reserved by JavaScript.",
  );
  expect(messageOf(() => Linear.with({ 'a-b': z.int() }))).toContain(
    "Linear.with: the hyperparameter 'a-b' is not an identifier, so it could not be named in a path.",
  );
  expect(messageOf(() => Linear.with({ size: 3 as unknown as z.ZodType }))).toContain(
    "Linear.with: the hyperparameter 'size' is not a zod schema, such as z.int().default(1).",
  );
});

test('a container that contains itself is refused', () => {
  class Loose extends Configurable.with({ data: z.any() }) {}
  const loop: unknown[] = [];
  loop.push(loop);
  expect(messageOf(() => (Loose.config().data = loop))).toMatch(
    /^Loose\.data: A value is nested more than 200 levels deep, or contains itself\. \(at .*config\.test\.ts:\d+\)$/,
  );
});

test('assign sets several fields; Object.keys lists those that have a value', () => {
  const config = assign(Linear.config(), { inputDims: 2, hasBias: false });
  expect(Object.keys(config)).toEqual(['inputDims', 'hasBias']);
  expect({ ...config }).toEqual({ inputDims: 2, hasBias: false });
  expect('outputDims' in config).toBe(true);
  expect(isConfig(config) && !isConfig({}) && !isConfig(null)).toBe(true);
});

test('a config survives being printed, awaited and compared by others', async () => {
  const config = Linear.config({ inputDims: 2 });
  expect(await Promise.resolve(config)).toBe(config);
  expect(String(config)).toBe('[object Linear config]');
  const { inspect } = await import('node:util');
  expect(inspect(Stack.config({ first: config, note: 'x' }))).toBe(
    "Stack { first: Linear { inputDims: 2 }, note: 'x' }",
  );
  expect(() => Object.freeze(config)).toThrow(TypeError);
  expect(config).toEqual(deepCopy(config));
});

test('history holds every write in order, with the place', () => {
  const config = Linear.config({ inputDims: 4 });
  config.inputDims = 5;
  unset(config, 'inputDims');
  const entries = history(config);
  expect(entries.map(({ field, kind, value }) => [field, kind, value])).toEqual([
    ['inputDims', 'set', 4],
    ['inputDims', 'set', 5],
    ['inputDims', 'delete', undefined],
  ]);
  const lines = entries.map((entry) => entry.place!.line);
  expect(entries.map((entry) => entry.place!.file)).toEqual(
    Array(3).fill('test/hparams/nodes/config.test.ts'),
  );
  expect([lines[1]! - lines[0]!, lines[2]! - lines[1]!]).toEqual([1, 1]);
  expect(entries[0]!.sequence).toBeLessThan(entries[1]!.sequence);
});

test('a copy begins with the history of its original and goes its own way', () => {
  const config = Linear.config({ inputDims: 4 });
  const copied = deepCopy(config);
  copied.inputDims = 6;
  expect(history(config).map((entry) => entry.value)).toEqual([4]);
  expect(history(copied).map((entry) => entry.value)).toEqual([4, 6]);
});

test('ConfigError gives path, place and the problem alone', () => {
  try {
    (Linear.config() as Record<string, unknown>).inputDims = -1;
    expect.unreachable();
  } catch (error) {
    const { path, place, problem, name } = error as ConfigError;
    expect(error).toBeInstanceOf(ConfigError);
    expect({ path, problem, name }).toEqual({
      path: 'inputDims',
      problem: 'Linear.inputDims: expected a positive integer, got -1',
      name: 'ConfigError',
    });
    expect(place).toMatch(/^test\/hparams\/nodes\/config\.test\.ts:\d+$/);
  }
});

test('a refused edit leaves arrays and records as they were, length and order of keys included', () => {
  const config = Stack.config({ dims: [1, 2], rates: { a: 1, b: 2, c: 3 } });
  const past = history(config).length;
  expect(problemOf(() => (config.dims[5] = 1))).toContain('Stack.dims[2]: expected');
  expect(problemOf(() => (config.dims.length = 4))).toContain('Stack.dims[2]: expected');
  expect(problemOf(() => config.dims.splice(0, 1, 5, -1))).toContain('Stack.dims[1]: expected');
  expect(problemOf(() => config.dims.fill(0))).toContain('Stack.dims[0]: expected');
  const compare = (): number => {
    throw new RangeError('compare');
  };
  expect(() => config.dims.sort(compare)).toThrow(RangeError);
  class Strict extends Configurable.with({ all: z.object({ a: z.int(), b: z.int(), c: z.int() }) }) {}
  const strict = Strict.config({ all: { a: 1, b: 2, c: 3 } });
  expect(problemOf(() => delete (strict.all as { a?: number }).a)).toContain('Strict.all.a: expected');
  delete (config.rates as { missing?: number }).missing;
  expect([config.dims, Object.keys(strict.all), history(config).length]).toEqual([
    [1, 2],
    ['a', 'b', 'c'],
    past,
  ]);
});

test('an array or record that stands in no config any more refuses edits, which would be lost', () => {
  class Rows extends Configurable.with({ rows: z.array(z.array(z.int())).default([[1], [2]]) }) {}
  const config = Rows.config();
  const [first, second] = config.rows as [number[], number[]];
  const rows = config.rows;
  config.rows.shift();
  expect(problemOf(() => first.push(3))).toBe(
    'This array is no longer part of Rows.rows: another value was written there since. Read Rows.rows again.',
  );
  second.push(4);
  config.rows = [[5]];
  expect(problemOf(() => rows.pop())).toContain('This array is no longer part of Rows.rows');
  unset(config, 'rows');
  expect(problemOf(() => second.push(1))).toContain('This array is no longer part of Rows.rows');
  expect([config.rows, isSet(config, 'rows'), second]).toEqual([[[1], [2]], false, [2, 4]]);
});

test('what fills several places of an array is copied into each', () => {
  class Rows extends Configurable.with({ rows: z.array(z.array(z.int())).default([[1], [2], [3]]) }) {}
  const config = Rows.config();
  config.rows.fill([0], 1);
  config.rows[1]!.push(5);
  config.rows.copyWithin(2, 0, 1);
  config.rows[2]!.push(6);
  expect(config.rows).toEqual([[1], [0, 5], [1, 6]]);
});

test('arrays in a Map refuse edits, which would be lost', () => {
  class Mapped extends Configurable.with({ map: z.map(z.string(), z.array(z.int())) }) {}
  const config = Mapped.config({ map: new Map([['a', [1]]]) });
  expect(() => config.map.get('a')!.push(2)).toThrow(TypeError);
  config.map = new Map([...config.map, ['b', [2]]]);
  expect([...config.map]).toEqual([
    ['a', [1]],
    ['b', [2]],
  ]);
});
