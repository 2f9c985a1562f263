/** @file What compiles and what does not: the lines that must not are marked, and the compiler checks the marks. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  type Config,
  ConfigError,
  type ConfigOf,
  Configurable,
  classOf,
  configurable,
  container,
  defineTag,
  derive,
  type Factory,
  factory,
  type HpOf,
  instance,
  isSet,
  setTagged,
  sub,
  tagged,
  unset,
} from '../../src/hparams/index.js';

abstract class Layer extends Configurable.with({ name: z.string().default('layer') }) {
  static override readonly isAbstract = true;
  abstract apply(x: number): number;
  calls = 0;
}
class Linear extends Layer.with({ inputDims: z.int().positive(), hasBias: z.boolean().default(true) }) {
  override setup(): void {
    const dims: number = this.hp.inputDims;
    const name: string = this.hp.name;
    this.calls = dims + name.length;
  }
  apply(x: number): number {
    return x * this.hp.inputDims;
  }
}
abstract class Activation extends Layer.with({}) {
  static override readonly isAbstract = true;
}
class ReLU extends Activation.with({ slope: z.number().default(0) }) {
  apply(x: number): number {
    return Math.max(x, this.hp.slope * x);
  }
}
class FeedForward extends Layer.with({
  hiddenDims: z.int().default(4),
  mode: z.enum(['fast', 'exact']).default('fast'),
  clip: z.number().nullable().default(null),
  note: z.string().optional(),
  shape: z.tuple([z.int(), z.string()]).default([1, 'a']),
  rates: z.record(z.string(), z.number()).default({}),
  linearTpl: sub(Linear),
  activation: instance(Activation, () => ReLU.config()),
  layers: z.array(instance(Linear)).default([]),
  makeLinear: factory(Linear).optional(),
}) {
  apply(x: number): number {
    return this.hp.activation.apply(x);
  }
}

/** Runs lines that must not compile, and must fail when they run all the same. */
function fails(action: () => unknown): void {
  expect(action).toThrow(ConfigError);
}

test('fields have the types of their schemas', () => {
  const config = FeedForward.config({ hiddenDims: 8, mode: 'exact' });
  expectTypeOf(config).toExtend<Config<FeedForward>>();
  expectTypeOf(config.hiddenDims).toEqualTypeOf<number>();
  expectTypeOf(config.name).toEqualTypeOf<string>();
  expectTypeOf(config.mode).toEqualTypeOf<'fast' | 'exact'>();
  expectTypeOf(config.clip).toEqualTypeOf<number | null>();
  expectTypeOf(config.note).toEqualTypeOf<string | undefined>();
  expectTypeOf(config.shape).toEqualTypeOf<[number, string]>();
  expectTypeOf(config.rates).toEqualTypeOf<Record<string, number>>();
  expectTypeOf(config.linearTpl).toEqualTypeOf<Config<Linear>>();
  expectTypeOf(config.activation).toEqualTypeOf<Config<Activation>>();
  expectTypeOf(config.layers).toEqualTypeOf<Config<Linear>[]>();
  expectTypeOf<ConfigOf<typeof FeedForward>>().toEqualTypeOf<Config<FeedForward>>();
  config.linearTpl.inputDims = 3;
  expect(config.linearTpl.inputDims).toBe(3);
});

test('hyperparameters of an instance: templates stay configs, instances and factories are built', () => {
  const config = FeedForward.config({ makeLinear: Linear.partial({ inputDims: 2 }) });
  const layer = build(config);
  expectTypeOf(layer).toEqualTypeOf<FeedForward>();
  expectTypeOf(layer.hp.name).toEqualTypeOf<string>();
  expectTypeOf(layer.hp.linearTpl).toEqualTypeOf<Config<Linear>>();
  expectTypeOf(layer.hp.activation).toEqualTypeOf<Activation>();
  expectTypeOf(layer.hp.layers).toEqualTypeOf<Linear[]>();
  expectTypeOf(layer.hp.makeLinear).toEqualTypeOf<Factory<Linear> | undefined>();
  expectTypeOf<HpOf<Linear>['inputDims']>().toEqualTypeOf<number>();
  expectTypeOf(build(Linear.partial())).toEqualTypeOf<Factory<Linear>>();
  expect(layer.hp.makeLinear!({ hasBias: false }).hp.hasBias).toBe(false);
  // @ts-expect-error hyperparameters are read-only
  expect(() => (layer.hp.hiddenDims = 3)).toThrow(TypeError);
});

test('misspelt fields do not compile', () => {
  const config = FeedForward.config();
  // @ts-expect-error misspelt
  fails(() => (config.hidenDims = 3));
  // @ts-expect-error misspelt in a sub-config
  fails(() => (config.linearTpl.inputDimz = 3));
  // @ts-expect-error misspelt where it is read
  fails(() => config.hidenDims);
  // @ts-expect-error misspelt in config()
  fails(() => FeedForward.config({ hiden: 1 }));
  // @ts-expect-error misspelt in partial()
  fails(() => FeedForward.partial({ hiden: 1 }));
  // @ts-expect-error misspelt in derive()
  fails(() => derive(config, (draft) => (draft.hidenDims = 3)));
  // @ts-expect-error misspelt in a sub-config, in derive()
  fails(() => derive(config, (draft) => (draft.linearTpl.inputDimz = 3)));
  // @ts-expect-error misspelt in unset()
  fails(() => unset(config, 'hidenDims'));
  // @ts-expect-error misspelt in isSet()
  fails(() => isSet(config, 'hidenDims'));
});

test('mistyped values do not compile', () => {
  const config = FeedForward.config();
  // @ts-expect-error a string for a number
  fails(() => (config.hiddenDims = 'x'));
  // @ts-expect-error not one of the choices
  fails(() => (config.mode = 'slow'));
  // @ts-expect-error null where it is not allowed
  fails(() => (config.hiddenDims = null));
  // @ts-expect-error undefined is no value
  fails(() => (config.hiddenDims = undefined));
  // @ts-expect-error a string for a number, in config()
  fails(() => FeedForward.config({ hiddenDims: 'x' }));
  // @ts-expect-error a string for a number, in derive()
  fails(() => derive(config, (draft) => void (draft.linearTpl.inputDims = 'x')));
  // @ts-expect-error a tuple of the wrong length
  fails(() => (config.shape = [1]));
  // @ts-expect-error a config of an unrelated class
  fails(() => (config.linearTpl = ReLU.config()));
  // @ts-expect-error an instance is not a config
  fails(() => (config.activation = build(ReLU.config())));
  // @ts-expect-error a partial is not a config
  fails(() => (config.activation = ReLU.partial()));
});

test('the default of a sub-config has its class', () => {
  class Mistaken extends Configurable.with({
    // @ts-expect-error a default of an unrelated class
    other: sub(Linear, () => ReLU.config()),
  }) {}
  fails(() => Mistaken.config().other);
});

test('a config of a subclass stands where one of its base is wanted, not the other way round', () => {
  const config = FeedForward.config();
  config.activation = ReLU.config({ slope: 0.5 });
  const base: Config<Activation> = ReLU.config();
  expect(classOf(base)).toBe(ReLU);
  const wanted = (given: Config<ReLU>): unknown => given.slope;
  // @ts-expect-error an activation may be anything but ReLU
  expect(wanted(base)).toBe(0);
});

test('abstract classes have no config, and need a default as a field', () => {
  // @ts-expect-error cannot be instantiated
  fails(() => Activation.config());
  // @ts-expect-error cannot be instantiated
  fails(() => Activation.partial());
  // @ts-expect-error no default
  expect(() => sub(Activation)).not.toThrow();
  expect(() => sub(Activation, null)).not.toThrow();
});

test('a subclass must implement what its base leaves abstract', () => {
  // @ts-expect-error apply() is missing
  class Forgetful extends Layer.with({ size: z.int().default(1) }) {}
  expect(build(Forgetful.config()).hp.size).toBe(1);
});

test('setup needs the word override', () => {
  class Plain extends Configurable.with({}) {
    // @ts-expect-error without override
    setup(): void {}
  }
  expect(build(Plain.config())).toBeInstanceOf(Plain);
});

test('generic functions keep the class', () => {
  const make = <T extends Layer>(config: Config<T>): T => build(config);
  expectTypeOf(make(Linear.config({ inputDims: 1 }))).toEqualTypeOf<Linear>();
  expect(make(Linear.config({ inputDims: 1 })).calls).toBe(6);
  const named = <C extends Config<Layer>>(config: C): C => derive(config, (draft) => void (draft.name = 'x'));
  const linear = named(Linear.config({ inputDims: 1 }));
  expectTypeOf(linear).toEqualTypeOf<Config<Linear>>();
  expect(linear.name).toBe('x');
});

// zod brands what comes out of a schema; 'inout' brands what a config holds, too.
const Dims = z.int().positive().brand<'Dims', 'inout'>();
const Rate = z.number().brand<'Rate'>();
const makeRow = configurable(
  function makeRow(hp: { width: number; note: string | undefined }): Map<string, number> {
    return new Map([[hp.note ?? 'width', hp.width]]);
  },
  { width: z.number().default(1), note: z.string().optional() },
);
class Everything extends Configurable.with({
  dims: Dims,
  rate: Rate.default(Rate.parse(0.5)),
  pair: z.tuple([instance(Linear), z.literal('end')]),
  rest: z.tuple([z.int()], sub(Linear)).default([1]),
  byName: z.record(z.enum(['in', 'out']), instance(Linear)),
  some: z.partialRecord(z.enum(['in', 'out']), sub(Linear)).default({}),
  maybe: instance(Activation, null).nullable().default(null),
  either: z.union([instance(Linear), z.int(), z.literal('none')]).default('none'),
  box: z.object({ inner: instance(Linear), size: z.int().optional() }),
  row: instance(makeRow),
  table: z.map(z.string(), instance(Linear)).default(new Map()),
  parsed: z.string().transform(Number).default(3),
}) {}

test('tuples, records, optionals, unions, literals and brands keep their types through config, derive and build', () => {
  const linear = Linear.config({ inputDims: 1 });
  const config = Everything.config({
    dims: Dims.parse(3 as z.input<typeof Dims>),
    pair: [linear, 'end'],
    byName: { in: linear, out: linear },
    box: { inner: linear },
    either: linear,
  });
  expectTypeOf(config.dims).toEqualTypeOf<number & z.core.$brand<'Dims'>>();
  expectTypeOf(config.rate).toEqualTypeOf<number>();
  expectTypeOf(config.pair).toEqualTypeOf<[Config<Linear>, 'end']>();
  expectTypeOf(config.rest).toEqualTypeOf<[number, ...Config<Linear>[]]>();
  expectTypeOf(config.byName).toEqualTypeOf<Record<'in' | 'out', Config<Linear>>>();
  expectTypeOf(config.some).toEqualTypeOf<Partial<Record<'in' | 'out', Config<Linear>>>>();
  expectTypeOf(config.maybe).toEqualTypeOf<Config<Activation> | null>();
  expectTypeOf(config.either).toEqualTypeOf<Config<Linear> | number | 'none'>();
  expectTypeOf(config.box).toEqualTypeOf<{ inner: Config<Linear>; size?: number | undefined }>();
  expectTypeOf(config.row.note).toEqualTypeOf<string | undefined>();
  expectTypeOf(config.table).toEqualTypeOf<Map<string, Config<Linear>>>();
  expectTypeOf(config.parsed).toEqualTypeOf<string>();
  const derived = derive(config, (draft) => {
    expectTypeOf(draft).toEqualTypeOf<Config<Everything>>();
    expectTypeOf(draft.byName.in.inputDims).toEqualTypeOf<number>();
    draft.pair[0].inputDims = 2;
    draft.row.width = 4;
  });
  expectTypeOf(derived).toEqualTypeOf<Config<Everything>>();
  const { hp } = build(derived);
  expectTypeOf(hp.dims).toEqualTypeOf<number & z.core.$brand<'Dims'>>();
  expectTypeOf(hp.rate).toEqualTypeOf<number & z.core.$brand<'Rate'>>();
  expectTypeOf(hp.pair).toEqualTypeOf<[Linear, 'end']>();
  expectTypeOf(hp.rest).toEqualTypeOf<[number, ...Config<Linear>[]]>();
  expectTypeOf(hp.byName).toEqualTypeOf<Record<'in' | 'out', Linear>>();
  expectTypeOf(hp.maybe).toEqualTypeOf<Activation | null>();
  expectTypeOf(hp.either).toEqualTypeOf<Linear | number | 'none'>();
  expectTypeOf(hp.box).toEqualTypeOf<{ inner: Linear; size?: number | undefined }>();
  expectTypeOf(hp.row).toEqualTypeOf<Map<string, number>>();
  expectTypeOf(hp.table).toEqualTypeOf<Map<string, Linear>>();
  expectTypeOf(hp.parsed).toEqualTypeOf<number>();
  expect([hp.pair[0].hp.inputDims, hp.byName.in === hp.pair[0], hp.row.get('width')]).toEqual([2, true, 4]);
  // @ts-expect-error a plain number is not branded
  config.dims = 4;
  // @ts-expect-error not a key of the record
  fails(() => (config.byName.inn = linear));
  // @ts-expect-error a string that is not the literal
  fails(() => (config.either = 'some'));
  // @ts-expect-error a config of another function
  fails(() => (config.row = Linear.config()));
});

test('functions: fields, results and factories have their types', () => {
  const config = makeRow.config({ width: 2 });
  expectTypeOf(build(config)).toEqualTypeOf<Map<string, number>>();
  expectTypeOf(build(makeRow.partial())).toBeCallableWith({ width: 3 });
  expectTypeOf(build(makeRow.partial())()).toEqualTypeOf<Map<string, number>>();
  expectTypeOf(derive(config, (draft) => void (draft.width = 3))).toEqualTypeOf(config);
  expect(makeRow({ width: 1, note: 'x' }).get('x')).toBe(1);
  // @ts-expect-error misspelt
  fails(() => makeRow.config({ widht: 1 }));
  // @ts-expect-error misspelt where it is read
  fails(() => config.widht);
  // @ts-expect-error a partial is not a config
  const row = instance(makeRow, () => makeRow.partial());
  fails(() => class extends Configurable.with({ row }) {}.config().row);
  // @ts-expect-error a number is nothing to build
  fails(() => build(3));
  // @ts-expect-error a class is not its config
  fails(() => build(Linear));
});

test('a container field without type arguments has the type of its class, also when built', () => {
  class Ring {
    constructor(readonly items: readonly unknown[]) {}
  }
  class Loop extends Configurable.with({ ring: container(Ring, instance(Linear)) }) {}
  expectTypeOf<Config<Loop>['ring']>().toEqualTypeOf<Ring>();
  expectTypeOf<HpOf<Loop>['ring']>().toEqualTypeOf<Ring>();
});

const Depth = defineTag<number>('types.Depth', 'How deep something is.');

test('a tag stands for values of its type: on fields that take them, and where it is set', () => {
  class Deep extends Configurable.with({
    depth: tagged(z.number().nullable().default(1), Depth),
    // @ts-expect-error a text does not take the numbers that the tag stands for
    label: tagged(z.string().default('a'), Depth),
  }) {}
  const config = Deep.config({ depth: Depth.new(2) });
  expectTypeOf(Depth.new(2)).toExtend<number>();
  // @ts-expect-error a text for a number
  Depth.new('x');
  // @ts-expect-error a text for a number
  fails(() => setTagged(config, Depth, 'x'));
  expect(config.depth).toBe(2);
});
