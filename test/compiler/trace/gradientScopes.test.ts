/** @file Operations of gradients belong to the layers of what they are gradients of. */
import { expect, test } from 'vitest';
import { ops, tf, valueAndGrad, withScope } from '../../../src/compiler/index.js';
import { readScope } from '../../../src/compiler/trace/gradientScopes.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';

const specs = {
  x: { shape: [4, 8], dtype: 'float32' },
  w: { shape: [8, 8], dtype: 'float32' },
} as const;

function scopesOf(f: (inputs: any) => any): string[] {
  const { graph } = traceProgram(f, specs);
  return graph.nodes.filter(({ op }) => op !== 'Identity').map(({ op, scope }) => `${op} ${scope}`.trim());
}

const loss = (x: tf.Tensor) => (params: any) => {
  const hidden = withScope('net/a', () => tf.add(tf.matMul(x, params.w), x));
  const used = withScope('net/b', () => tf.mul(ops.gelu(hidden), hidden));
  return { value: tf.sum(used), aux: {} };
};

test('scopes of plain operations, composites, and sums between gradients', () => {
  const recorded = scopesOf(({ x, w }) => valueAndGrad(loss(x), { w }).grads);
  const backward = recorded.slice(recorded.findIndex((line) => line.includes('grad')));
  // The sum is the task's own; its gradient is in no layer.
  expect(backward[0]).toMatch(/ grad$/);
  expect(backward).toContain('GeluGrad grad net/b');
  expect(backward).toContain('BatchMatMul grad net/a');
  // hidden is read twice: its two gradients are added once the second is known, which is that of b.
  expect(backward).toContain('Add grad net/b');
  expect(recorded.slice(0, recorded.length - backward.length).join()).not.toContain('grad');
});

test('operations after the gradients belong to no layer, nor do those of the next program', () => {
  const after = scopesOf(({ x, w }) => {
    const { grads } = valueAndGrad(loss(x), { w });
    return tf.tanh(grads.w as tf.Tensor);
  });
  expect(after.at(-1)).toBe('Tanh');
  expect(scopesOf(({ x }) => tf.exp(x))).toEqual(['Exp']);
});

test('an error in a gradient names the layer', () => {
  const failing = tf.customGrad((x: any) => ({
    value: tf.mul(x, 2) as tf.Tensor,
    gradFunc: (): tf.Tensor => {
      throw new Error('no gradient');
    },
  }));
  const f = ({ x, w }: any) =>
    valueAndGrad(
      (params: any) => ({
        value: withScope('net/a', () => tf.sum(tf.mul(failing(params.w), tf.sum(x)))) as tf.Tensor,
        aux: {},
      }),
      { w },
    ).grads;
  expect(() => traceProgram(f, specs)).toThrow("no gradient (in the gradient of layer 'net/a')");
});

test('scopes are read as they are written', () => {
  expect(readScope('')).toEqual({ layer: '', isGradient: false });
  expect(readScope('grad')).toEqual({ layer: '', isGradient: true });
  expect(readScope('grad lm/a')).toEqual({ layer: 'lm/a', isGradient: true });
  expect(readScope('gradual/a')).toEqual({ layer: 'gradual/a', isGradient: false });
});
