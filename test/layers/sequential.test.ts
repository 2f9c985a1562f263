/** @file Sequential: its children, their variables, and what can be one of them. */
import { expect, test } from 'vitest';
import { build, fromJSON, setPath, toJSON } from '../../src/hparams/index.js';
import {
  Bias,
  FeedForward,
  GroupNorm,
  Linear,
  listVariables,
  ReLU,
  Sequential,
  Tanh,
} from '../../src/layers/index.js';
import { Sgd } from '../../src/learners/index.js';
import { checkGradients, expectClose, randomTheta, run, tensor } from './helpers.js';

test('layers one after the other', () => {
  const config = Sequential.config({
    layers: [
      Linear.config({ inputDims: 4, outputDims: 6 }),
      GroupNorm.config({ dim: 6, numGroups: 2 }),
      Sequential.config({ layers: [Bias.config({ dims: 6 }), Tanh.config()] }),
    ],
  });
  const layer = build(fromJSON(toJSON(config)) as typeof config);
  expect(listVariables(layer).map(({ path }) => path)).toEqual([
    'layers_0/w',
    'layers_1/beta',
    'layers_1/gamma',
    'layers_2/layers_0/b',
  ]);
  const theta = randomTheta(layer);
  const x = tensor([2, 3, 4]);
  const [linear, norm, last] = [...layer.children.values()] as [Linear, GroupNorm, Sequential];
  const expected = run(theta, () => last.fprop(norm.fprop(linear.fprop(x))));
  expectClose(
    run(theta, () => layer.fprop(x)),
    [...expected.dataSync()],
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test('a config that stands there twice is one layer', () => {
  const twice = Linear.config({ inputDims: 3, outputDims: 3 });
  const layer = build(Sequential.config({ layers: [twice, ReLU.config(), twice] }));
  expect(listVariables(layer).map(({ path }) => path)).toEqual(['layers_0/w']);
});

test('a sequence is an activation, and layers are set by name', () => {
  const config = FeedForward.config({ inputDims: 2, outputDims: 3 });
  config.activationTpl = Sequential.config({ layers: [Tanh.config(), Bias.config({ dims: 3 })] });
  expect(listVariables(build(config)).map(({ path }) => path)).toEqual([
    'linear/w',
    'bias/b',
    'activation/layers_1/b',
  ]);
  const sequence = Sequential.config({ layers: [ReLU.config()] });
  setPath(sequence, 'layers[0]', 'Tanh');
  expect(build(sequence).children.get('layers_0')!.constructor.name).toBe('Tanh');
});

test('only layers that take one tensor fit, one at least', () => {
  // @ts-expect-error an optimizer
  expect(() => Sequential.config({ layers: [Sgd.config({ learningRate: 1 })] })).toThrow(
    'Sequential.layers[0]: expected a config that builds a layer with fprop(x), got a Sgd config',
  );
  expect(() => build(Sequential.config({ layers: [] }))).toThrow('Sequential.layers: ');
});
