/** @file Spaces: domains, conditions, draws, and their errors. */
import { expect, test } from 'vitest';
import { choice, integer, real } from '../../src/search/index.js';
import { Draws } from '../../src/search/proposalDraws.js';
import { checkSpace, contains, drawValues, sizeOf, spaceSchema } from '../../src/search/space.js';

const space = {
  optimizer: choice(['sgd', 'adam']),
  rate: real(1e-4, 1, { log: true }),
  momentum: real(0, 0.99, { when: { optimizer: 'sgd' } }),
  warmup: integer(10, 1000, { log: true, when: { optimizer: ['sgd', 'adam'] } }),
  dropout: real(0, 0.5, { step: 0.1 }),
};

const draw = (number: number) => drawValues(space, new Draws(3, number));

test('draws are in their domains, active under their conditions, and even on their scale', () => {
  const all = Array.from({ length: 2000 }, (_, i) => draw(i));
  const isIn = (values: (typeof all)[number]) =>
    Object.entries(values).every(([name, value]) => contains(space[name as keyof typeof space], value));
  const isConditioned = (values: (typeof all)[number]) =>
    Object.hasOwn(values, 'momentum') === (values.optimizer === 'sgd') && values.warmup !== undefined;
  expect(all.filter((values) => !isIn(values) || !isConditioned(values))).toEqual([]);
  const share = (isIn: (values: (typeof all)[number]) => boolean) => all.filter(isIn).length / all.length;
  expect(share(({ rate }) => (rate as number) < 1e-2)).toBeCloseTo(0.5, 1);
  expect(share(({ warmup }) => (warmup as number) < 100)).toBeCloseTo(0.5, 1);
  // Both ends are as likely as the values between.
  expect(share(({ dropout }) => dropout === 0.5)).toBeCloseTo(1 / 6, 1);
  expect([...new Set(all.map(({ dropout }) => dropout))].sort()).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5]);
});

test('a draw follows from the seed and the number alone', () => {
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
  expect(draw(7)).not.toEqual(drawValues(space, new Draws(4, 7)));
});

test('sizes count the values', () => {
  expect(Object.values(space).map(sizeOf)).toEqual([2, Infinity, Infinity, 991, 6]);
});

test.each([
  [{ a: real(2, 1) }, "The parameter 'a' low (2) must not be above high (1)."],
  [{ a: real(0, 1, { log: true }) }, "The parameter 'a' a logarithmic scale needs a positive low, got 0."],
  [{ a: integer(0.5, 2) }, "The parameter 'a' integers are between integers, got 0.5 and 2."],
  [{ a: choice([1, 1]) }, "The parameter 'a' has a value twice."],
  [
    { a: real(0, 1, { when: { b: 1 } }), b: choice([1, 2]) },
    "The parameter 'a' is active under 'b', which is not a parameter before it.",
  ],
  [
    { b: choice([1, 2]), a: real(0, 1, { when: { b: 3 } }) },
    "The parameter 'a' is active under 3 of 'b', which never has it.",
  ],
  [{}, 'A search space needs at least one parameter.'],
])('%j is refused', (wrong, message) => {
  expect(() => checkSpace(wrong)).toThrow(message);
});

test('a field of a config names the parameter that is wrong', () => {
  const { error } = spaceSchema.safeParse({ a: real(2, 1) });
  expect(error?.issues).toMatchObject([{ path: ['a'], message: 'low (2) must not be above high (1)' }]);
});
