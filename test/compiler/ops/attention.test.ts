/** @file Attention by plain loops: windows, segments and prefixes; gradients by a mask that is trained: by finite differences, of second order; dropped weights. */
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, ops, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { programMemory } from '../../../src/compiler/native/programMemory.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';
import { expectClose } from '../support.js';
import { floats } from '../values.js';

const [B, T, S, N, H] = [2, 3, 4, 2, 3];
const given = {
  q: floats([B, T, N, H], -1, 1, 1),
  k: floats([B, S, N, H], -1, 1, 2),
  v: floats([B, S, N, H], -1, 1, 3),
};
const shapes = [[B, N, T, S], [T, S], [N, 1, S], [B, 1, 1, S], [1, 1, T, 1], []];
type Given = Record<keyof typeof given | 'bias', Tensor>;

/** A number that depends on all results of attention. */
const sumOfSquares =
  (causal: boolean) =>
  ({ q, k, v, bias }: Given): Tensor =>
    tf.sum(tf.square(ops.attention(q, k, v, { causal, mask: tf.mul(bias, 2) })));

const all = [['eager', { engine: 'eager', available: true }] as const, ...engines];

describe.each(all)('%s', (_, { engine, available }) => {
  const results = async (f: (given: any) => any, inputs: object) => {
    const executable = await compile(f, inputs as never, { engine });
    const found = structuredClone(await executable.run(inputs as never)) as any;
    await executable.dispose();
    return found;
  };

  test.skipIf(!available)('a trained bias in the mask, of any shape that broadcasts', async () => {
    const biases = Object.fromEntries(
      shapes.map((shape, i) => [`[${shape}]`, floats(shape, -1, 1, 5 + i)] as const),
    );
    const gradientsOf = ({ q, k, v, ...trained }: Record<string, Tensor>) =>
      Object.fromEntries(
        Object.entries(trained).flatMap(([name, bias]) =>
          [true, false].map((causal) => {
            const f = (p: { bias: Tensor }) => ({
              value: sumOfSquares(causal)({ q, k, v, ...p } as Given),
              aux: {},
            });
            return [`${name} ${causal}`, valueAndGrad(f, { bias }).grads.bias];
          }),
        ),
      );
    const found = await results(gradientsOf, { ...given, ...biases });
    for (const [name, bias] of Object.entries(biases))
      for (const causal of [true, false]) {
        const at = (data: Float32Array): number =>
          sumOfSquares(causal)(tensorsOf({ ...given, bias: { ...bias, data } })).dataSync()[0]!;
        const data = Float32Array.from(bias.data, (_, i) => {
          const moved = (by: number) => Float32Array.from(bias.data, (x, j) => (j === i ? x + by : x));
          return (at(moved(1e-2)) - at(moved(-1e-2))) / 2e-2;
        });
        const gradient = found[`${name} ${causal}`];
        expectClose(gradient, { ...bias, data }, { relative: 2e-2, absolute: 2e-3 }, `${name} ${causal}`);
      }
  });

  /** Attention by plain loops, of a query to the keys that `sees` tells. */
  const plain = (
    { q, k, v }: Record<'q' | 'k' | 'v', HostTensor>,
    sees: (b: number, t: number, s: number) => boolean,
  ): HostTensor => {
    const [batch, queries, heads, dims] = q.shape as [number, number, number, number];
    const keys = k.shape[1]!;
    const at = (x: HostTensor, b: number, t: number, n: number, c: number): number =>
      x.data[((b * x.shape[1]! + t) * heads + n) * dims + c]!;
    const data = new Float32Array(q.data.length);
    for (let b = 0; b < batch; b++)
      for (let t = 0; t < queries; t++)
        for (let n = 0; n < heads; n++) {
          const weights = Array.from({ length: keys }, (_, s) => {
            let sum = 0;
            for (let c = 0; c < dims; c++) sum += at(q, b, t, n, c) * at(k, b, s, n, c);
            return sees(b, t, s) ? Math.exp(sum / Math.sqrt(dims)) : 0;
          });
          const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
          for (let c = 0; c < dims; c++)
            data[((b * queries + t) * heads + n) * dims + c] = weights.reduce(
              (sum, weight, s) => sum + (weight / total) * (weight === 0 ? 0 : at(v, b, s, n, c)),
              0,
            );
        }
    return { shape: q.shape, dtype: 'float32', data };
  };
  const heads = (length: number, seed: number): HostTensor => floats([2, length, 2, 4], -1, 1, seed);

  test.skipIf(!available)('windows of all bounds in one program', async () => {
    const lengths = [
      [60, 60],
      [3, 60],
      [3, 50],
      [60, 3],
    ] as const;
    const bounds = [undefined, 0, 1, 7];
    const cases = lengths.flatMap(([queries, keys]) =>
      bounds.flatMap((before) => bounds.map((after) => ({ queries, keys, before, after }))),
    );
    const inputs = Object.fromEntries(
      [...new Set(lengths.flat())].map((length, i) => [`x${length}`, heads(length, i)]),
    );
    const found = await results(
      (xs) =>
        cases.map(({ queries, keys, ...window }) =>
          ops.attention(xs[`x${queries}`], xs[`x${keys}`], xs[`x${keys}`], { window } as never),
        ),
      inputs,
    );
    for (const [i, { queries, keys, before = Infinity, after = Infinity }] of cases.entries()) {
      const [q, k] = [inputs[`x${queries}`]!, inputs[`x${keys}`]!];
      const expected = plain({ q, k, v: k }, (_, t, s) => {
        const distance = s - (t + keys - queries);
        return distance <= after && -distance <= before;
      });
      expectClose(found[i], expected, { absolute: 1e-6 }, JSON.stringify(cases[i]));
    }
  });

  test.skipIf(!available)(
    'packed segments, causal and within a window, hide other segments and padding',
    async () => {
      const ids = [
        Array.from({ length: 100 }, (_, i) => (i < 90 ? 1 + Math.floor(i / 37) : 0)),
        Array.from({ length: 100 }, (_, i) => (i < 60 ? 1 : 2)),
      ];
      const segments = { shape: [2, 100], dtype: 'int32' as const, data: Int32Array.from(ids.flat()) };
      const q = heads(100, 1);
      const k = heads(100, 2);
      const v = heads(100, 3);
      // Whatever is in another segment has no part in the first one.
      v.data.fill(1e30, 99 * 8, 100 * 8);
      const found = await results(
        ({ segments: all, ...x }) =>
          ops.attention(x.q, x.k, x.v, {
            causal: true,
            window: { before: 20 },
            segments: { queries: all, keys: all },
          }),
        { q, k, v, segments },
      );
      const expected = plain({ q, k, v }, (b, t, s) => s <= t && t - s <= 20 && ids[b]![t] === ids[b]![s]);
      const rows = (x: HostTensor) => ({ ...x, shape: [90 * 8], data: x.data.slice(0, 90 * 8) });
      expectClose(rows(found), rows(expected), { absolute: 1e-6 });
    },
  );

  test.skipIf(!available)(
    'prefixes and numbers of keys of each row, within windows and segments',
    async () => {
      const keys = 100;
      const ids = Array.from({ length: keys }, (_, i) => Math.floor(i / 37));
      const few: [number, number][] = [
        [0, 1],
        [keys, 3 * keys],
      ];
      const ofSteps: [number, number][] = [...few, [50, 98], [-3, 64]];
      const cases = [
        ...ofSteps.map((prefix) => ({ queries: keys, prefix })),
        ...few.map((prefix) => ({ queries: 3, prefix, visible: [40, keys] })),
        { queries: keys, prefix: [60, 17], segmented: true },
        { queries: keys, prefix: [60, 100], window: { before: 20, after: 30 } },
        { queries: 60, prefix: [70, 5], visible: [63, 90], window: { before: 20 } },
        { queries: 60, prefix: [0, 0], visible: [0, 30], segmented: true },
      ] as {
        queries: number;
        prefix: [number, number];
        visible?: [number, number];
        window?: ops.Window;
        segmented?: boolean;
      }[];
      const inputs = { x3: heads(3, 1), x60: heads(60, 2), x100: heads(keys, 3) };
      const int32 = (values: readonly number[]) => tf.tensor1d([...values], 'int32');
      const found = await results(
        (xs) =>
          cases.map(({ queries, prefix, visible, window, segmented }) =>
            ops.attention(xs[`x${queries}`], xs.x100, xs.x100, {
              causal: true,
              prefix: int32(prefix),
              ...(visible && { visible: int32(visible) }),
              ...(window && { window }),
              ...(segmented && {
                segments: {
                  queries: tf.reshape(int32(ids.slice(-queries)), [1, queries]) as Tensor,
                  keys: tf.reshape(int32(ids), [1, keys]) as Tensor,
                },
              }),
            }),
          ),
        inputs,
      );
      for (const [i, given] of cases.entries()) {
        const { queries, prefix, visible = [keys, keys], segmented } = given;
        const { before = Infinity, after = Infinity } = given.window ?? {};
        const q = inputs[`x${queries}` as keyof typeof inputs];
        const expected = plain({ q, k: inputs.x100, v: inputs.x100 }, (b, t, s) => {
          const distance = s - (t + visible[b]! - queries);
          const isBefore = distance <= 0 || s < prefix[b]!;
          const isOwn = !segmented || ids[keys - queries + t] === ids[s];
          return isBefore && isOwn && s < visible[b]! && distance <= after && -distance <= before;
        });
        expectClose(found[i], expected, { absolute: 1e-6 }, JSON.stringify(given));
      }
    },
  );

  test.skipIf(!available)(
    'weights are dropped as `dropout` drops them, in gradients too, whatever is hidden',
    async () => {
      const [queries, keys] = [37, 50];
      const x = {
        q: heads(queries, 1),
        k: heads(keys, 2),
        v: heads(keys, 3),
        bias: floats([queries, keys], -1, 1, 4),
      };
      const few = { ...x, q: heads(3, 5), bias: floats([3, 1], -1, 1, 6) };
      const ids = {
        shape: [1, keys],
        dtype: 'int32' as const,
        data: Int32Array.from({ length: keys }, (_, i) => i >> 4),
      };
      const key = { shape: [2], dtype: 'int32' as const, data: Int32Array.of(7, -11) };
      const of = ({ ids, key, ...given }: any, isWhole: boolean, keepProb: number, options: any) => {
        const dropout = isWhole
          ? (weights: Tensor) => ops.dropout(weights, key, keepProb)
          : { key, keepProb };
        const segments = options.segmented && {
          segments: { queries: tf.slice(ids, [0, keys - given.q.shape[1]]), keys: ids },
        };
        const prefix = options.prefixes && { prefix: tf.tensor1d(options.prefixes, 'int32') };
        const f = ({ q, k, v, bias }: Given) => ({
          value: tf.sum(
            tf.sin(ops.attention(q, k, v, { ...options, ...segments, ...prefix, mask: bias, dropout })),
          ) as Tensor,
          aux: {},
        });
        const { value, grads } = valueAndGrad(f as never, given as never) as any;
        return { value, ...grads };
      };
      const cases = [
        { keepProb: 0.9, options: {} },
        { keepProb: 0.25, options: { causal: true, logitCap: 2 } },
        { keepProb: 0.5, options: { window: { before: 9, after: 2 }, segmented: true } },
        { keepProb: 0.5, options: { causal: true, prefixes: [45, 1] } },
      ];
      for (const given of [x, few]) {
        const found = await results(
          (all) =>
            cases.map(({ keepProb, options }) =>
              [true, false].map((isWhole) => of(all, isWhole, keepProb, options)),
            ),
          { ...given, ids, key },
        );
        for (const [whole, inTiles] of found)
          for (const name of Object.keys(whole))
            expectClose(inTiles[name], whole[name], { relative: 1e-4, absolute: 1e-5 }, name);
      }
    },
  );

  test.skipIf(!available)('second derivatives by the mask and by what it is added to', async () => {
    const f = (inputs: Given) => {
      const names = Object.keys(inputs) as (keyof Given)[];
      const slope = (...xs: Tensor[]): Tensor => {
        const value = (...ys: Tensor[]) =>
          sumOfSquares(true)(Object.fromEntries(names.map((name, i) => [name, ys[i]])) as Given);
        return tf
          .grads(value as any)(xs)
          .map((gradient) => tf.sum(tf.square(gradient)))
          .reduce((a, b) => tf.add(a, b));
      };
      return Object.fromEntries(
        tf
          .grads(slope as any)(Object.values(inputs))
          .map((gradient, i) => [names[i]!, gradient]),
      );
    };
    const inputs = { ...given, bias: floats([N, T, S], -1, 1, 5) };
    const found: Record<string, HostTensor> = await results(f, inputs);
    const expected = f(tensorsOf(inputs)) as Record<string, Tensor>;
    for (const [name, { data, ...spec }] of Object.entries(found))
      expectClose(
        { ...spec, data },
        { ...spec, data: expected[name]!.dataSync() as never },
        {
          relative: 1e-3,
          absolute: 1e-4,
        },
      );
  });
});

const tensorsOf = (inputs: Record<string, HostTensor>): Given =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, { shape, data }]) => [name, tf.tensor(data, [...shape], 'float32')]),
  ) as Given;

test('a mask without a gradient adds nothing to a program', () => {
  const graphOf = (isTrained: boolean) => {
    const f = ({ bias, ...rest }: Given) => {
      const loss = ({ bias: trained, ...moved }: Partial<Given>) => ({
        value: sumOfSquares(true)({ ...(moved as Given), bias: trained ?? bias }),
        aux: {},
      });
      return valueAndGrad(loss as never, (isTrained ? { ...rest, bias } : rest) as never) as never;
    };
    const specs = { ...given, bias: floats([T, S], -1, 1, 5) };
    return traceProgram(f as never, specs as never).graph.nodes.map(({ op }) => op);
  };
  const [fixed, trained] = [graphOf(false), graphOf(true)];
  expect(fixed.filter((op) => op.startsWith('Attention'))).toEqual(['Attention', 'AttentionGrad']);
  // The weights of all pairs are not kept for it.
  expect(trained.filter((op) => op.startsWith('Attention') || op === 'BatchMatMul')).toEqual([
    'Attention',
    'AttentionGrad',
    'AttentionMaskGrad',
  ]);
});

test('dropped weights take no memory of all pairs', () => {
  const arenaOf = (dropout: (key: Tensor) => ops.AttentionOptions['dropout']): number => {
    const f = ({ key, ...moved }: any) =>
      valueAndGrad(
        ({ q, k, v }: any) => ({
          value: tf.sum(
            tf.square(ops.attention(q, k, v, { causal: true, dropout: dropout(key)! })),
          ) as Tensor,
          aux: {},
        }),
        moved,
      ) as never;
    const head = { shape: [1, 256, 2, 8], dtype: 'float32' as const };
    const specs = { q: head, k: head, v: head, key: { shape: [2], dtype: 'int32' as const } };
    return programMemory(optimize(traceProgram(f, specs as never).graph)).arena;
  };
  const keepProb = 0.9;
  const plain = arenaOf(() => undefined);
  expect(arenaOf((key) => ({ key, keepProb }))).toBe(plain);
  expect(arenaOf((key) => (weights) => ops.dropout(weights, key, keepProb))).toBeGreaterThan(
    plain + 256 * 256 * 2 * 4,
  );
});

describe('errors', () => {
  const x = tf.zeros([2, 3, 1, 4]);

  test.each([0, 1.5, Number.NaN])('weights that are kept with probability %s', (keepProb) =>
    expect(() => ops.attention(x, x, x, { dropout: { key: tf.zeros([2], 'int32'), keepProb } })).toThrow(
      `dropout: expected keepProb in (0, 1], got ${keepProb}.`,
    ),
  );

  test('a key of another shape', () =>
    expect(() =>
      traceProgram(({ x, key }: any) => ops.attention(x, x, x, { dropout: { key, keepProb: 0.5 } }), {
        x: floats([2, 3, 1, 4]),
        key: { shape: [3], dtype: 'int32' },
      } as never),
    ).toThrow('a key int32[2], got int32[3]'));

  test.each([-1, 1.5, Number.NaN, 2 ** 60])('a window of %s keys', (before) =>
    expect(() => ops.attention(x, x, x, { window: { before } })).toThrow(
      `attention: window.before is ${before}: expected a number of keys, 0 or more.`,
    ),
  );

  test('numbers of keys of other rows', () => {
    const trace = (...shape: number[]) => {
      const f = ({ x, count }: any) => ops.attention(x, x, x, { causal: true, prefix: count });
      const specs = { x: floats([2, 3, 1, 4]), count: { shape, dtype: 'int32' as const } };
      return () => traceProgram(f, specs as never);
    };
    expect(trace(2)).not.toThrow();
    expect(trace(3)).toThrow('attention: expected a number of keys int32[] or int32[2], got int32[3].');
  });

  test('segments of another length', () => {
    const f = (given: any) =>
      ops.attention(given.x, given.x, given.x, { segments: { queries: given.a, keys: given.b } });
    const trace = (a: number[], b: number[]) => () =>
      traceProgram(f, { x: floats([2, 3, 1, 4]), a: int32(a), b: int32(b) } as never);
    const int32 = (shape: number[]) => ({ shape, dtype: 'int32' as const });
    expect(trace([2, 3], [1, 3])).not.toThrow();
    expect(trace([2, 3], [2, 4])).toThrow(
      'attention: expected segments int32 [2,3] of queries and [2,3] of keys, got int32[2,3] and int32[2,4].',
    );
  });
});
