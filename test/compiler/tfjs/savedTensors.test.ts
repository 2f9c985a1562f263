/** @file What tfjs saves for gradients: no operations in a trace, the same gradients, also of what was disposed of. */
import { describe, expect, it } from 'vitest';
import { compile, tf } from '../../../src/compiler/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';

const specs = { x: { shape: [3], dtype: 'float32' } } as const;
const data = Float32Array.of(0.5, -1.5, 2);

const gradientOf = (f: (x: tf.Tensor) => tf.Tensor) => (x: tf.Tensor) => tf.grad(f)(x);

async function results(f: (x: tf.Tensor) => tf.Tensor, engine: 'eager' | 'onnx'): Promise<number[]> {
  const executable = await compile(({ x }) => f(x), specs, { engine });
  const { data: result } = (await executable.run({ x: { ...specs.x, data } })) as { data: Float32Array };
  await executable.dispose();
  return [...result];
}

describe('what is saved', () => {
  it('is not copied by operations', () => {
    const f = gradientOf((x) => tf.sum(tf.mul(tf.exp(x), tf.sin(x))));
    const { nodes } = traceProgram(({ x }) => f(x), specs).graph;
    expect(nodes.map(({ op }) => op)).not.toContain('Identity');
    expect(nodes.length).toBeGreaterThan(4);
  });

  it.each<[string, (x: tf.Tensor) => tf.Tensor]>([
    ['a gradient', gradientOf((x) => tf.sum(tf.mul(tf.exp(x), x)))],
    [
      'a gradient of a gradient',
      gradientOf((x) => tf.sum(gradientOf((y) => tf.sum(tf.mul(tf.exp(y), tf.sin(y))))(x))),
    ],
    [
      'a gradient of what was disposed of',
      gradientOf((x) => {
        const inner = tf.exp(x);
        const outer = tf.sum(tf.mul(inner, tf.square(inner)));
        inner.dispose();
        return outer;
      }),
    ],
    [
      'a gradient of an own operation, which saves',
      gradientOf((x) => {
        const cube = tf.customGrad((y: any, save: any) => {
          save([y]);
          const gradFunc = (dy: tf.Tensor, [saved]: tf.Tensor[]) => tf.mul(dy, tf.mul(3, tf.square(saved!)));
          return { value: tf.mul(y, tf.square(y)), gradFunc: gradFunc as any };
        });
        return tf.sum(cube(tf.exp(x)));
      }),
    ],
  ])('gives %s', async (_, f) => {
    const expected = await results(f, 'eager');
    const traced = await results(f, 'onnx');
    traced.forEach((value, i) => {
      expect(value).toBeCloseTo(expected[i]!, 3);
    });
  });
});
