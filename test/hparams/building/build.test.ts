/** @file Building: order, sharing, what is missing, what fails. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  build,
  type Config,
  type ConfigError,
  Configurable,
  configurable,
  copy,
  defineTag,
  derive,
  instance,
  sub,
  tagged,
  unset,
  withOrigin,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Part extends Configurable.with({ size: z.int().default(1), label: z.string().optional() }) {}
class Pair extends Configurable.with({
  left: instance(Part),
  right: instance(Part),
  more: z.record(z.string(), z.array(instance(Part))).default({}),
  template: sub(Part),
  mixed: z.array(z.union([sub(Part), z.int()])).default([]),
}) {}
class Strict extends Configurable.with({ depth: z.int(), width: z.int().positive(), part: instance(Part) }) {}
class Nest extends Configurable.with({
  strict: instance(Strict),
  list: z.array(instance(Strict)).default([]),
}) {}

test('setup runs when the subclass is complete, inner objects before outer ones', () => {
  const log: string[] = [];
  class Inner extends Configurable.with({ name: z.string() }) {
    readonly order = ['field'];
    override setup(): void {
      this.order.push('setup');
      log.push(this.hp.name);
    }
  }
  class Outer extends Inner.with({ inner: instance(Inner), second: instance(Inner) }) {
    readonly doubled = this.hp.name + this.hp.name;
  }
  const outer = build(
    Outer.config({
      name: 'outer',
      second: Inner.config({ name: 'second' }),
      inner: Inner.config({ name: 'inner' }),
    }),
  );
  expect(log).toEqual(['inner', 'second', 'outer']);
  expect([outer.order, outer.doubled, outer.hp.inner.order]).toEqual([
    ['field', 'setup'],
    'outerouter',
    ['field', 'setup'],
  ]);
});

test('hp has every value, frozen with its containers; templates stay configs', () => {
  const template = Part.config({ size: 3 });
  const pair = build(Pair.config({ template, mixed: [template, 4] }));
  expect(pair.hp.left).toBeInstanceOf(Part);
  expect(pair.hp.left.hp).toEqual({ size: 1, label: undefined });
  expect(pair.hp.template).toBe(template);
  expect(pair.hp.mixed).toEqual([template, 4]);
  expect(pair.hp.mixed[0]).toBe(template);
  expect(Object.isFrozen(pair.hp) && Object.isFrozen(pair.hp.mixed)).toBe(true);
});

test('what a class sees does not change when the config is edited later', () => {
  const config = Pair.config({ mixed: [1] });
  const pair = build(config);
  config.mixed.push(2);
  expect([pair.hp.mixed, build(config).hp.mixed]).toEqual([[1], [1, 2]]);
});

test('one config object is one object, equal but distinct configs are two', () => {
  const shared = Part.config({ size: 2 });
  const pair = build(Pair.config({ left: shared, right: shared, more: { a: [shared, copy(shared)] } }));
  expect(pair.hp.left).toBe(pair.hp.right);
  expect(pair.hp.more.a![0]).toBe(pair.hp.left);
  expect(pair.hp.more.a![1]).not.toBe(pair.hp.left);
  expect(build(shared)).not.toBe(pair.hp.left);
});

test('builds within setup share the memory of the outer build', () => {
  class Owner extends Configurable.with({ tpl: sub(Part), held: instance(Part) }) {
    own!: Part;
    again!: Part;
    derived!: Part;
    override setup(): void {
      this.own = build(this.hp.tpl);
      this.again = build(this.hp.tpl);
      this.derived = build(derive(this.hp.tpl, (draft) => void (draft.size = 9)));
    }
  }
  const part = Part.config();
  const owner = build(Owner.config({ tpl: part, held: part }));
  expect([owner.own, owner.again]).toEqual([owner.hp.held, owner.own]);
  expect(owner.own).toBe(owner.hp.held);
  expect(owner.derived.hp.size).toBe(9);
  expect(part.size).toBe(1);
});

test('configs that are being built cannot be written: derive is the way', () => {
  class Rash extends Configurable.with({ tpl: sub(Part) }) {
    override setup(): void {
      this.hp.tpl.size = 4;
    }
  }
  expect(messageOf(() => build(Rash.config({ tpl: Part.config() })))).toMatch(
    /^Part\.size was written while configs were being built\. Build from an edited copy instead: derive\(config, \(draft\) => …\)\. \(at test\/hparams\/building\/build\.test\.ts:\d+\)\n {2}while building Rash$/,
  );
  const part = Part.config();
  build(part);
  part.size = 4;
  expect(part.size).toBe(4);
});

test('missing fields are reported all at once, before anything is made', () => {
  const made: string[] = [];
  class Loud extends Configurable.with({ size: z.int() }) {
    override setup(): void {
      made.push('made');
    }
  }
  class Root extends Configurable.with({ a: instance(Loud), b: z.record(z.string(), instance(Loud)) }) {}
  const root = Root.config({ a: Loud.config({ size: 1 }), b: { 'k y': Loud.config() } });
  expect(messageOf(() => build(root))).toBe(
    "A hyperparameter is not set: b['k y'].size (Loud): expected an integer.",
  );
  expect(messageOf(() => build(Nest.config({ list: [Strict.config({ depth: 1 })] })))).toBe(
    [
      '3 hyperparameters are not set:',
      '  strict.depth (Strict): expected an integer',
      '  strict.width (Strict): expected a positive integer',
      '  list[0].width (Strict): expected a positive integer',
    ].join('\n'),
  );
  expect(made).toEqual([]);
});

test('what is missing is told with its tags, those added to a config and those of values in containers too', () => {
  const size = defineTag('build.size', 'Sizes.');
  const depth = defineTag('build.depth', 'Depths.', { parent: size });
  class Tagged extends Configurable.with({
    depth: tagged(z.int().positive(), depth),
    name: z.string(),
    sizes: z.record(z.string(), z.int()).default({}),
  }) {}
  const config = Tagged.config({ sizes: { 'a b': size.new() } });
  addTag(config, 'depth', size);
  addTag(config, 'name', size);
  expect(messageOf(() => build([config])).replace(/made at [^)]*/, 'made at LINE')).toBe(
    [
      '3 hyperparameters are not set:',
      '  [0].depth (Tagged): expected a positive integer, tagged #build.depth, #build.size',
      '  [0].name (Tagged): expected a string, tagged #build.size',
      "  [0].sizes['a b'] (Tagged): expected a value for the part tagged #build.size (made at LINE)",
    ].join('\n'),
  );
  expect(messageOf(() => config.depth)).toBe(
    'Tagged.depth is not set and has no default: expected a positive integer, tagged #build.depth, #build.size.',
  );
});

test('errors of constructors and setup are thrown as they are, and gain the path', () => {
  const cause = new RangeError('no more memory');
  class Failing extends Part.with({}) {
    override setup(): void {
      throw cause;
    }
  }
  class Wrapper extends Configurable.with({ tpl: sub(Part) }) {
    override setup(): void {
      build(this.hp.tpl);
    }
  }
  class Root extends Configurable.with({ list: z.array(instance(Wrapper)) }) {}
  try {
    build(Root.config({ list: [Wrapper.config({ tpl: Failing.config() })] }));
    expect.unreachable();
  } catch (error) {
    expect((error as Error).message).toBe(
      'Building Failing failed: no more memory\n  while building Wrapper at list[0]',
    );
    expect(error).toBe(cause);
  }
  expect(build(Part.config())).toBeInstanceOf(Part);
});

test('cycles are errors that name both places', () => {
  abstract class Node extends Configurable.with({}) {
    static override readonly isAbstract = true;
  }
  class Link extends Node.with({
    next: instance(Node, null).optional(),
    list: z.array(instance(Node, null)).default([]),
  }) {}
  const a = Link.config();
  const b = Link.config({ list: [a] });
  a.next = b;
  expect(messageOf(() => build(a))).toBe(
    'A config must not contain itself: next.list[0] is the same Link config as the root.',
  );
  expect(messageOf(() => build(Link.config({ next: a })))).toBe(
    'A config must not contain itself: next.next.list[0] is the same Link config as next.',
  );
  class Self extends Configurable.with({ tpl: sub(Configurable as never, null).optional() }) {
    override setup(): void {
      build(self);
    }
  }
  const self = Self.config();
  expect(messageOf(() => build(self))).toBe(
    'Self.setup() builds the config that Self itself is built from.\n  while building Self',
  );
  (self as { tpl: unknown }).tpl = self;
  expect(messageOf(() => build(self))).toBe(
    'A config must not contain itself: tpl is the same Self config as the root.',
  );
});

test('build takes configs and containers only', () => {
  expect(messageOf(() => build(Part as never))).toBe(
    'build() takes a config, such as Linear.config(), or a container of configs, got function Part.',
  );
});

test('values that a schema transforms reach hp transformed, defaults as zod gives them', () => {
  class Shaped extends Configurable.with({
    tag: z.string().trim().toLowerCase(),
    port: z.string().transform(Number).default(80),
    start: z.string().transform(Number).prefault('90'),
    box: z.object({ a: z.int().default(5) }).prefault({}),
  }) {}
  expect(build(Shaped.config({ tag: ' A ' })).hp).toEqual({ tag: 'a', port: 80, start: 90, box: { a: 5 } });
});

test('a refinement of what is built looks at configs when they are written, and at instances in the build', () => {
  const seen: boolean[] = [];
  const areAll = (parts: readonly unknown[]): boolean => {
    seen.push(parts.every((part) => part instanceof Part));
    return true;
  };
  class Refined extends Configurable.with({ parts: z.array(instance(Part)).refine(areAll) }) {}
  const config = Refined.config({ parts: [Part.config(), Part.config()] });
  expect(seen).toEqual([false]);
  const { parts } = build(config).hp;
  expect(seen).toEqual([false, true]);
  expect(parts.every((part) => part instanceof Part) && Object.isFrozen(parts)).toBe(true);
});

test('containers of configs are built into new ones, one object for one config', () => {
  const part = Part.config({ size: 2 });
  const list = [part];
  const root = [part, { child: part, list }, list, 3] as const;
  const built = build(root);
  expectTypeOf(built).toEqualTypeOf<[Part, { child: Part; list: Part[] }, Part[], 3]>();
  expect(built[0]).toBeInstanceOf(Part);
  expect(built[1].child).toBe(built[0]);
  expect(built[1].list).toBe(built[2]);
  expect([built[2] === (list as unknown), built[3]]).toEqual([false, 3]);
  built[2].push(built[0]);
  expect(list).toEqual([part]);
});

test('a container without a config is copied, for a list may be empty; anything else is a mistake', () => {
  const empty: Config<Part>[] = [];
  expect(build(empty)).toEqual([]);
  expect(build(empty)).not.toBe(empty);
  expect(build({})).toEqual({});
  expect(messageOf(() => build(3 as never))).toBe(
    'build() takes a config, such as Linear.config(), or a container of configs, got 3.',
  );
});

test('in a container, what is missing is told at once, and misplaced argFactories are told', () => {
  expect(messageOf(() => build([Strict.config({ depth: 1 }), { a: Strict.config({ width: 1 }) }]))).toBe(
    [
      '2 hyperparameters are not set:',
      '  [0].width (Strict): expected a positive integer',
      "  [1]['a'].depth (Strict): expected an integer",
    ].join('\n'),
  );
  expect(messageOf(() => build([Part.argFactory()]))).toBe(
    '[0] is an argFactory of Part, which only a partial can hold. Use Part.config() here.',
  );
  const loop: unknown[] = [Part.config()];
  loop.push(loop);
  expect(messageOf(() => build(loop))).toBe(
    'A container must not contain itself: [1] is the same array as the root.',
  );
});

test('a failed build tells the values that were given and where each was set', () => {
  class Failing extends Part.with({}) {
    override setup(): void {
      throw new RangeError(`${this.hp.size} is too much`);
    }
  }
  const failing = Failing.config({ label: 'x' });
  failing.size = 9;
  expect(() => build([failing])).toThrow(
    /^Building Failing at \[0\] failed: 9 is too much\n {2}size: 9 \(set at test\/hparams\/building\/build\.test\.ts:\d+\)\n {2}label: 'x' \(set at test\/hparams\/building\/build\.test\.ts:\d+\)$/,
  );
  withOrigin('--set size=8', () => (failing.size = 8));
  expect(() => build(failing)).toThrow(/\n {2}size: 8 \(set at --set size=8\)\n/);
  const many = configurable(
    () => JSON.parse('?'),
    Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`f${i}`, z.int()])),
    { name: 'many' },
  );
  const values = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`f${i}`, i]));
  let message = '';
  try {
    build(many.config(values));
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message.split('\n')).toHaveLength(1 + 12 + 1);
  expect(message).toMatch(/\n {2}and 3 more$/);
});

test('a value that its schema refuses at the build is named with the place where it was set', () => {
  let limit = 10;
  class Limited extends Configurable.with({
    part: instance(Part),
    text: z.string().transform((text, context) => {
      if (text.length > limit) context.addIssue('too long by now');
      return text.length;
    }),
  }) {}
  const config = Limited.config({ text: 'abcdef' });
  limit = 3;
  let error: unknown;
  try {
    build(config);
  } catch (thrown) {
    error = thrown;
  }
  expect((error as ConfigError).message).toMatch(
    /^Limited\.text: too long by now, got 'abcdef' \(at test\/hparams\/building\/build\.test\.ts:\d+\)\n {2}while building Limited$/,
  );
});

test('a field that was deleted is missing, and the message says where that was', () => {
  const config = Strict.config({ depth: 1, width: 1 });
  unset(config, 'width');
  expect(messageOf(() => build(config))).toMatch(
    /^A hyperparameter is not set: width \(Strict\): expected a positive integer \(deleted at test\/hparams\/building\/build\.test\.ts:\d+\)\.$/,
  );
});

test('configs of generic classes are built as others are', () => {
  class Holder<T extends Part = Part> extends Configurable.with({ part: instance(Part) }) {
    get held(): T {
      return this.hp.part as T;
    }
  }
  expect(build(Holder.config()).held).toBeInstanceOf(Part);
});
