/** @file Building partials: factories, and what each of their calls makes anew. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, Configurable, factory, instance } from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Part extends Configurable.with({ size: z.int().default(1), label: z.string().optional() }) {}
class Pair extends Configurable.with({
  left: instance(Part),
  right: instance(Part),
  mixed: z.array(z.int()).default([]),
}) {}
class Strict extends Configurable.with({ depth: z.int(), width: z.int().positive() }) {}

test('a partial builds to a factory: inner configs once, argFactories for each call', () => {
  const make = build(Pair.partial({ left: Part.config({ size: 2 }), right: Part.argFactory({ size: 3 }) }));
  const first = make();
  const second = make({ mixed: [7] });
  expect(first).toBeInstanceOf(Pair);
  expect(first.hp.left).toBe(second.hp.left);
  expect(first.hp.right).not.toBe(second.hp.right);
  expect([first.hp.right.hp.size, first.hp.mixed, second.hp.mixed]).toEqual([3, [], [7]]);
  const strict = build(Strict.partial({ depth: 1 }));
  expect(strict({ width: 2 }).hp.width).toBe(2);
  expect(messageOf(() => strict())).toBe('The factory of Strict needs width.');
  expect(messageOf(() => strict({ width: -2 }))).toBe('Strict.width: expected a positive integer, got -2');
  expect(messageOf(() => strict({ widht: 2 } as object))).toBe(
    "Strict has no hyperparameter 'widht'. Did you mean 'width'?",
  );
});

test('factories are fields too; an argFactory has no meaning outside of a partial', () => {
  class Maker extends Configurable.with({ make: factory(Part, () => Part.partial({ size: 6 })) }) {}
  expect(build(Maker.config()).hp.make({ label: 'x' }).hp).toEqual({ size: 6, label: 'x' });
  expect(messageOf(() => build(Part.argFactory()))).toBe(
    'The root is an argFactory of Part, which only a partial can hold. Use Part.config() here.',
  );
  expect(messageOf(() => build(Pair.config({ left: Part.argFactory() })))).toBe(
    'left is an argFactory of Part, which only a partial can hold. Use Part.config() here.',
  );
});

test('argFactories nest 10,000 deep and share 60 levels', () => {
  class Level extends Configurable.with({
    a: instance(Configurable as never, null)
      .nullable()
      .default(null),
    b: instance(Configurable as never, null)
      .nullable()
      .default(null),
  }) {}
  const nest = (levels: number, isDiamond: boolean): (() => Level) => {
    let inner = Level.argFactory();
    for (let i = 1; i < levels; i += 1) {
      inner = Level.argFactory(isDiamond ? { a: inner, b: inner } : ({ a: inner } as object));
    }
    return build(Level.partial({ a: inner, b: inner } as object)) as () => Level;
  };
  for (const make of [nest(10_000, false), nest(60, true)]) {
    const [first, second] = [make(), make()];
    // Compared here, for the test runner would compare them recursively.
    expect([first.hp.a === first.hp.b, first.hp.a === second.hp.a]).toEqual([true, false]);
  }
});
