/** @file Keys and comparisons of the native lowering: operands that are packed alike, equal accesses, places and shares. */
import { describe, expect, it } from 'vitest';
import { sharesLeft, writeProducts } from '../../../src/compiler/native/c/emitProducts.js';
import { Pointers } from '../../../src/compiler/native/c/pointers.js';
import { sameAccess } from '../../../src/compiler/native/plan/iteration.js';
import { operandKey, type ProductUnit } from '../../../src/compiler/native/plan/products.js';
import { sameShare } from '../../../src/compiler/native/plan/shares.js';
import { samePacking } from '../../../src/compiler/native/plan/stages.js';
import { type Buffer, sameView } from '../../../src/compiler/native/plan/views.js';
import { openToolchain } from '../../../src/compiler/native/toolchain/index.js';
import { temporaryDirectory } from '../../command.js';
import { expectComparison, expectKey } from '../../keys.js';

const [buffer, other, result]: Buffer[] = [0, 1, 2].map((id) => ({
  id,
  size: 4096,
  storage: 'float32',
  home: { kind: 'input', index: id },
})) as never;
const plain = { buffer: buffer!, offset: 0, rs: 32, cs: 1 };
const unitOf = (parts: Partial<ProductUnit>): ProductUnit => ({
  ...{
    kind: 'product',
    m: 64,
    n: 16,
    k: 32,
    a: plain,
    b: plain,
    c: { ...plain, buffer: result! },
    alpha: 1,
    precision: 'float32',
  },
  ...{ batch: [], batchStrides: [[], [], []], scope: '' },
  ...parts,
});
const base = { buffer, offset: 0, rs: 32, cs: 1 };
const others = { buffer: other, offset: 8, rs: 64, cs: 2 };
const operand = ({ buffer, offset, rs, cs }: any) => ({ buffer, offset, rs, cs });

describe('products', () => {
  it('have one packed right operand where it is the same matrix in the same precision', () => {
    expectComparison(
      'packed right operands',
      { ...base, k: 32, n: 16, precision: 'float32' },
      { ...others, k: 64, n: 24, precision: 'bfloat16' },
      (x, y) => {
        const [p, q] = [x, y].map(({ k, n, precision, ...b }) => unitOf({ k, n, precision, b: operand(b) }));
        return samePacking(p!, { ...q!, m: 7, alpha: 3, a: { ...plain, buffer: other! } });
      },
    );
  });

  it.each(['a', 'b'] as const)('pack operand %s into the workspace once', (side) => {
    const edge = side === 'a' ? 'm' : 'n';
    expectKey(
      'operands of products',
      { ...base, side, edge: 16, k: 32, precision: 'float32' },
      { ...others, side: side === 'a' ? 'b' : 'a', edge: 24, k: 64, precision: 'bfloat16' },
      (inputs) =>
        operandKey(
          inputs.side,
          unitOf({
            [edge]: inputs.edge,
            k: inputs.k,
            precision: inputs.precision,
            a: operand(inputs),
            b: operand(inputs),
          }),
        ),
    );
  });

  it('that store their sums otherwise pack for themselves: they have other slabs', () => {
    const sizes = (storage: Buffer['storage']) => {
      const needs = { work: new Set<string>(), workspace: new Set<string>(), rowBytes: 0, groups: [] };
      const c = { ...plain, buffer: { ...result!, storage } };
      writeProducts([unitOf({}), unitOf({ c, b: { ...plain, buffer: other! } })], {
        ...{ pointers: new Pointers([]), needs, packingIndex: () => 0, isKept: () => false },
      });
      return [...needs.workspace][0]!.split(' + ').length;
    };
    expect([sizes('float32'), sizes('bfloat16')]).toEqual([3, 4]);
  });

  it('leave a packed left operand for the next of the same', () => {
    expectComparison(
      'shared left operands',
      { ...base, m: 64, k: 32, precision: 'float32' },
      { ...others, m: 48, k: 64, precision: 'bfloat16' },
      (x, y) => {
        const [p, q] = [x, y].map(({ m, k, precision, ...a }) => unitOf({ m, k, precision, a: operand(a) }));
        return sharesLeft(p!, { ...q!, n: 8, b: { ...plain, buffer: other! } }, 128);
      },
    );
    expect([128, 129].map((rows) => sharesLeft(unitOf({}), unitOf({}), rows))).toEqual([true, false]);
  });
});

describe('memory', () => {
  it('accesses', () => {
    const access = ({ buffer, offset, column, size, stride, axes }: any) => ({
      ...{ buffer, offset, column },
      rows: Array.from({ length: axes }, () => ({ size, stride })),
    });
    expectComparison(
      'accesses',
      { buffer, offset: 0, column: 1, size: 4, stride: 8, axes: 1 },
      { buffer: other, offset: 1, column: 2, size: 5, stride: 9, axes: 2 },
      (x, y) => sameAccess(access(x), access(y)),
    );
  });

  it('views: strides of single elements make no difference', () => {
    const view = ({ buffer, offset, shape, strides }: any) => ({ buffer, offset, shape, strides });
    const first = { buffer, offset: 0, shape: [2, 3], strides: [3, 1] };
    const second = { buffer: other, offset: 1, shape: [2, 4], strides: [4, 1] };
    expectComparison('views', first, second, (x, y) => sameView(view(x), view(y)));
    const [row, apart] = [3, 100].map((stride) => ({ ...view(first), shape: [1, 3], strides: [stride, 1] }));
    expect(sameView(row!, apart!)).toBe(true);
  });

  it('shares', () => {
    const first = { buffer, items: 4, size: 8, offset: 0 };
    expectComparison('shares', first, { buffer: other, items: 5, size: 9, offset: 1 }, (x, y) =>
      sameShare(x as never, y as never),
    );
  });

  it('places', () => {
    const loops = [{ length: 2 }, { length: 3 }];
    const pointers = new Pointers(loops);
    expectKey(
      'places',
      { space: 'input', index: 0, offset: 0, loop: loops[0], step: 4, shift: 0, period: 0 },
      { space: 'output', index: 1, offset: 64, loop: loops[1], step: 8, shift: 1, period: 2 },
      ({ space, index, offset, ...term }) => pointers.use({ space, index, offset, terms: [term] }),
    );
    expect(pointers.use({ space: 'input', index: 0, offset: 0 })).toBe('p[8]');
  });
});

it('toolchains are kept by the variables that say where compiler and cache are', () => {
  const folder = temporaryDirectory();
  const env = {
    CC: '/nowhere/cc',
    PATH: folder,
    XDG_CACHE_HOME: folder,
    HOME: folder,
    LUTHIER_CACHE_MB: '100',
    LUTHIER_CFLAGS: '-O1',
  };
  const elsewhere = Object.fromEntries(
    Object.keys(env).map((name) => [name, name === 'CC' ? '/elsewhere/cc' : `${folder}/other`]),
  );
  expectComparison('toolchains', env, { ...elsewhere, LUTHIER_CACHE_MB: '200' } as typeof env, (x, y) =>
    Object.is(openToolchain({ ...x }), openToolchain({ ...y, TERM: 'dumb' })),
  );
});
