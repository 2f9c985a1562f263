/** @file The traversal under every tool: memoised and basic, its states, paths, cycles, deep and shared graphs. */
import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  type AnyConfig,
  Configurable,
  classOf,
  copy,
  formatPath,
  getPath,
  history,
  instance,
  isConfig,
  isEqual,
  iterate,
  parsePath,
  pathOf,
  type Segment,
  type State,
  sub,
  traverse,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { chain, diamond, Inner, makeGraph, recipes } from '../randomGraphs.js';
import { messageOf } from '../support.js';

class Part extends Configurable.with({ size: z.int().default(1), label: z.string().optional() }) {}
class Pair extends Configurable.with({
  left: instance(Part),
  right: instance(Part),
  rates: z.array(z.number()).default([]),
  byName: z.record(z.string(), sub(Part)).default({}),
}) {}

/** Every call as text: the path and what stands there. */
function calls(root: unknown, options: Parameters<typeof traverse>[2] = {}): string[] {
  const log: string[] = [];
  traverse<void>(
    root,
    (value, state) => {
      const what = isConfig(value)
        ? classOf(value as AnyConfig & { [k: symbol]: object }).name
        : typeof value;
      log.push(`${formatPath(state.path)}: ${what}`);
      state.flattenedMapChildren();
    },
    options,
  );
  return log;
}

test('a diamond: memoised, one call for each object; basic, one for each path', () => {
  const leaf = {};
  expect(calls([leaf, leaf])).toEqual([': object', '[0]: object']);
  expect(calls([leaf, leaf], { memoized: false })).toEqual([': object', '[0]: object', '[1]: object']);
  expect(calls([3, 3])).toEqual([': object', '[0]: number', '[1]: number']);
  const part = Part.config({ size: 2 });
  const pair = Pair.config({ left: part, right: part });
  expect(calls(pair)).toEqual([': Pair', 'left: Part', 'left.size: number']);
  expect(calls(pair, { memoized: false })).toHaveLength(5);
});

test('defaults are met where they are asked for, in the order of declaration', () => {
  const pair = Pair.config({ byName: { 'a b': Part.config() }, rates: [0.5] });
  expect(calls(pair)).toEqual([
    ': Pair',
    'rates: object',
    'rates[0]: number',
    'byName: object',
    "byName['a b']: Part",
  ]);
  expect(calls(pair, { defaults: true }).slice(0, 4)).toEqual([
    ': Pair',
    'left: Part',
    'left.size: number',
    'left.label: undefined',
  ]);
});

test('a traversal maps a config to anything, a shared config to one thing', () => {
  const part = Part.config({ size: 2 });
  const plain = traverse<unknown>([part, { again: part }], (value, state) => {
    if (!isConfig(value)) return state.mapChildren();
    return Object.fromEntries(
      state.children().map(({ segment, value: field }) => [segment, state.call(field, segment)]),
    );
  }) as [object, { again: object }];
  expect(plain).toEqual([{ size: 2 }, { again: { size: 2 } }]);
  expect(plain[1].again).toBe(plain[0]);
  const count = traverse<number>(part, (_, state) =>
    state.flattenedMapChildren().reduce((sum, each) => sum + each, 1),
  );
  expectTypeOf(count).toEqualTypeOf<number>();
  expect(count).toBe(2);
});

test('mapChildren keeps kinds and sharing, leaves the original alone, and gives it back where nothing changes', () => {
  const part = Part.config({ size: 2 });
  const pair = Pair.config({ left: part, right: part, rates: [1, 2], byName: { a: part } });
  const double = traverse<unknown>(pair, (value, state) =>
    typeof value === 'number' ? value * 2 : state.mapChildren(),
  ) as typeof pair;
  expect([double.left.size, double.rates, pair.left.size, pair.rates]).toEqual([4, [2, 4], 2, [1, 2]]);
  expect(double.left).toBe(double.right);
  expect(double.byName.a).toBe(double.left);
  expect(history(double.left, 'size').at(-1)!.where).toMatch(
    /^test\/hparams\/walking\/traverse\.test\.ts:\d+$/,
  );
  expect(traverse<unknown>(pair, (_, state) => state.mapChildren())).toBe(pair);
});

test('a result that does not fit its field is an error with the place of the visitor', () => {
  const visit = (value: unknown, state: State<unknown>): unknown =>
    typeof value === 'number' ? 'many' : state.mapChildren();
  expect(messageOf(() => traverse(Pair.config({ left: Part.config({ size: 2 }) }), visit))).toMatch(
    /^Part\.size: expected an integer, got 'many' \(at test\/hparams\/walking\/traverse\.test\.ts:\d+\)$/,
  );
});

test('states know their path, all paths, their ancestors and their value', () => {
  const part = Part.config({ size: 2 });
  const pair = Pair.config({ left: part, right: part });
  const seen: unknown[] = [];
  traverse<void>([{ pair }, part], (value, state) => {
    if (value === part) {
      seen.push([...state.allPaths()].map(formatPath));
      seen.push([...state.ancestors()].map((each) => formatPath(each.path)));
      seen.push([formatPath(state.path), state.original === part, state.isTraversable]);
    }
    if (value === 2) seen.push([...state.allPaths()].map(formatPath), state.isTraversable);
    if (isConfig(value)) seen.push(state.children().map((child) => formatPath(child.path)));
    state.flattenedMapChildren();
  });
  expect(seen).toEqual([
    ["[0]['pair'].left", "[0]['pair'].right"],
    ["[0]['pair'].left", "[0]['pair'].right", '[1]'],
    ["[0]['pair']", "[0]['pair']", '[0]'].slice(1).concat(''),
    ["[0]['pair'].left", true, true],
    ["[0]['pair'].left.size"],
    ["[0]['pair'].left.size", "[0]['pair'].right.size", '[1].size'],
    false,
  ]);
});

test('a visitor may go on to something that stands for a part', () => {
  const log: string[] = [];
  const result = traverse<unknown>({ a: 1 }, (value, state) => {
    log.push(formatPath(state.path));
    if (value === 1) return state.call([2, 3], 'instead', 0);
    return state.mapChildren();
  });
  expect([result, log]).toEqual([
    { a: [2, 3] },
    ['', "['a']", "['a'].instead[0]", "['a'].instead[0][0]", "['a'].instead[0][1]"],
  ]);
});

test('objects made on the way do not stand for one another', () => {
  const results = traverse<unknown>([1, 2, 3], (value, state) =>
    typeof value === 'number' ? state.call([String(value)]) : state.mapChildren(),
  );
  expect(results).toEqual([['1'], ['2'], ['3']]);
});

test('a container that contains itself is an error that names both places, as a config is', () => {
  const record: Record<string, unknown> = {};
  record.list = [record];
  const message = "A container must not contain itself: ['list'][0] is the same record as the root.";
  expect(messageOf(() => traverse(record, (_, state) => state.mapChildren()))).toBe(message);
  expect(messageOf(() => iterate(record))).toBe(message);
  const inner = Inner.config();
  inner.list.push(Inner.config({ left: inner }));
  for (const memoized of [true, false]) {
    expect(messageOf(() => traverse([inner], (_, state) => state.mapChildren(), { memoized }))).toBe(
      'A config must not contain itself: [0].list[0].left is the same Inner config as [0].',
    );
  }
});

test('iterate gives each config once, or once for each path', () => {
  const part = Part.config();
  const pair = Pair.config({ left: part, right: part });
  const paths = (memoized: boolean): string[] =>
    iterate([pair, pair], { memoized }).map((visit) => formatPath(visit.path));
  expect(paths(true)).toEqual(['[0]', '[0].left']);
  expect(paths(false)).toEqual(['[0]', '[0].left', '[0].right', '[1]', '[1].left', '[1].right']);
});

test('a chain of 10,000 does not overflow, whichever tool looks at it', () => {
  const root = chain(10_000);
  const depth = (memoized: boolean): number =>
    traverse<number>(root, (_, state) => 1 + Math.max(0, ...state.flattenedMapChildren()), { memoized });
  expect([depth(true), depth(false)]).toEqual([20_000, 20_000]);
  const same = traverse<unknown>(root, (value, state) =>
    typeof value === 'number' ? value + 1 : state.mapChildren(),
  ) as typeof root;
  expect([same.value, root.value, iterate(same).length]).toEqual([10_000, 9_999, 10_000]);
  let nested: unknown = Part.config();
  for (let i = 0; i < 10_000; i += 1) nested = [nested];
  expect(iterate(nested)).toHaveLength(1);
  const levels = (_: unknown, state: State<number>): number =>
    1 + Math.max(0, ...state.flattenedMapChildren());
  expect(traverse(nested, levels)).toBe(10_001);
});

test('deep down, a visitor that prunes gives the same result, and errors are thrown where they are met', () => {
  const root = chain(1000);
  const visit = (value: unknown, state: State<number>): number => {
    if (isConfig(value) && (value as typeof root).value === 300) return 1;
    if (isConfig(value) && (value as typeof root).value < 300) throw new RangeError('pruned');
    return 1 + Math.max(0, ...state.flattenedMapChildren());
  };
  expect(traverse(root, visit)).toBe(699 * 2 + 1);
  const failing = (value: unknown, state: State<number>): number => {
    if (isConfig(value) && (value as typeof root).value === 300) throw new RangeError('here');
    return 1 + Math.max(0, ...state.flattenedMapChildren());
  };
  for (const memoized of [true, false]) {
    expect(() => traverse(root, failing, { memoized })).toThrow(new RangeError('here'));
  }
});

test('a diamond of 60 levels is met once; its paths come one by one', () => {
  const root = diamond(60);
  expect(traverse<number>(root, (_, state) => 1 + Math.max(0, ...state.flattenedMapChildren()))).toBe(61);
  traverse<void>(root, (value, state) => {
    if (isConfig(value) && (value as typeof root).left === null) {
      const paths = state.allPaths();
      const first = Array.from({ length: 3 }, () => paths.next().value as Segment[]);
      expect(first[0]).toEqual(state.path);
      expect(new Set(first.map(formatPath)).size).toBe(3);
      expect(first.map((path) => getPath(root, path) === value)).toEqual([true, true, true]);
    }
    state.flattenedMapChildren();
  });
});

test('random graphs: identity gives the root, copying every config an equal graph, iterate the same configs', () => {
  fc.assert(
    fc.property(recipes, (all) => {
      const root = makeGraph(all);
      expect(traverse<unknown>(root, (_, state) => state.mapChildren())).toBe(root);
      const copied = traverse<unknown>(root, (value, state) => {
        const mapped = state.mapChildren();
        return isConfig(value) ? copy(mapped as typeof root) : mapped;
      });
      expect(isEqual(copied, root)).toBe(true);
      const met: unknown[] = [];
      traverse<void>(root, (value, state) => {
        if (isConfig(value)) {
          met.push(value);
          expect([...state.allPaths()].every((path) => getPath(root, path) === value)).toBe(true);
        }
        state.flattenedMapChildren();
      });
      const visits = iterate(root);
      expect(met).toEqual(visits.map((visit) => visit.config));
      for (const { config, path } of visits) expect(getPath(root, path)).toBe(config);
      expect(pathOf(root, visits.at(-1)!.config)).toBe(formatPath(visits.at(-1)!.path));
    }),
    { numRuns: runs(1000) },
  );
});

test('parsePath reads all that formatPath writes', () => {
  const key = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => ({ key: text }));
  const name = fc.stringMatching(/^[A-Za-z_$][\w$-]*$/);
  const segments = fc.array(fc.oneof(key, name, fc.integer({ min: -99, max: 9999 })), { maxLength: 8 });
  fc.assert(
    fc.property(segments, (path) => {
      const text = formatPath(path);
      expect(parsePath(text)).toEqual(path);
      expect(text).not.toMatch(/[\n\r\t]/);
    }),
    { numRuns: runs(1000, 200) },
  );
  expect(parsePath(`a[-1]["b\\"c"]['\\n']`)).toEqual(['a', -1, { key: 'b"c' }, { key: '\n' }]);
  expect(formatPath(['no name'])).toBe("['no name']");
  expect(messageOf(() => parsePath('a..b'))).toBe(
    "The path 'a..b' cannot be read from '..b' on. Paths look like a.b[0].c['key'].",
  );
});

test('a path that leads nowhere names the place, what is there, and what is near', () => {
  const root = { list: [Pair.config()] };
  expect(getPath(root, 'list[-1].left.size'.replace('list', "['list']"))).toBe(1);
  expect(messageOf(() => getPath(root, "['list'][0].lefd"))).toBe(
    "No '['list'][0].lefd': Pair at '['list'][0]' has no 'lefd'. Did you mean 'left'?",
  );
  expect(messageOf(() => getPath(root, "['list'][2]"))).toBe(
    "No '['list'][2]': '['list']' has 1 elements, counted from 0.",
  );
  expect(messageOf(() => getPath(root, "['list'][0].left.size.x"))).toBe(
    "No '['list'][0].left.size.x': '['list'][0].left.size' is 1, which has no parts.",
  );
  expect(messageOf(() => getPath(root, "['lost']"))).toBe(
    "No '['lost']': the root has no 'lost'. Did you mean 'list'?",
  );
});
