/** @file Rules across fields, hooks, and what validate and build say when they do not hold. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  type Config,
  type ConfigError,
  Configurable,
  copy,
  derive,
  factory,
  instance,
  type Report,
  sub,
  validate,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Attention extends Configurable.with(
  {
    modelDims: z.int().positive(),
    numHeads: z.int().positive().default(8),
    biases: z.array(z.number()).default([]),
  },
  (schema) =>
    schema
      .refine(({ modelDims, numHeads }) => modelDims % numHeads === 0, {
        path: ['numHeads'],
        error: 'must divide modelDims',
      })
      .superRefine(({ biases }, context) => {
        for (const [i, bias] of biases.entries()) {
          if (bias < 0)
            context.addIssue({ code: 'custom', path: ['biases', i], message: 'must not be negative' });
        }
      }),
) {}
class Windowed extends Attention.with({ window: z.int().default(4) }, (schema) =>
  schema.refine(({ window, modelDims }) => window <= modelDims, {
    error: 'the window is wider than the model',
  }),
) {}
class Block extends Configurable.with({
  attention: instance(Attention),
  more: z.record(z.string(), instance(Attention)).default({}),
  tpl: sub(Attention),
}) {}

test('a rule that does not hold names the path, the values and where they were set', () => {
  const config = Block.config({ attention: Attention.config({ modelDims: 10 }) });
  expect(messageOf(() => build(config))).toMatch(
    /^The config is not valid: attention\.numHeads \(Attention\): must divide modelDims; modelDims is 10 \(at test\/hparams\/building\/rules\.test\.ts:\d+\), numHeads is 8 \(the default\)\.$/,
  );
  config.attention.numHeads = 5;
  expect(validate(config)).toEqual([]);
  expect(build(config).hp.attention.hp.numHeads).toBe(5);
});

test('rules of a class hold for its subclasses, which add theirs; all is told at once, over the whole graph', () => {
  const config = Block.config({
    attention: Windowed.config({ modelDims: 12, window: 20 }),
    more: { 'a b': Attention.config({ modelDims: 8, biases: [1, -2, 3, -4] }), empty: Attention.config() },
    tpl: Attention.config({ modelDims: 9, numHeads: 2 }),
  });
  const violations = validate(config);
  expect(violations.map(String).map(withoutLines)).toEqual([
    "more['empty'].modelDims (Attention): not set, expected a positive integer",
    'attention.numHeads (Windowed): must divide modelDims; modelDims is 12 (at LINE), numHeads is 8 (the default)',
    'attention (Windowed): the window is wider than the model; window is 20 (at LINE), modelDims is 12 (at LINE)',
    "more['a b'].biases[1] (Attention): must not be negative; biases[1] is -2 (at LINE)",
    "more['a b'].biases[3] (Attention): must not be negative; biases[3] is -4 (at LINE)",
    'tpl.numHeads (Attention): must divide modelDims; modelDims is 9 (at LINE), numHeads is 2 (at LINE)',
  ]);
  expect(violations.map(({ kind }) => kind)).toEqual(['missing', 'rule', 'rule', 'rule', 'rule', 'rule']);
  expect(violations[3]!.config).toBe(config.more['a b']);
  expect(violations[3]!.values).toEqual([
    {
      path: "more['a b'].biases[1]",
      value: -2,
      where: expect.stringMatching(/^test\/hparams\/building\/rules\.test\.ts:\d+$/),
    },
  ]);
  const message = messageOf(() => build(config));
  expect(message.split('\n')[0]).toBe('The config has 6 problems:');
  expect(message.split('\n').slice(1)).toEqual(violations.map((violation) => `  ${violation}`));
});

const withoutLines = (text: string): string =>
  text.replaceAll(/test\/hparams\/building\/rules\.test\.ts:\d+/g, 'LINE');

test('a rule waits for the fields it reads: what is missing is told instead', () => {
  expect(messageOf(() => build(Attention.config()))).toBe(
    'A hyperparameter is not set: modelDims (Attention): expected a positive integer.',
  );
  // A template's defaults may still be replaced by its owner: only what was set counts.
  const config = Block.config({ attention: Attention.config({ modelDims: 8 }) });
  config.tpl.modelDims = 9;
  expect(validate(config)).toEqual([]);
  config.tpl.numHeads = 5;
  expect(validate(config).map(({ path }) => path)).toEqual(['tpl.numHeads']);
});

test('a template is looked at again when its owner builds it', () => {
  class Owner extends Configurable.with({ tpl: sub(Attention) }) {
    override setup(): void {
      build(derive(this.hp.tpl, (draft) => void (draft.modelDims = 9)));
    }
  }
  expect(withoutLines(messageOf(() => build(Owner.config())))).toBe(
    'The config is not valid: numHeads (Attention): must divide modelDims; modelDims is 9 (at LINE), numHeads is 8 (the default).\n  while building Owner',
  );
});

test('nothing is made before everything was found to hold', () => {
  const made: string[] = [];
  class Loud extends Attention.with({}) {
    override setup(): void {
      made.push('made');
    }
  }
  const config = Block.config({
    attention: Loud.config({ modelDims: 8 }),
    more: { a: Loud.config({ modelDims: 9 }) },
  });
  expect(() => build(config)).toThrow('must divide modelDims');
  expect(made).toEqual([]);
});

test('the hook of a class reports what it wants, with paths; those of its bases are called too', () => {
  const calls: string[] = [];
  class Base extends Configurable.with({ first: z.int(), list: z.array(instance(Attention)).default([]) }) {
    static override validate(config: Config<Base>, report: Report): void {
      calls.push(Base.name);
      if (config.first > 3) report('is large', 'first');
      if (config.list.length > 1) report('is one too many', 'list[1].modelDims');
    }
  }
  class Derived extends Base.with({ second: z.int().default(1) }) {
    static override validate(config: Config<Derived>, report: Report): void {
      calls.push(`derived ${Derived.name}`);
      if (config.second !== config.first) report('first and second differ');
    }
  }
  const list = [4, 8].map((modelDims) => Attention.config({ modelDims, numHeads: 2 }));
  expect(
    validate({ x: Derived.config({ first: 5, list }) })
      .map(String)
      .map(withoutLines),
  ).toEqual([
    "['x'].first (Derived): is large; first is 5 (at LINE)",
    "['x'].list[1].modelDims (Derived): is one too many; list[1].modelDims is 8 (at LINE)",
    "['x'] (Derived): first and second differ; second is 1 (the default), first is 5 (at LINE)",
  ]);
  expect(calls).toEqual(['Base', 'derived Derived']);
  expect(validate(Derived.config()).map(String)).toEqual(['first (Derived): not set, expected an integer']);
});

test('a rule that throws, writes or is async is told of like one that does not hold', () => {
  const cause = new TypeError('no such thing');
  class Thrower extends Configurable.with({ size: z.int().default(1) }, (schema) =>
    schema
      .refine(({ size }) => {
        if (size === 2) throw cause;
        return true;
      })
      .refine(({ size }) => (size === 3 ? Promise.resolve(true) : true))
      .refine((values) => {
        if (values.size === 4) (values as { size: number }).size = 5;
        return true;
      })
      .refine(({ size }) => size !== 6),
  ) {}
  const texts = [2, 3, 4, 6].map((size) => validate(Thrower.config({ size })).map((each) => each.message));
  expect(texts).toEqual([
    ['a rule failed: no such thing'],
    ['a rule must not be async: its problems are collected when it returns'],
    ['a rule failed: it wrote Thrower.size; rules must not write.'],
    ['a rule does not hold'],
  ]);
  let error: unknown;
  try {
    build(Thrower.config({ size: 2 }));
  } catch (thrown) {
    error = thrown;
  }
  expect((error as ConfigError).cause).toBe(cause);
});

test('the rules of a class may only refine', () => {
  const message =
    /^Configurable\.with: the rules may only add refinements to the schema they are given: \(schema\) => schema\.refine\(…\)\. \(at test\/hparams\/building\/rules\.test\.ts:\d+\)$/;
  expect(messageOf(() => Configurable.with({}, (schema) => schema.transform(() => 1)))).toMatch(message);
  expect(messageOf(() => Configurable.with({}, () => z.object({})))).toMatch(message);
});

test('a rule that aborts ends the checks of its config', () => {
  class Two extends Configurable.with({ size: z.int() }, (schema) =>
    schema
      .refine(({ size }) => size > 0, { error: 'one', abort: true })
      .refine(({ size }) => size > 1, { error: 'two' }),
  ) {}
  expect(validate(Two.config({ size: 0 })).map(({ message }) => message)).toEqual(['one']);
  expect(validate(Two.config({ size: 1 })).map(({ message }) => message)).toEqual(['two']);
});

test("a partial's rules wait for the call, whose values count", () => {
  class Maker extends Configurable.with({ make: factory(Attention) }) {}
  const maker = build(Maker.config({ make: Attention.partial({ modelDims: 9 }) }));
  expect(withoutLines(messageOf(() => maker.hp.make()))).toBe(
    'The config is not valid: numHeads (Attention): must divide modelDims; modelDims is 9 (at LINE), numHeads is 8 (the default).',
  );
  expect(messageOf(() => maker.hp.make({ modelDims: 4 }))).toContain(
    'modelDims is 4 (at the call of the factory)',
  );
  expect(maker.hp.make({ numHeads: 3 }).hp.numHeads).toBe(3);
});

test('derived configs and containers of configs are validated', () => {
  const config = Attention.config({ modelDims: 16 });
  const wrong = derive(copy(config), (draft) => void (draft.numHeads = 3));
  expect([validate(config).length, validate([config, wrong]).map(({ path }) => path)]).toEqual([
    0,
    ['[1].numHeads'],
  ]);
});

test('types: rules see the values of the class and of its bases', () => {
  class Typed extends Windowed.with({ label: z.string().default('x') }, (schema) =>
    schema.refine((values) => {
      expectTypeOf(values.label).toEqualTypeOf<string>();
      expectTypeOf(values.biases).toEqualTypeOf<number[]>();
      expectTypeOf(values.window).toEqualTypeOf<number>();
      // @ts-expect-error: no such field
      expect(() => values.labels).toThrow("no hyperparameter 'labels'");
      return true;
    }),
  ) {}
  expect(validate(Typed.config({ modelDims: 8 }))).toEqual([]);
});

test('a rule over many elements looks at each once, and the error stays short', () => {
  const biases = Array.from({ length: 10_000 }, (_, i) => -1 - i);
  const config = Attention.config({ modelDims: 8, biases });
  for (let i = 0; i < 1000; i += 1) config.numHeads = 8;
  const violations = validate(config);
  expect(violations.length).toBe(10_000);
  expect(violations[9_999]!.path).toBe('biases[9999]');
  const lines = messageOf(() => build(config)).split('\n');
  expect([lines[0], lines.length, lines.at(-1)]).toEqual([
    'The config has 10,000 problems:',
    52,
    '  … and 9,950 more',
  ]);
});

test('a chain of 10,000 wrong configs is validated in one walk', () => {
  class Link extends Configurable.with(
    { next: instance(Configurable, null).nullable().default(null), size: z.int() },
    (schema) => schema.refine(({ size }) => size < 0, { path: ['size'], error: 'must be negative' }),
  ) {}
  let root = Link.config({ size: 0 });
  for (let i = 1; i < 10_000; i += 1) root = Link.config({ next: root, size: i });
  expect(validate(root).length).toBe(10_000);
  expect(messageOf(() => build(root)).length).toBeLessThan(30_000);
});
