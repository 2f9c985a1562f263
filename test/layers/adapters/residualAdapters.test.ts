/** @file Residual adapters: one task, several, and feed-forward layers with an adapter behind or beside them. */
import { expect, test } from 'vitest';
import { tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  AdaptedTransformerFeedForward,
  GELU,
  listVariables,
  MultitaskResidualAdapter,
  StackedTransformer,
} from '../../../src/layers/index.js';
import { checkLayers, expectNear, layerCase } from '../contract.js';
import { floats, given } from '../engineComparison.js';
import { initialTheta, ints, randomTheta, run, tensor } from '../helpers.js';

const adapter = { inputDims: 4, bottleneckDims: 2, activationTpl: GELU.config() };
const adapted = {
  inputDims: 4,
  hiddenDims: 6,
  activationTpl: GELU.config(),
  adapterTpl: MultitaskResidualAdapter.config(adapter),
};

checkLayers('residual adapters', [
  layerCase({
    title: 'one task',
    config: MultitaskResidualAdapter.config(adapter),
    inputs: { x: floats([2, 3, 4]) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: {
      down_w: [1, 4, 2],
      down_b: [1, 2],
      up_w: [1, 2, 4],
      up_b: [1, 4],
      'norm/scale': [4],
      'norm/bias': [4],
    },
  }),
  layerCase({
    title: 'three tasks, without a norm',
    config: MultitaskResidualAdapter.config({ ...adapter, numTasks: 3, normTpl: null }),
    inputs: { x: floats([3, 5, 4]), tasks: given('int32', [2, 0, 2], [3]) },
    call: (layer, { x, tasks }) => layer.fprop(x!, undefined, tasks),
  }),
  layerCase({
    title: 'behind a feed-forward layer',
    config: AdaptedTransformerFeedForward.config(adapted),
    inputs: { x: floats([2, 3, 4]) },
    call: (layer, { x }) => layer.fprop(x!),
  }),
  layerCase({
    title: 'beside a feed-forward layer',
    config: AdaptedTransformerFeedForward.config({ ...adapted, mode: 'parallel' }),
    inputs: { x: floats([2, 3, 4]) },
    call: (layer, { x }) => layer.fprop(x!),
  }),
]);

test('each example has the weights of its task', () => {
  const layer = build(MultitaskResidualAdapter.config({ ...adapter, numTasks: 3 }));
  const theta = randomTheta(layer);
  const x = tensor([3, 5, 4]);
  const tasks = [2, 0, 1];
  const single = build(MultitaskResidualAdapter.config(adapter));
  const together = run(theta, () => layer.fprop(x, undefined, ints(tasks, [3])));
  for (const [row, task] of tasks.entries()) {
    const own = Object.fromEntries(
      Object.entries(theta).map(([path, value]) => [
        path,
        path.startsWith('norm') ? value : tf.slice(value, [task], [1]),
      ]),
    );
    const alone = run(own, () => single.fprop(tf.slice(x, [row], [1])));
    expectNear(tf.slice(together, [row], [1]), alone, 1e-5);
  }
  expect(() => run(theta, () => layer.fprop(x))).toThrow(
    'model (MultitaskResidualAdapter): has 3 tasks; pass the task of each example, int32 [B].',
  );
});

test('adapters begin as their bias, and stand in every layer of a stack', () => {
  const layer = build(MultitaskResidualAdapter.config({ ...adapter }));
  const theta = initialTheta(layer);
  const x = tensor([2, 4]);
  expectNear(
    run(theta, () => layer.fprop(x)),
    tf.add(x, theta.up_b!),
    1e-6,
  );
  const config = StackedTransformer.config({ numLayers: 2, modelDims: 4, hiddenDims: 6, numHeads: 2 });
  config.transformerLayerParamsTpl.trFflayerTpl = AdaptedTransformerFeedForward.config({
    adapterTpl: MultitaskResidualAdapter.config({ bottleneckDims: 2 }),
  });
  const paths = listVariables(build(config)).map(({ path }) => path);
  expect(paths.filter((path) => path.endsWith('adapters/down_w'))).toEqual([
    'x_layers_0/ff_layer/adapters/down_w',
    'x_layers_1/ff_layer/adapters/down_w',
  ]);
});
