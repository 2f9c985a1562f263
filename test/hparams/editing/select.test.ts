/** @file Selecting configs by class: what is found, read, set and replaced; and the types of it. */
import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  type Config,
  Configurable,
  configurable,
  copy,
  deepCopy,
  derive,
  factory,
  history,
  instance,
  isEqual,
  isSet,
  type PartialConfig,
  pathOf,
  type Selection,
  select,
  withOrigin,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { chain, diamond, Holder, Inner, Leaf, makeGraph, type Node, recipes } from '../randomGraphs.js';
import { messageOf } from '../support.js';
import { Attention, Block, Layer, Linear, sample, Width, Windowed } from './layers.js';

test('configs of a class and its subclasses, defaults among them, leaves first, shared ones once', () => {
  const { root, inner, shared, windowed } = sample();
  const found = select(root, Attention);
  expect([...found]).toEqual([root.attention, shared, windowed]);
  expect([...found].map((config) => pathOf(root, config))).toEqual([
    'attention',
    'second.attention',
    'second.list[0]',
  ]);
  expect([...select(root, { cls: Attention, matchSubclasses: false })]).toEqual([root.attention, shared]);
  expect([...select(root, Block)]).toEqual([inner, root]);
  expect([...select(root, Layer)].at(-1)).toBe(root);
  expect(isSet(root, 'attention')).toBe(false);
});

test('a selection looks again each time', () => {
  const { root, inner } = sample();
  const found = select(root, Attention);
  expect(found.get('name')).toEqual(['layer', 'shared', 'windowed']);
  inner.list.shift();
  root.list.push(Windowed.config({ name: 'later' }));
  expect(found.get('name')).toEqual(['layer', 'shared', 'later']);
});

test('set writes to all that were found, the root too, at the line of the caller', () => {
  const { root, inner, shared, windowed } = sample();
  expect(select(root, Attention).set({ numHeads: 4, scales: [1] })).toBe(3);
  expect([shared.numHeads, windowed.numHeads, (root.attention as Config<Attention>).numHeads]).toEqual([
    4, 4, 4,
  ]);
  shared.scales.push(2);
  expect(windowed.scales).toEqual([1]);
  expect(history(shared, 'numHeads').at(-1)!.where).toMatch(/^test\/hparams\/editing\/select\.test\.ts:\d+$/);
  withOrigin('--fiddler narrow()', () => select(root, Attention).set({ numHeads: 1 }));
  expect(history(windowed, 'numHeads').at(-1)!.where).toBe('--fiddler narrow()');
  select(root, Block).set({ name: 'block' });
  expect([root.name, inner.name]).toEqual(['block', 'block']);
});

test('set checks everything before it writes anything', () => {
  const { root, shared, windowed } = sample();
  const before = deepCopy(root);
  const message = messageOf(() => select(root, Attention).set({ name: 'x', numHeads: 0, dims: 1.5 }));
  expect(message.split('\n').slice(0, 1)).toEqual(['select().set(): 4 problems:']);
  expect(message).toContain('\n  Attention.numHeads: expected a positive integer, got 0\n');
  expect(message).toContain(
    '\n  Windowed.dims: expected a positive integer, got 1.5 (at test/hparams/editing/select.test.ts:',
  );
  expect(isEqual(root, before)).toBe(true);
  expect(history(shared).length).toBe(2);
  expect(messageOf(() => select(root, Windowed).set({ windw: 3 } as never))).toMatch(
    /^Windowed has no hyperparameter 'windw'\. Did you mean 'window'\? \(at test\/hparams\/editing\/select\.test\.ts:\d+\)$/,
  );
  expect(windowed.window).toBe(4);
});

test('get names the field that a config has no value for', () => {
  const root = Block.config({ list: [Linear.config({ dims: 3 })] });
  expect(select(root, Linear).get('dims')).toEqual([3]);
  root.list.push(Linear.config());
  expect(messageOf(() => select(root, Linear).get('dims'))).toBe(
    'Linear.dims is not set and has no default: expected an integer.',
  );
});

test('replace puts the new config wherever the old one stood', () => {
  const { root, inner, shared } = sample();
  expect(select(root, { cls: Attention, matchSubclasses: false }).replace(Linear.config({ dims: 2 }))).toBe(
    2,
  );
  expect(inner.attention).toBeInstanceOf(Object);
  expect(inner.list[1]).toBe(inner.attention);
  expect(root.byName['a b']).toBe(inner.attention);
  expect(root.attention).not.toBe(inner.attention);
  expect([...select(root, Attention)].map((config) => config.name)).toEqual(['windowed']);
  expect(select(root, Linear).get('dims')).toEqual([2, 2]);
  expect(history(root, 'byName').at(-1)!.where).toMatch(/^test\/hparams\/editing\/select\.test\.ts:\d+$/);
  expect(shared.name).toBe('shared');
});

test('replace copies what it is given for each place, unless told to share it', () => {
  const { root, inner } = sample();
  const linear = Linear.config({ dims: 2 });
  select(root, Attention).replace(linear);
  expect([root.attention === linear, inner.list[0] === inner.list[1]]).toEqual([false, false]);
  const other = sample();
  select(other.root, Attention).replace(linear, { deepCopy: false });
  expect([other.root.attention, ...other.inner.list]).toEqual([linear, linear, linear]);
  expect(other.root.attention).toBe(other.inner.list[0]);
});

test('a function makes the new one of the old one; what matches again is no endless loop', () => {
  const { root, inner, shared } = sample();
  select(root, Attention).replace((old) => Block.config({ attention: old, name: `around ${old.name}` }));
  expect(root.attention.name).toBe('around layer');
  expect((inner.attention as Config<Block>).attention).toBe(shared);
  expect(inner.list[1]).toBe(inner.attention);
  // The inner ones are replaced when the outer one is.
  const nested = Block.config({
    second: Block.config({ second: Block.config({ name: 'c' }), name: 'b' }),
    name: 'a',
  });
  const seen: string[] = [];
  class Top extends Configurable.with({ block: instance(Block) }) {}
  const top = Top.config({ block: nested });
  select(top, Block).replace((old) => {
    seen.push(`${old.name}: ${old.second?.name}`);
    return copy(old);
  });
  expect(seen).toEqual(['c: undefined', 'b: c', 'a: b']);
});

test('replace refuses the root, and undoes everything where a field does not take the new value', () => {
  const { root, shared } = sample();
  const before = deepCopy(root);
  expect(messageOf(() => select(root, Block).replace(Linear.config({ dims: 1 })))).toMatch(
    /^select\(\)\.replace\(\): the root is one of the Block configs that were found, and nothing below the root holds it\. Put the new config where the root is held, or change the root by set\(\) or updateCallable\(\)\. \(at test\/hparams\/editing\/select\.test\.ts:\d+\)$/,
  );
  const count = history(root).length;
  expect(
    messageOf(() => select(root, Attention).replace((old: Config<Attention>) => (old === shared ? 5 : old))),
  ).toMatch(
    /^Block\.attention: expected a Layer config, got 5 \(at test\/hparams\/editing\/select\.test\.ts:\d+\)$/,
  );
  expect(isEqual(root, before)).toBe(true);
  expect(history(root).length).toBe(count);
});

test('nothing found is an error for set and replace, and where it is asked for', () => {
  const { root } = sample();
  expect(messageOf(() => select(root, Linear).set({ dims: 3 }))).toMatch(
    /^select\(\) found no Linear config to set\. There are Attention, Block, Windowed\. If that is fine, select with \{ allowEmpty: true \}\. \(at test\/hparams\/editing\/select\.test\.ts:\d+\)$/,
  );
  class Atention extends Layer.with({}) {}
  expect(messageOf(() => select(root, Atention).replace(null))).toContain('Did you mean Attention?');
  expect([...select(root, Linear)]).toEqual([]);
  expect(select(root, Linear).get('dims')).toEqual([]);
  expect(select(root, { cls: Linear, allowEmpty: true }).set({ dims: 3 })).toBe(0);
  expect(select(root, { cls: Linear, allowEmpty: true }).replace(null)).toBe(0);
  expect(messageOf(() => [...select(root, { cls: Linear, allowEmpty: false })])).toContain(
    'select() found no Linear config to iterate over.',
  );
});

test('what cannot be selected is said at once', () => {
  const { root } = sample();
  const at = / \(at test\/hparams\/editing\/select\.test\.ts:\d+\)$/;
  const messages = [
    () => select(5, Attention),
    () => select(root, {} as never),
    () => select(root, { cls: Attention, tag: Width } as never),
    () => select(root, Date as never),
    () => select(root, { tag: 'Width' as never }),
    () => select(root, null as never),
  ].map((action) => messageOf(action).replace(at, ''));
  expect(messages).toEqual([
    'select(): it looks into a config, or into containers of configs, got 5.',
    'select(): nothing to select by: give a class, a kind or a tag.',
    'select(): a tag selects fields and a class selects configs; give one of them.',
    'select(): it takes a class that extends Configurable, or a configurable() target; got function Date.',
    "select() takes tags made by defineTag(), got 'Width'. findTag('Width') finds a tag by its name.",
    'select(): it takes a class or { cls, kind, tag }, got null.',
  ]);
});

test('kinds, configurable functions and containers of configs can be selected', () => {
  const scale = configurable(
    function scale(hp: { by: number }) {
      return hp.by;
    },
    { by: z.number().default(1) },
  );
  class User extends Configurable.with({ attention: factory(Attention).optional() }) {}
  const partial = Attention.partial({ numHeads: 3 });
  const users = [User.config({ attention: partial }), { deep: [scale.config({ by: 2 })] }] as const;
  const partials = select(users, { cls: Attention, kind: 'partial' });
  expectTypeOf(partials).toEqualTypeOf<Selection<PartialConfig<Attention>>>();
  expect([...partials]).toEqual([partial]);
  expect([...select(users, { cls: Attention, kind: 'config' })]).toEqual([]);
  expect([...select(users, { kind: 'partial' })]).toEqual([partial]);
  select(users, scale).set({ by: 4 });
  expect(select(users, scale).get('by')).toEqual([4]);
  select(users, Attention).replace(Attention.partial({ numHeads: 5 }));
  expect(users[0].attention?.numHeads).toBe(5);
});

test('types: values of set, names of get, and configs are those of the class', () => {
  const { root } = sample();
  const found = select(root, Attention);
  expectTypeOf(found).toEqualTypeOf<Selection<Config<Attention>>>();
  expectTypeOf([...found]).toEqualTypeOf<Config<Attention>[]>();
  expectTypeOf(found.get('numHeads')).toEqualTypeOf<number[]>();
  // @ts-expect-error: no such field
  expect(() => found.get('numHead')).toThrow("Did you mean 'numHeads'?");
  // @ts-expect-error: not a number
  expect(() => found.set({ numHeads: 'many' })).toThrow("expected a positive integer, got 'many'");
  found.replace((old) => {
    expectTypeOf(old).toEqualTypeOf<Config<Attention>>();
    return old;
  });
});

test('within derive a selection edits the copy', () => {
  const { root, shared } = sample();
  const before = deepCopy(root);
  const edited = derive(root, (draft) => {
    select(draft, Attention).set({ numHeads: 5 });
    select(draft, Windowed).replace(Linear.config({ dims: 7 }));
  });
  expect(isEqual(root, before)).toBe(true);
  expect(shared.numHeads).toBe(2);
  expect(select(edited, Attention).get('numHeads')).toEqual([5, 5]);
  expect(select(edited, Linear).get('dims')).toEqual([7]);
  const inner = edited.second as Config<Block>;
  expect(inner.list[1]).toBe(inner.attention);
  expect(edited.byName['a b']).toBe(inner.attention);
});

test('replacements that are undone within a recipe leave the original as it was', () => {
  const { root, inner } = sample();
  const before = deepCopy(root);
  const derived = derive(root, (draft) => {
    const windowed = () => select(draft, Windowed).replace(Block.partial());
    expect(messageOf(windowed)).toContain('Block.list[0]: expected a Layer config, got a Block partial');
    expect(messageOf(() => select(draft, Layer).set({ name: 3 } as never))).toContain('Block.name');
    draft.second!.name = 'new';
    (draft.second as typeof inner).list.reverse();
  });
  expect(isEqual(root, before)).toBe(true);
  expect((derived.second as typeof inner).list.map((layer) => layer.name)).toEqual(['shared', 'windowed']);
});

test('random graphs: replacing every leaf by its copy gives an equal graph, with the same sharing', () => {
  fc.assert(
    fc.property(recipes, (all) => {
      const graph = Holder.config({ byName: { graph: makeGraph(all) } });
      const before = deepCopy(graph);
      for (const cls of [Leaf, Inner]) {
        const matches = [...select(graph, { cls, kind: 'config' as const })].length;
        expect(
          select(graph, { cls, kind: 'config', allowEmpty: true }).replace((old: Config<Node>) => copy(old)),
        ).toBe(matches);
      }
      expect(isEqual(graph, before)).toBe(true);
    }),
    { numRuns: runs(1000) },
  );
});

test('chains and diamonds are searched and edited once for each config', () => {
  const long = chain(10_000);
  expect(select(long, Inner).set({ table: { a: 1 } })).toBe(10_000);
  expect(messageOf(() => select(long, Inner).replace(Inner.config()))).toContain('the root is one of');
  const holder = Holder.config({ byName: { a: diamond(60) } });
  let made = 0;
  expect(select(holder, Inner).replace((old: Config<Inner>) => (++made > 0 ? copy(old) : old))).toBe(60);
  expect(made).toBe(60);
  const list = Inner.config({ list: Array.from({ length: 20_000 }, () => Leaf.config()) });
  expect(select(list, { cls: Leaf }).replace(Inner.config())).toBe(20_000);
  expect(history(list, 'list').length).toBe(2);
});

test('what was selected builds', () => {
  const { root } = sample();
  select(root, Attention).set({ dims: 3 });
  expect((build(root).hp.attention as Attention).hp.dims).toBe(3);
});
