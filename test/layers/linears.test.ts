/** @file Linear, Bias, FeedForward and MLPBlock. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { Bias, FeedForward, Linear, listVariables, MLPBlock, Tanh } from '../../src/layers/index.js';
import { checkGradients, expectClose, initialTheta, randomTheta, run, tensor } from './helpers.js';

/** x [rows, inputs] times w [inputs, outputs], by plain loops. */
function product(x: ArrayLike<number>, w: ArrayLike<number>, inputs: number, outputs: number): number[] {
  const rows = x.length / inputs;
  return Array.from({ length: rows * outputs }, (_, k) => {
    const [row, column] = [Math.floor(k / outputs), k % outputs];
    let sum = 0;
    for (let i = 0; i < inputs; i++) sum += x[row * inputs + i]! * w[i * outputs + column]!;
    return sum;
  });
}

test.each([[[4]], [[2, 3, 4]], [[5, 4]]])('Linear on inputs %j', (shape) => {
  const layer = build(Linear.config({ inputDims: 4, outputDims: 3 }));
  const theta = randomTheta(layer);
  const x = tensor(shape);
  const outputs = run(theta, () => layer.fprop(x));
  expect(outputs.shape).toEqual([...shape.slice(0, -1), 3]);
  expectClose(outputs, product(x.dataSync(), theta.w!.dataSync(), 4, 3));
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test('Bias starts at biasInit and is added to every row', () => {
  const layer = build(Bias.config({ dims: 3, biasInit: -1 }));
  expect([...initialTheta(layer).b!.dataSync()]).toEqual([-1, -1, -1]);
  const x = tensor([2, 3]);
  const theta = randomTheta(layer);
  const b = theta.b!.dataSync();
  expectClose(
    run(theta, () => layer.fprop(x)),
    [...x.dataSync()].map((value, i) => value + b[i % 3]!),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test('FeedForward is activation(linear + bias)', () => {
  const layer = build(
    FeedForward.config({ inputDims: 4, outputDims: 3, activationTpl: Tanh.config(), biasInit: 0.5 }),
  );
  expect([...initialTheta(layer)['bias/b']!.dataSync()]).toEqual([0.5, 0.5, 0.5]);
  const theta = randomTheta(layer);
  const x = tensor([2, 4]);
  const [w, b] = [theta['linear/w']!.dataSync(), theta['bias/b']!.dataSync()];
  const expected = product(x.dataSync(), w, 4, 3).map((value, i) => Math.tanh(value + b[i % 3]!));
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test('FeedForward without bias has one variable', () => {
  const layer = build(FeedForward.config({ inputDims: 4, outputDims: 3, hasBias: false }));
  expect(listVariables(layer).map((variable) => variable.path)).toEqual(['linear/w']);
});

test('MLPBlock is its layers one after the other; the last may go without an activation', () => {
  const ffTpl = FeedForward.config({ inputDims: 4, outputDims: 3, activationTpl: Tanh.config() });
  const [all, plainEnd] = [true, false].map((activateFinal) =>
    build(MLPBlock.config({ numLayers: 3, hiddenDims: 5, activateFinal, ffTpl })),
  );
  expect(listVariables(all!).map(({ path, shape }) => `${path} ${shape}`)).toEqual([
    'mlp_layers_0/linear/w 4,5',
    'mlp_layers_0/bias/b 5',
    'mlp_layers_1/linear/w 5,5',
    'mlp_layers_1/bias/b 5',
    'mlp_layers_2/linear/w 5,3',
    'mlp_layers_2/bias/b 3',
  ]);
  const theta = randomTheta(all!);
  const x = tensor([2, 4]);
  let [inputs, values] = [4, Array.from(x.dataSync())];
  const steps = [5, 5, 3].map((outputs, l) => {
    const [w, b] = [theta[`mlp_layers_${l}/linear/w`]!, theta[`mlp_layers_${l}/bias/b`]!.dataSync()];
    const sums = product(values, w.dataSync(), inputs, outputs).map((value, i) => value + b[i % outputs]!);
    [inputs, values] = [outputs, sums.map(Math.tanh)];
    return { sums, values };
  });
  expectClose(
    run(theta, () => all!.fprop(x)),
    steps[2]!.values,
  );
  expectClose(
    run(theta, () => plainEnd!.fprop(x)),
    steps[2]!.sums,
  );
  checkGradients(all!, [x], (input) => all!.fprop(input!));
});

test('MLPBlock of one layer leads from input to output', () => {
  const ffTpl = FeedForward.config({ inputDims: 4, outputDims: 3 });
  const layer = build(MLPBlock.config({ numLayers: 1, ffTpl }));
  expect(listVariables(layer).map(({ shape }) => shape)).toEqual([[4, 3], [3]]);
});
