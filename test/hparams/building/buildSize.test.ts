/** @file A build that would make configs for ever: an error that names the number, the config and the place that hold it. */
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { build, Configurable, copy, sub } from '../../../src/hparams/index.js';
import { StackedTransformer } from '../../../src/layers/index.js';

afterEach(() => vi.unstubAllEnvs());

const limit =
  'a build of more than 1,000 configs is considered a mistake; LUTHIER_MAX_CONFIGS sets another limit.';

class Leaf extends Configurable.with({}) {}
class Part extends Configurable.with({ size: z.int().default(1), tpl: sub(Leaf) }) {
  override setup(): void {
    for (let i = 0; i < this.hp.size; i++) build(copy(this.hp.tpl));
  }
}
class Parts extends Configurable.with({ count: z.int(), width: z.int().default(5000), tpl: sub(Part) }) {
  override setup(): void {
    for (let i = 0; i < this.hp.count; i++) build(copy(this.hp.tpl));
  }
}
class Copies extends Configurable.with({ count: z.int(), width: z.int().default(1), tpl: sub(Part) }) {
  override setup(): void {
    const copies = Array.from({ length: this.hp.count }, () => copy(this.hp.tpl));
    for (const tpl of copies) build(tpl);
  }
}
class Root extends Configurable.with({ part: sub(Parts) }) {
  override setup(): void {
    build(this.hp.part);
  }
}

test('the number of parts is named, be they made one by one or copied first', () => {
  vi.stubEnv('LUTHIER_MAX_CONFIGS', '1000');
  expect(() => build(Copies.config({ count: 1e6 }))).toThrow(
    RegExp(
      `^Copies\\.count is too large, 1000000: ${limit} \\(at .*buildSize\\.test\\.ts:\\d+\\)\\n  while building Copies$`,
    ),
  );
  // The width would also do, but is further from the number of parts that there are already.
  const part = Parts.config({ count: 2000 });
  expect(() => build(Root.config({ part }))).toThrow(
    RegExp(
      `^Parts\\.count is too large, 2000: ${limit}\\n  Or it is because width is 5000\\. \\(at .*\\)\\n(  while building Part\\n)?  while building Parts\\n  while building Root$`,
    ),
  );
  // One part of many is the one.
  const few = Parts.config({ count: 3, tpl: Part.config({ size: 1e6 }) });
  expect(() => build(few)).toThrow(/^Part\.size is too large, 1000000: /);
  expect(() => build(Copies.config({ count: 2 ** 40 }))).toThrow(
    `Copies.count is too large, ${2 ** 40}: ${limit} (at `,
  );
});

test('a build may make as many configs as the bound says, and none more', () => {
  class Leaves extends Configurable.with({ count: z.int(), tpl: sub(Leaf) }) {
    override setup(): void {
      for (let i = 0; i < this.hp.count; i++) copy(this.hp.tpl);
    }
  }
  const made = (most: number, count: number) => () => {
    const config = Leaves.config({ count, tpl: Leaf.config() });
    vi.stubEnv('LUTHIER_MAX_CONFIGS', `${most}`);
    build(config);
  };
  expect(made(1000, 1000)).not.toThrow();
  expect(made(1000, 1001)).toThrow(/^Leaves\.count is too large, 1001: /);
});

test('each build has the bound for itself, and what is made outside of one has none', () => {
  vi.stubEnv('LUTHIER_MAX_CONFIGS', '1000');
  const built = Parts.config({ count: 20 });
  for (let i = 0; i < 40; i++) build(built);
  const copies = Array.from({ length: 2000 }, () => copy(built));
  expect(copies).toHaveLength(2000);
  vi.stubEnv('LUTHIER_MAX_CONFIGS', '1e9');
  build(Parts.config({ count: 2000 }));
  vi.stubEnv('LUTHIER_MAX_CONFIGS', 'many');
  expect(() => build(built)).toThrow("LUTHIER_MAX_CONFIGS: expected a positive integer, got 'many'.");
});

test('a million layers', () => {
  vi.stubEnv('LUTHIER_MAX_CONFIGS', '1000');
  const stack = { numLayers: 1_000_000, modelDims: 16, hiddenDims: 64, numHeads: 2 };
  expect(() => build(StackedTransformer.config(stack))).toThrow(
    /^StackedTransformer\.numLayers is too large, 1000000: /,
  );
});
