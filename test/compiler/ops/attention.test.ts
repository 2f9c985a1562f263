/** @file Gradients of attention by a mask that is trained: by finite differences, of second order, and only where asked for. */
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, ops, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { traceProgram } from '../../../src/compiler/tracedProgram.js';
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
  // That of the weights alone is a product of dy and values.
  expect(fixed).not.toContain('BatchMatMul');
  expect(trained.filter((op) => op === 'BatchMatMul')).toHaveLength(1);
});
