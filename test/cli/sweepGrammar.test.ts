/** @file The grammar of sweeps: values, ranges, products, and names of combinations. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { combinationNames, parseSweptPath, product, splitSetting } from '../../src/cli/sweepGrammar.js';
import { messageOf } from '../hparams/support.js';

test.each([
  ['lr=1e-3,1e-4', ['1e-3', '1e-4']],
  ['n=1..4', ['1', '2', '3', '4']],
  ['n=-2..2:2', ['-2', '0', '2']],
  ['n=4..1:-1', ['4', '3', '2', '1']],
  ['p=0..1:0.25', ['0', '0.25', '0.5', '0.75', '1']],
  ['p=0..0.3:0.1', ['0', '0.1', '0.2', '0.3']],
  ['p=.5..1:.5', ['0.5', '1']],
  ['lr=log(1e-4,1e-1,4)', ['0.0001', '0.001', '0.01', '0.1']],
  ['n=5..5', ['5']],
  ['n=1..-1:-1', ['1', '0', '-1']],
  ['n=-0..1', ['0', '1']],
  ['n=1..2.9', ['1', '2']],
  ['n=1e21..1e21', ['1e+21']],
  ['lr=log(1,2,2)', ['1', '2']],
  ['lr=log(4,1,3)', ['4', '2', '1']],
  ['lr=log(1, 100, 3),7', ['1', '10', '100', '7']],
  ['n=1,2,10..12', ['1', '2', '10', '11', '12']],
  ['betas=[0.9,0.99],[0.9,0.95]', ['[0.9,0.99]', '[0.9,0.95]']],
  ['name="a,b",c', ['"a,b"', 'c']],
  ["name='1..4',d's,e", ["'1..4'", "d's", 'e']],
  ['table={a: 1, b: 2},{}', ['{a: 1, b: 2}', '{}']],
  ['x=f(1,2),g', ['f(1,2)', 'g']],
  ['a["k,="].b=1,2', ['1', '2']],
])('%s takes %j', (text, texts) => {
  expect(parseSweptPath(text).texts).toEqual(texts);
});

test.each([
  ['lr=', 'Expected a value here.\n  lr=\n     ^'],
  ['lr=1,,2', 'Expected a value here.\n  lr=1,,2\n       ^'],
  ['lr=1,2,1', 'The value 1 is there twice.\n  lr=1,2,1\n         ^'],
  ['n=4..1', 'This range is empty: it counts upwards; write 4..1:-1 to count down.\n  n=4..1\n    ^'],
  ['n=1..4:-1', 'This range is empty: it counts downwards.\n  n=1..4:-1\n    ^'],
  ['n=1..4:0', 'A range cannot count in steps of 0.\n  n=1..4:0\n    ^'],
  ['n=0,1..1e9', 'More than 10000 values.\n  n=0,1..1e9\n      ^'],
  ['n=1..1e400', 'A range has finite bounds and steps.\n  n=1..1e400\n    ^'],
  ['n=1e400..1e401', 'A range has finite bounds and steps.\n  n=1e400..1e401\n    ^'],
  ['lr=log(1,1e400,3)', 'log() expects positive, finite bounds.\n  lr=log(1,1e400,3)\n     ^'],
  ['lr=log(0,1,3)', 'log() expects positive, finite bounds.\n  lr=log(0,1,3)\n     ^'],
  ['lr=log(1,2,1)', 'log() expects a number of values of 2 or more.\n  lr=log(1,2,1)\n     ^'],
  ['lr=log(1,2)', 'Expected log(first,last,number), such as log(1e-4,1e-1,4).\n  lr=log(1,2)\n     ^'],
])('%s is an error that points', (text, message) => {
  expect(messageOf(() => parseSweptPath(text))).toBe(message);
});

test('the first = outside of brackets and quotes ends the path', () => {
  expect(splitSetting('a["x=y"].b=1=2')).toEqual({ path: 'a["x=y"].b', text: '1=2' });
  expect(splitSetting(' a =')).toEqual({ path: 'a', text: '' });
  for (const text of ['a', '=1', 'a["x=y"]', 'a[=1']) expect(splitSetting(text)).toBeUndefined();
});

test('a product takes every combination, the last axis fastest', () => {
  expect(
    product<number | string>([
      [1, 2],
      ['a', 'b'],
    ]),
  ).toEqual([
    [1, 'a'],
    [1, 'b'],
    [2, 'a'],
    [2, 'b'],
  ]);
  expect(product([])).toEqual([[]]);
  const numbers = (length: number) => Array.from({ length }, (_, i) => i);
  expect(product([numbers(100), numbers(100)]).length).toBe(10_000);
  expect(messageOf(() => product([numbers(73), numbers(137)]))).toBe(
    'A sweep of 10001 runs is too large: the most is 10000.',
  );
  expect(parseSweptPath('n=1..10000').texts.length).toBe(10_000);
  expect(messageOf(() => parseSweptPath('n=0..10000'))).toMatch(/^More than 10000 values\.\n/);
  const axis = Array.from({ length: 200 }, (_, i) => i);
  expect(messageOf(() => product([axis, axis]))).toBe(
    'A sweep of 40000 runs is too large: the most is 10000.',
  );
});

const names = (...paths: [string, string][][]) =>
  combinationNames(paths.map((settings) => settings.map(([path, text]) => ({ path, text }))));

test('names contain the shortest distinct end of each path', () => {
  expect(
    names([
      ['task.train.learner.optimizer.learningRate', '1e-3'],
      ['numLayers', '4'],
    ]),
  ).toEqual(['learningRate=1e-3,numLayers=4']);
  expect(names([['#LearningRate', '1e-3']])).toEqual(['LearningRate=1e-3']);
  expect(
    names([
      ['datasets[0].batchSize', '2'],
      ['decodeDatasets[0].batchSize', '4'],
    ]),
  ).toEqual(
    ['datasets_0_.batchSize=2,decodeDatasets_0_.batchSize=4'].map((name) => expect.stringContaining(name)),
  );
  expect(names([['model', '"GPT"']])).toEqual(['model=GPT']);
});

test('a name has 120 characters at most; of a longer one a digest follows', () => {
  const named = (length: number) => names([['a', 'x'.repeat(length - 2)]])[0]!;
  expect(named(120)).toBe(`a=${'x'.repeat(118)}`);
  expect(named(121)).toMatch(/^a=x{118}-[\da-f]{8}$/);
  expect(names([['a', '.5']], [['a', '"b c"']], [['a', '"b"']])).toEqual([
    ...['a=.5', expect.stringMatching(/^a=_b_c_-[\da-f]{8}$/), 'a=b'],
  ]);
});

test('letters that a directory cannot have give way to a digest, and so do names that differ in case alone', () => {
  const [slash, colon] = names([['path', 'a/b']], [['path', 'a:b']]);
  expect(slash).toMatch(/^path=a_b-[\da-f]{8}$/);
  expect(colon).toMatch(/^path=a_b-[\da-f]{8}$/);
  expect(slash).not.toBe(colon);
  expect(names([['path', 'a/b']])).toEqual([slash]);
  for (const name of names([['x', 'A']], [['x', 'a']])) expect(name).toMatch(/^x=[aA]-[\da-f]{8}$/);
  expect(names([])[0]).toMatch(/^run-[\da-f]{8}$/);
});

test('for any values, names differ and are one path component', () => {
  const setting = fc.record({
    path: fc.constantFrom('a', 'task.a', "b['x']", 'c[0].d'),
    text: fc.string({ unit: 'binary' }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.array(setting, { maxLength: 4 }), { selector: (each) => JSON.stringify(each) }),
      (combinations) => {
        const made = combinationNames(combinations);
        expect(new Set(made.map((name) => name.toLowerCase())).size).toBe(combinations.length);
        for (const name of made) expect(name).toMatch(/^[\w=+,][\w.,=+-]{0,139}$/);
      },
    ),
  );
});
