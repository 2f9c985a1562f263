/** @file Configs of plain functions and of classes that know nothing of configs. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  builds,
  Configurable,
  classOf,
  configurable,
  copy,
  derive,
  factory,
  fromJSON,
  instance,
  isEqual,
  print,
  setPath,
  sub,
  toJSON,
} from '../../src/hparams/index.js';
import { messageOf } from './support.js';

interface Schedule {
  at(step: number): number;
}
const cosine = configurable(
  function cosine(hp: { peak: number; steps: number }): Schedule {
    return { at: (step) => hp.peak * Math.cos(step / hp.steps) };
  },
  { peak: z.number().positive().describe('Highest value.'), steps: z.int().positive().default(10) },
);
const list = configurable(function list(): unknown[] {
  return [];
}, {});

class Point {
  readonly x: number;
  constructor(hp: { x: number }) {
    this.x = hp.x;
  }
}
const ConfigurablePoint = configurable(Point, { x: z.number().default(1) });

test('a config of a function is built by calling it, once for each config object', () => {
  const config = cosine.config({ peak: 2 });
  expectTypeOf(config.peak).toEqualTypeOf<number>();
  expect([config.peak, config.steps, classOf(config)]).toEqual([2, 10, cosine]);
  const schedule = build(config);
  expectTypeOf(schedule).toEqualTypeOf<Schedule>();
  expect(schedule.at(0)).toBe(2);
  const whole = configurable((hp) => hp, { peak: z.number() }, { name: 'whole' });
  expect(Object.isFrozen(build(whole.config({ peak: 1 })))).toBe(true);
  const [first, again, other] = build([config, config, copy(config)]);
  expect(again).toBe(first);
  expect(other).not.toBe(first);
  expect(cosine({ peak: 3, steps: 1 }).at(0)).toBe(3);
});

test('functions stand in fields as classes do, with their results as types', () => {
  class Learner extends Configurable.with({
    schedule: instance(cosine, () => cosine.config({ peak: 1 })),
    template: sub(cosine),
    make: factory(cosine, () => cosine.partial({ peak: 5 })),
    point: instance(ConfigurablePoint),
  }) {}
  const config = Learner.config();
  config.schedule.peak = 4;
  const learner = build(config);
  expectTypeOf(learner.hp.schedule).toEqualTypeOf<Schedule>();
  expectTypeOf(learner.hp.point).toEqualTypeOf<Point>();
  expectTypeOf(learner.hp.make).toEqualTypeOf<
    (values?: Partial<{ readonly peak: number; readonly steps: number }>) => Schedule
  >();
  expect(learner.hp.schedule.at(0)).toBe(4);
  expect(learner.hp.make().at(0)).toBe(5);
  expect(learner.hp.make({ peak: 6 }).at(0)).toBe(6);
  expect(learner.hp.point).toBeInstanceOf(Point);
  expect(classOf(learner.hp.template)).toBe(cosine);
  expect(messageOf(() => (config.schedule = list.config() as never))).toMatch(
    /^Learner\.schedule: expected a cosine config, got a list config \(at test\/hparams\/functions\.test\.ts:\d+\)$/,
  );
});

test('a class that does not extend Configurable is built by its constructor', () => {
  const point = build(ConfigurablePoint.config({ x: 3 }));
  expectTypeOf(point).toEqualTypeOf<Point>();
  expect([point instanceof Point, point instanceof ConfigurablePoint, point.x]).toEqual([true, true, 3]);
  expect(point.constructor.name).toBe('Point');
  class Farther extends ConfigurablePoint {
    readonly far = this.x + 1;
  }
  expect((build(Farther.config({ x: 2 })) as Farther).far).toBe(3);
  class Owner extends Configurable.with({ point: instance(ConfigurablePoint) }) {}
  expect(build(Owner.config({ point: Farther.config() })).hp.point).toBeInstanceOf(Farther);
});

test('names and values are checked as those of classes are', () => {
  const config = cosine.config();
  // @ts-expect-error misspelt
  expect(messageOf(() => (config.peek = 1))).toMatch(
    /^cosine has no hyperparameter 'peek'\. Did you mean 'peak'\? \(at test\/hparams\/functions\.test\.ts:\d+\)$/,
  );
  // @ts-expect-error a string for a number
  expect(messageOf(() => cosine.config({ peak: 'x' }))).toMatch(
    /^cosine\.peak: expected a positive number, got 'x' \(at test\/hparams\/functions\.test\.ts:\d+\)$/,
  );
  expect(messageOf(() => build(config))).toBe(
    'A hyperparameter is not set: peak (cosine): expected a positive number.',
  );
});

test('the parameter of the function must fit the fields', () => {
  // @ts-expect-error a field of another type
  configurable((hp: { peak: string }) => hp.peak, { peak: z.number() }, { name: 'mistyped' });
  // @ts-expect-error a field that is not declared
  configurable((hp: { peak: number; more: number }) => hp.more, { peak: z.number() }, { name: 'lacking' });
  const inferred = configurable((hp) => hp.peak * 2, { peak: z.number() }, { name: 'inferred' });
  expectTypeOf(build(inferred.config({ peak: 2 }))).toEqualTypeOf<number>();
  expect(build(inferred.config({ peak: 2 }))).toBe(4);
});

test('a target needs a name by which code and documents find it', () => {
  expect(messageOf(() => configurable(() => 1, {}))).toMatch(
    /^A function without a name cannot be found again by code and documents\. Write configurable\(function cosine\(hp\) \{ … \}, fields\), or configurable\(fn, fields, \{ name: 'cosine' \}\)\. \(at test\/hparams\/functions\.test\.ts:\d+\)$/,
  );
  const bound = function named(): number {
    return 1;
  }.bind(undefined);
  expect(messageOf(() => configurable(bound, {}))).toMatch(/^The name 'bound named' cannot be found again/);
  expect(configurable(bound, {}, { name: 'named' }).name).toBe('named');
  expect(messageOf(() => configurable(3 as never, {}))).toMatch(
    /^configurable\(\) takes a function or a class, got 3\./,
  );
  expect(messageOf(() => configurable(cosine as never, {}))).toMatch(/^cosine is configurable already\./);
  expect(messageOf(() => configurable(Point, { 'a b': z.int() } as never))).toMatch(
    /^configurable\(Point\): the hyperparameter 'a b' is not an identifier/,
  );
});

test('the tools know functions: derive, equality, print, JSON', () => {
  const config = cosine.config({ peak: 2 });
  const slower = derive(config, (draft) => void (draft.steps = 20));
  expect([slower.steps, config.steps, isEqual(slower, config)]).toEqual([20, 10, false]);
  expect(print(slower)).toBe('<root> : cosine\npeak : 2\nsteps : 20');
  const point = ConfigurablePoint.config({ x: 2 });
  for (const each of [slower, point])
    expect(isEqual(fromJSON(JSON.stringify(toJSON(each))), each)).toBe(true);
  const declared = configurable(function onlyDeclared() {}, {});
  expect(classOf(fromJSON(JSON.stringify(toJSON(declared.config()))) as never)).toBe(declared);
});

test('a partial of a function: call values win, what is missing is asked for at the call', () => {
  const make = build(cosine.partial());
  expect(make({ peak: 1 }).at(0)).toBe(1);
  expect(messageOf(() => make())).toBe('The factory of cosine needs peak.');
  // @ts-expect-error misspelt
  expect(messageOf(() => make({ peek: 1 }))).toBe(
    "cosine has no hyperparameter 'peek'. Did you mean 'peak'?",
  );
  // @ts-expect-error misspelt
  expect(messageOf(() => cosine.partial({ peek: 1 }))).toMatch(/^cosine has no hyperparameter 'peek'/);
});

const pair = configurable(
  (hp) => [hp.a, hp.b] as const,
  { a: instance(list), b: instance(list) },
  { name: 'pair' },
);
const box = configurable((hp) => ({ inner: hp.inner }), { inner: instance(list) }, { name: 'box' });
const holder = configurable(
  (hp) => hp,
  { box: instance(box), all: z.array(instance(list)).default([]) },
  {
    name: 'holder',
  },
);

test('in a partial, configs are built once and argFactories for each call', () => {
  const make = build(pair.partial({ a: list.config(), b: list.argFactory() }));
  const [first, second] = [make(), make()];
  expect(second[0]).toBe(first[0]);
  expect(second[1]).not.toBe(first[1]);
});

test('argFactories nest: all fresh in each call, configs in them are shared', () => {
  const fresh = build(holder.partial({ box: box.argFactory({ inner: list.argFactory() }) }));
  const [a, b] = [fresh(), fresh()];
  expect(a.box).not.toBe(b.box);
  expect(a.box.inner).not.toBe(b.box.inner);
  const shared = build(holder.partial({ box: box.argFactory({ inner: list.config() }) }));
  const [c, d] = [shared(), shared()];
  expect(c.box).not.toBe(d.box);
  expect(c.box.inner).toBe(d.box.inner);
});

test('one argFactory is one object within a call, in whatever fields it stands', () => {
  const anew = list.argFactory();
  const [x, y] = build(pair.partial({ a: anew, b: anew }))();
  expect(x).toBe(y);
  const make = build(holder.partial({ all: [anew, anew, list.argFactory()] }));
  const { all } = make();
  expect(all[0]).toBe(all[1]);
  expect(all[2]).not.toBe(all[0]);
  expect(make().all[0]).not.toBe(all[0]);
});

test('an argFactory that fails in a call is named with its path', () => {
  const failing = configurable((): unknown[] => JSON.parse('{'), {}, { name: 'failing' });
  const asks = configurable((hp) => hp, { a: instance(failing) }, { name: 'asks' });
  const make = build(asks.partial({ a: failing.argFactory() }));
  expect(() => make()).toThrow(/^Building failing at a failed: Expected property name/);
});

const relu = configurable(function relu() {
  return (x: number) => Math.max(x, 0);
}, {});
const leaky = configurable(
  function leaky({ slope }: { slope: number }) {
    return (x: number) => Math.max(x, slope * x);
  },
  { slope: z.number() },
);
const text = configurable(function text() {
  return 'relu';
}, {});
class Net extends Configurable.with({
  activation: builds<(x: number) => number>(
    'a function of a number',
    (made) => typeof made === 'function',
    () => relu.config(),
  ).describe('The activation function.'),
}) {}

test('a field of whatever builds a function: any config that fits, of any function or class', () => {
  expect(build(Net.config()).hp.activation(-2)).toBe(0);
  const config = Net.config({ activation: leaky.config({ slope: 0.5 }) });
  expect(build(config).hp.activation(-2)).toBe(-1);
  expectTypeOf(build(config).hp.activation).toEqualTypeOf<(x: number) => number>();
  setPath(config, 'activation', 'relu');
  expect(build(config).hp.activation(-2)).toBe(0);
  expect(build(fromJSON(toJSON(config)) as typeof config).hp.activation(3)).toBe(3);
  // One config in two fields is one function.
  const [one, other] = build([config, Net.config({ activation: config.activation })]);
  expect(other.hp.activation).toBe(one.hp.activation);
});

test('what builds something else does not compile, and is an error of the build', () => {
  // @ts-expect-error a string is no function
  const config = Net.config({ activation: text.config() });
  expect(messageOf(() => build(config))).toMatch(
    /^Net\.activation: expected a config that builds a function of a number, got a text config \(at .*\)\n {2}while building Net$/,
  );
  // @ts-expect-error a function, and no config of it
  const plain = messageOf(() => Net.config({ activation: (x: number) => x }));
  expect(plain).toMatch(
    /^Net\.activation: expected a config that builds a function of a number, got function activation \(at/,
  );
  expect(messageOf(() => setPath(Net.config(), 'activation', 'leeky'))).toMatch(
    /^activation: expected a config that builds a function of a number, got 'leeky'\. Did you mean 'leaky'\? \(at/,
  );
});
