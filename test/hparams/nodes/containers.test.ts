/** @file Maps, Sets and own classes as containers of configs. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  type Config,
  Configurable,
  container,
  copy,
  deepCopy,
  derive,
  formatPath,
  getPath,
  history,
  instance,
  isEqual,
  iterate,
  pathOf,
  registerContainer,
  sub,
  traverse,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Part extends Configurable.with({ size: z.int().default(1) }) {}

/** A container of one's own: immutable, with parts that have names. */
class Stack<T> {
  readonly top: T;
  readonly rest: readonly T[];
  constructor(top: T, rest: readonly T[]) {
    this.top = top;
    this.rest = rest;
  }
}
registerContainer(Stack, {
  flatten: (stack) => [stack.top, ...stack.rest],
  unflatten: ([top, ...rest]) => new Stack<unknown>(top, rest),
  pathElements: (stack) => [{ key: 'top' }, ...stack.rest.keys()],
});

class Net extends Configurable.with({
  byName: z.map(z.string(), instance(Part)).default(new Map()),
  some: z.set(instance(Part)).default(new Set()),
  templates: z.map(z.int(), sub(Part)).default(new Map()),
  stack: container<Stack<Config<Part>>, Stack<Part>>(Stack, instance(Part)).optional(),
}) {}

test('configs in Maps and Sets are built, shared ones once', () => {
  const part = Part.config({ size: 2 });
  const net = build(
    Net.config({
      byName: new Map([['a', part]]),
      some: new Set([part, Part.config()]),
      templates: new Map([[3, part]]),
    }),
  );
  expectTypeOf(net.hp.byName).toEqualTypeOf<Map<string, Part>>();
  expectTypeOf(net.hp.some).toEqualTypeOf<Set<Part>>();
  expect(net.hp.byName.get('a')).toBeInstanceOf(Part);
  expect([...net.hp.some][0]).toBe(net.hp.byName.get('a'));
  expect([...net.hp.some][1]!.hp.size).toBe(1);
  expect(net.hp.templates.get(3)).toBe(part);
});

test('so are those in a registered class, which a field checks part by part', () => {
  const part = Part.config({ size: 2 });
  const config = Net.config({ stack: new Stack(part, [Part.config(), part]) });
  expectTypeOf(config.stack).toEqualTypeOf<Stack<Config<Part>> | undefined>();
  const { stack } = build(config).hp;
  expectTypeOf(stack).toEqualTypeOf<Stack<Part> | undefined>();
  expect(stack).toBeInstanceOf(Stack);
  expect([stack!.top instanceof Part, stack!.rest[1]]).toEqual([true, stack!.top]);
  expect(messageOf(() => (config.stack = new Stack(part, [3 as never])))).toMatch(
    /^Net\.stack\[0\]: expected a Part config, got 3 \(at /,
  );
  expect(messageOf(() => (config.byName = new Map([['a', 3 as never]])))).toMatch(
    /^Net\.byName\.a: expected a Part config, got 3 \(at /,
  );
  expect(messageOf(() => (config.some = new Set([3 as never])))).toMatch(
    /^Net\.some: expected a Set of Part configs, got Set \[3\] \(at /,
  );
  expect(messageOf(() => (config.stack = [] as never))).toMatch(
    /^Net\.stack: expected a Stack, got \[\] \(at /,
  );
});

test('missing values and paths go through them', () => {
  class Strict extends Configurable.with({ depth: z.int() }) {}
  class Root extends Configurable.with({ byName: z.map(z.string(), instance(Strict)) }) {}
  const root = Root.config({ byName: new Map([["it's", Strict.config()]]) });
  expect(messageOf(() => build(root))).toBe(
    "A hyperparameter is not set: byName['it\\'s'].depth (Strict): expected an integer.",
  );
  const part = Part.config();
  const net = Net.config({ stack: new Stack(part, [Part.config()]), templates: new Map([[3, part]]) });
  expect(iterate(net).map((visit) => formatPath(visit.path))).toEqual(['', 'templates[3]', 'stack[0]']);
  expect(getPath(net, 'templates[3].size')).toBe(1);
  expect(getPath(net, "stack['top']")).toBe(part);
  expect(pathOf(net, part)).toBe('templates[3]');
  expect(messageOf(() => getPath(net, 'templates[4].size'))).toBe(
    "No 'templates[4].size': Map {3 => a Part config} has no [4]. It has [3].",
  );
});

test('a config owns what is written to it, and a Map in it is replaced, not edited', () => {
  const given = new Map([['a', Part.config()]]);
  const net = Net.config({ byName: given });
  given.clear();
  expect(net.byName.size).toBe(1);
  expect(net.byName).toBe(net.byName);
  expect(net.byName instanceof Map).toBe(true);
  expect(messageOf(() => net.byName.set('b', Part.config()))).toMatch(
    /^A Map in a config cannot be edited in place: write a new Map to the field\. \(at test\/hparams\/nodes\/containers\.test\.ts:\d+\)$/,
  );
  expect(messageOf(() => net.some.clear())).toMatch(/^A Set in a config cannot be edited in place/);
  net.byName = new Map([...net.byName, ['b', Part.config({ size: 7 })]]);
  expect([...net.byName.keys()]).toEqual(['a', 'b']);
  const [first] = history(net, 'byName');
  expect((first!.value as Map<string, unknown>).size).toBe(1);
});

test('copies, equality and derive look into them', () => {
  const part = Part.config({ size: 2 });
  const net = Net.config({
    byName: new Map([
      ['a', part],
      ['b', part],
    ]),
    stack: new Stack(part, []),
  });
  const deep = deepCopy(net);
  expect(deep.byName.get('a')).not.toBe(part);
  expect(deep.byName.get('a')).toBe(deep.stack!.top);
  expect([isEqual(deep, net), isEqual(copy(net), net)]).toEqual([true, true]);
  const other = derive(net, (draft) => void (draft.byName.get('a')!.size = 5));
  expect([other.byName.get('b')!.size, other.stack!.top.size, part.size]).toEqual([5, 5, 2]);
  expect(isEqual(other, net)).toBe(false);
  deep.byName.get('a')!.size = 3;
  expect(isEqual(deep, net)).toBe(false);
  const swapped = Net.config({
    byName: new Map([
      ['b', part],
      ['a', part],
    ]),
    stack: new Stack(part, []),
  });
  expect(isEqual(swapped, net)).toBe(true);
  const unshared = Net.config({
    byName: new Map([
      ['a', part],
      ['b', copy(part)],
    ]),
    stack: new Stack(part, []),
  });
  expect(isEqual(unshared, net)).toBe(false);
});

test('build and traversals take them as roots', () => {
  const part = Part.config({ size: 4 });
  const built = build(
    new Map([['x', [part, new Set([part])]]]) as Map<string, [typeof part, Set<typeof part>]>,
  );
  expectTypeOf(built).toEqualTypeOf<Map<string, [Part, Set<Part>]>>();
  const [first, set] = built.get('x')!;
  expect([first.hp.size, set.has(first)]).toEqual([4, true]);
  const doubled = traverse<unknown>(new Stack(1, [2, 3]), (value, state) =>
    typeof value === 'number' ? value * 2 : state.mapChildren(),
  );
  expect(doubled).toEqual(new Stack(2, [4, 6]));
});

test('registering twice, or what is no class, is an error', () => {
  const handler = { flatten: () => [], unflatten: () => new Map() };
  expect(messageOf(() => registerContainer(Map, handler))).toMatch(
    /^The container Map is registered already\. To traverse it differently once, use the option 'containers' of traverse\(\)\. \(at test\/hparams\/nodes\/containers\.test\.ts:\d+\)$/,
  );
  expect(messageOf(() => registerContainer(Array, { flatten: () => [], unflatten: () => [] }))).toMatch(
    /^registerContainer: arrays and plain objects are containers already\./,
  );
  expect(messageOf(() => registerContainer(3 as never, handler))).toMatch(
    /^registerContainer takes a class, got a value of type number\./,
  );
});

test('a traversal may look into further classes, and nothing else does then', () => {
  class Grid {
    constructor(readonly cells: readonly unknown[]) {}
  }
  const grid = new Grid([1, 2]);
  const visit = (value: unknown, state: { mapChildren(): unknown }): unknown =>
    typeof value === 'number' ? -value : state.mapChildren();
  const containers = [
    [
      Grid,
      { flatten: (each: Grid) => each.cells, unflatten: (parts: readonly unknown[]) => new Grid(parts) },
    ],
  ] as const;
  expect(traverse<unknown>([grid], visit, { containers })).toEqual([new Grid([-1, -2])]);
  expect(traverse<unknown>([grid], visit)).toEqual([grid]);
  class SubStack extends Stack<number> {}
  const leaf = new SubStack(1, []);
  expect(traverse<unknown>([leaf], visit)).toEqual([leaf]);
  const wrong = [[Grid, { ...containers[0][1], pathElements: () => [] }]] as const;
  expect(messageOf(() => traverse<unknown>(grid, visit, { containers: wrong }))).toBe(
    'The container Grid has 2 parts, but pathElements names 0.',
  );
});

test('a config inside an instance of a class that is not registered is a value like any other', () => {
  class Hidden {
    constructor(readonly part: Config<Part>) {}
  }
  class Root extends Configurable.with({ hidden: z.instanceof(Hidden) }) {}
  const part = Part.config();
  expect(build(Root.config({ hidden: new Hidden(part) })).hp.hidden.part).toBe(part);
});
