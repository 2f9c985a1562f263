/** @file Taps: the identity where nobody reads them; statistics of activations and gradients on every engine. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { fingerprint } from '../../../src/compiler/program/fingerprint.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { build, sub } from '../../../src/hparams/index.js';
import { BaseLayer, runInContext, Taps } from '../../../src/layers/index.js';

class Inner extends BaseLayer.with({}) {
  fprop(x: Tensor): Tensor {
    return tf.mul(x, 3);
  }
}

class Plain extends BaseLayer.with({ innerTpl: sub(Inner) }) {
  inner!: Inner;
  override setup(): void {
    this.inner = this.createChild('inner', this.hp.innerTpl);
  }
  read(_name: string, x: Tensor): Tensor {
    return x;
  }
  fprop(x: Tensor): Tensor {
    const root = this.read('root', tf.sqrt(x));
    this.read('unused', tf.neg(root));
    return tf.add(this.inner.fprop(root), this.inner.fprop(root));
  }
}

class Tapped extends Plain {
  override read(name: string, x: Tensor): Tensor {
    return this.tap(name, x);
  }
}

const x: HostTensor = { shape: [2, 3], dtype: 'float32', data: Float32Array.of(0, 1, 4, 9, 16, -1) };
const step =
  (layer: Plain, newTaps?: () => Taps) =>
  ({ x }: { x: Tensor }) => {
    const taps = newTaps?.();
    const { value, grads } = valueAndGrad(
      (theta: { x: Tensor }) => ({
        value: tf.sum(runInContext({ theta: {}, taps }, () => layer.fprop(theta.x))),
        aux: {},
      }),
      { x },
    );
    return { value, grads, taps: taps?.outputs() ?? {} };
  };

test('without a reader, a tap leaves the program as it is', () => {
  const of = (layer: Plain) => traceProgram(step(layer), { x });
  const [plain, tapped] = [of(build(Plain.config())), of(build(Tapped.config()))];
  expect(tapped.graph.nodes.length).toBe(plain.graph.nodes.length);
  expect(fingerprint(tapped)).toBe(fingerprint(plain));
});

test.each(['native', 'onnx', 'eager'] as const)('statistics and values on %s', async (engine) => {
  let taps!: Taps;
  const newTaps = () => {
    taps = new Taps((name) => name !== 'inner', true);
    return taps;
  };
  const executable = await compile(step(build(Tapped.config()), newTaps), { x }, { engine });
  const { taps: told, grads } = (await executable.run({ x })) as any;
  expect(taps.names).toEqual(['root', 'unused', 'inner', 'inner#2', 'model']);
  expect(taps.specs['inner#2']).toEqual({ shape: [2, 3], dtype: 'float32' });
  const numbers = ({ data }: HostTensor) => Array.from(data);
  // The finite elements are 0, 1, 2, 3 and 4; the last one is NaN.
  const close = (expected: readonly number[], told: readonly number[]) =>
    expected.forEach((value, i) => void expect(told[i]).toBeCloseTo(value, 5));
  close([2, Math.SQRT2, 0, 4, 1, 0], numbers(told.root.activation.statistics));
  expect(numbers(told.root.activation.values)).toEqual([0, 1, 2, 3, 4, Number.NaN]);
  // Through both calls of `inner`.
  expect(numbers(told.root.gradient.values)).toEqual([6, 6, 6, 6, 6, 6]);
  close([6, 0, 6, 6, 0, 0], numbers(told.root.gradient.statistics));
  expect(numbers(told['inner#2'].activation.values)).toEqual([0, 3, 6, 9, 12, Number.NaN]);
  expect(numbers(told['inner#2'].gradient.values)).toEqual([1, 1, 1, 1, 1, 1]);
  expect(told.unused.gradient).toBe(undefined);
  // 6 / (2 sqrt(x)): the gradient passes through a tap unchanged.
  expect(numbers(grads.x).slice(0, 3)).toEqual([Number.POSITIVE_INFINITY, 3, 1.5]);
});

test('an infinity counts, and leaves the other statistics alone', async () => {
  const infinite = { ...x, data: Float32Array.of(1, Number.POSITIVE_INFINITY, 1, 9, 9, 9) };
  const executable = await compile(
    step(build(Tapped.config()), () => new Taps((name) => name === 'root')),
    { x },
    { engine: 'native' },
  );
  const { taps } = (await executable.run({ x: infinite })) as any;
  const [mean, std, ...rest] = taps.root.activation.statistics.data;
  expect(mean).toBeCloseTo(2.2, 5);
  expect(std).toBeCloseTo(Math.sqrt(0.96), 5);
  expect(rest).toEqual([1, 3, 0, 1]);
  expect(taps.root.activation).not.toHaveProperty('values');
});
