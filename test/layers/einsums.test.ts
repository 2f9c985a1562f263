/** @file Einsum: products by equations, fans, biases, and equations that cannot be. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { Einsum, listVariables } from '../../src/layers/index.js';
import { checkGradients, expectClose, randomTheta, run, tensor } from './helpers.js';

test('heads from vectors, with a bias of the axes that the weight adds', () => {
  const layer = build(Einsum.config({ eqn: '...d,dnh->...nh', wShape: [3, 2, 4], useBias: true }));
  expect(listVariables(layer)).toMatchObject([
    { path: 'w', shape: [3, 2, 4], fanInAxes: [0], fanOutAxes: [1, 2] },
    { path: 'b', shape: [2, 4] },
  ]);
  const theta = randomTheta(layer);
  const [w, b] = [theta.w!.dataSync(), theta.b!.dataSync()];
  for (const shape of [[3], [5, 3], [2, 5, 3], [0, 3]]) {
    const x = tensor(shape);
    const y = run(theta, () => layer.fprop(x));
    expect(y.shape).toEqual([...shape.slice(0, -1), 2, 4]);
    expectClose(
      y,
      Array.from({ length: (x.size / 3) * 8 }, (_, k) => {
        const [row, out] = [Math.floor(k / 8), k % 8];
        return [0, 1, 2].reduce((sum, d) => sum + x.dataSync()[row * 3 + d]! * w[d * 8 + out]!, b[out]!);
      }),
    );
  }
  checkGradients(layer, [tensor([2, 3])], (x) => layer.fprop(x!));
});

test('heads back to vectors, without leading axes', () => {
  const layer = build(Einsum.config({ eqn: 'bnh,nhd->bd', wShape: [2, 4, 3] }));
  expect(listVariables(layer)).toMatchObject([{ shape: [2, 4, 3], fanInAxes: [0, 1], fanOutAxes: [2] }]);
  const theta = randomTheta(layer);
  const x = tensor([5, 2, 4]);
  const w = theta.w!.dataSync();
  expectClose(
    run(theta, () => layer.fprop(x)),
    Array.from({ length: 15 }, (_, k) => {
      const [row, out] = [Math.floor(k / 3), k % 3];
      return Array.from({ length: 8 }).reduce<number>(
        (sum, _, i) => sum + x.dataSync()[row * 8 + i]! * w[i * 3 + out]!,
        0,
      );
    }),
  );
});

test.each([
  [
    { eqn: '...d,df->...f', wShape: [3] },
    "eqn '...d,df->...f' gives the weight 2 axes, and wShape [3] has 1.",
  ],
  [{ eqn: '...d,df->f', wShape: [3, 2] }, "eqn '...d,df->f' has '...' on one side alone."],
  [{ eqn: 'bd,df->bg', wShape: [3, 2] }, "eqn 'bd,df->bg': no operand has the output's axis 'g'."],
  [
    { eqn: 'bd,df->fb', wShape: [3, 2], useBias: true },
    "eqn 'bd,df->fb': a bias needs the axes that the weight adds, 'f', at the output's end.",
  ],
])('%j cannot be', (fields, message) => {
  expect(() => build(Einsum.config(fields))).toThrow(`model (Einsum): ${message}`);
});

test('inputs that do not fit, and text that is no equation', () => {
  const layer = build(Einsum.config({ eqn: 'bd,df->bf', wShape: [3, 2] }));
  expect(() => run(randomTheta(layer), () => layer.fprop(tensor([4, 5, 3])))).toThrow(
    "model (Einsum): eqn 'bd,df->bf' does not fit inputs [4, 5, 3].",
  );
  expect(() => Einsum.config({ eqn: 'bd->bf', wShape: [3, 2] })).toThrow(
    /^Einsum\.eqn: expected an equation like '\.\.\.d,df->\.\.\.f', got 'bd->bf' \(at /,
  );
});
