/** @file ClassificationMLPModel: its variables, its loss by plain loops, and that the loss can be learned. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { listVariables } from '../../src/layers/index.js';
import { ClassificationMLPModel } from '../../src/models/index.js';
import { checkGradients, expectClose, ints, randomTheta, run } from '../layers/helpers.js';
import { matrix, multiply, softmax, transposed } from '../layers/plain.js';

const [D, HIDDEN, V] = [4, 6, 5];
const IDS = [3, 1, 4, 0, 2, 2];
const WEIGHTS = [1, 1, 0.5, 1, 1, 0];

function model() {
  const config = ClassificationMLPModel.config();
  Object.assign(config.mlpTpl, { numLayers: 2, hiddenDims: HIDDEN });
  Object.assign(config.mlpTpl.ffTpl, { inputDims: D, outputDims: D });
  Object.assign(config.softmaxTpl, { inputDims: D, numClasses: V });
  return build(config);
}

const batch = { ids: ints(IDS, [2, 3]), weights: tf.tensor2d(WEIGHTS, [2, 3]) };

test('variables have Pax’s paths', () => {
  expect(listVariables(model()).map(({ path, shape }) => `${path} ${shape}`)).toEqual([
    'mlp_layers_0/mlp_layers_0/linear/w 4,6',
    'mlp_layers_0/mlp_layers_0/bias/b 6',
    'mlp_layers_0/mlp_layers_1/linear/w 6,4',
    'mlp_layers_0/mlp_layers_1/bias/b 4',
    'softmax/logits_ffn/linear/w 4,5',
    'softmax/logits_ffn/bias/b 5',
  ]);
});

test('the loss is the cross entropy of the tokens themselves, and has gradients', () => {
  const mlp = model();
  const theta = randomTheta(mlp, 3, 1);
  const data = (path: string): number[] => Array.from(theta[path]!.dataSync());
  const table = matrix(data('softmax/logits_ffn/linear/w'), V);
  let x = IDS.map((id) => transposed(table)[id]!);
  for (const [l, columns] of [HIDDEN, D].entries()) {
    const bias = data(`mlp_layers_0/mlp_layers_${l}/bias/b`);
    x = multiply(x, matrix(data(`mlp_layers_0/mlp_layers_${l}/linear/w`), columns)).map((row) =>
      row.map((value, i) => Math.max(value + bias[i]!, 0)),
    );
  }
  const bias = data('softmax/logits_ffn/bias/b');
  const logits = multiply(x, table).map((row) => row.map((value, i) => value + bias[i]!));
  const total = WEIGHTS.reduce((a, b) => a + b, 0);
  const mean = (f: (row: number[], id: number) => number): number =>
    logits.reduce((sum, row, i) => sum + WEIGHTS[i]! * f(row, IDS[i]!), 0) / total;
  const [metrics, perExample] = run(theta, () => mlp.fprop(batch));
  expect(Object.keys(metrics)).toEqual(['total_loss', 'avg_xent', 'accuracy', 'num_predictions']);
  expectClose(metrics.total_loss![0], [mean((row, id) => -Math.log(softmax(row)[id]!))], 1e-4);
  expectClose(metrics.accuracy![0], [mean((row, id) => Number(row.indexOf(Math.max(...row)) === id))]);
  expectClose(metrics.num_predictions![0], [total]);
  expect(perExample).toEqual({});
  checkGradients(mlp, [], () => mlp.fprop(batch)[0].total_loss![0], { theta });
});

test('a batch without weights is an error that names what it has', () => {
  const mlp = model();
  expect(() => run(randomTheta(mlp), () => mlp.fprop({ ids: batch.ids }))).toThrow(
    "model (ClassificationMLPModel): the batch has no 'weights'. It has: ids.",
  );
});
