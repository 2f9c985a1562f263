/** @file Splits of variables and activations that layers say themselves, and what devices then hold. */
import { expect, test } from 'vitest';
import { type Tensor, tf, traceProgram } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  BaseLayer,
  FeedForward,
  Linear,
  listVariables,
  Repeat,
  runInContext,
  splitActivations,
} from '../../src/layers/index.js';
import { Mesh } from '../../src/tasks/index.js';
import { randomTheta, run, tensor } from './helpers.js';

const mesh = build(Mesh.config({ iciMeshShape: [1, 2, 4] }));

const heldBy = (layer: BaseLayer): string[] =>
  mesh.localVariables(listVariables(layer)).map(({ path, shape }) => `${path} ${shape}`);

test('a layer says how its variables are split; those below it inherit where the rank fits', () => {
  const config = FeedForward.config({
    inputDims: 8,
    outputDims: 16,
    weightSplitDimsMapping: { wt: ['data', 'mdl'] },
  });
  expect(heldBy(build(config))).toEqual(['linear/w 4,4', 'bias/b 16']);
  config.linearTpl.weightSplitDimsMapping = { w: [null, ['data', 'mdl']] };
  config.biasTpl.weightSplitDimsMapping = { b: ['mdl'] };
  expect(heldBy(build(config))).toEqual(['linear/w 8,2', 'bias/b 4']);
  // Axes that stack repetitions are whole.
  expect(heldBy(build(Repeat.config({ subTpl: config as never, xTimes: 3 })))).toEqual([
    'sub/linear/w 3,8,2',
    'sub/bias/b 3,4',
  ]);
});

test('rules of the mesh go before what layers say', () => {
  const layer = build(
    Linear.config({ inputDims: 8, outputDims: 8, weightSplitDimsMapping: { w: ['data', null] } }),
  );
  const ruled = build(Mesh.config({ iciMeshShape: [1, 2, 4], weightSplitDimsMapping: { w: [null, 'mdl'] } }));
  expect(ruled.localVariables(listVariables(layer))[0]!.shape).toEqual([8, 2]);
  expect(heldBy(layer)).toEqual(['w 4,8']);
});

/** Shards what it computes. */
class Sharded extends BaseLayer.with({}) {
  fprop(x: Tensor): Tensor {
    return this.shard(tf.mul(x, 2), 'out');
  }
}

test('what a layer computes is itself, whatever its split', () => {
  const x = tensor([4, 3]);
  const plain = build(Sharded.config());
  const split = build(Sharded.config({ activationSplitDimsMapping: { out: ['data', 'mdl'] } }));
  for (const layer of [plain, split])
    expect([...run({}, () => layer.fprop(x)).dataSync()]).toEqual([...tf.mul(x, 2).dataSync()]);
  expect(plain.activationSplit()).toBeUndefined();
  expect(split.activationSplit()).toEqual(['data', 'mdl']);
  expect([
    mesh.parts('sharded', plain.activationSplit()),
    mesh.parts('sharded', split.activationSplit()),
  ]).toEqual([1, 4]);
  const other = build(Sharded.config({ activationSplitDimsMapping: { out: ['data'] } }));
  expect(() => run(randomTheta(other), () => other.fprop(x))).toThrow(
    "model (Sharded): activationSplitDimsMapping.out has 1 dimensions, and 'out' has 2.",
  );
});

test('traced for ranks, tensors that layers, rules of the mesh or both split are constrained', () => {
  const layer = build(
    FeedForward.config({
      inputDims: 6,
      outputDims: 8,
      linearTpl: Linear.config({ activationSplitDimsMapping: { out: [['replica', 'data'], 'mdl'] } }),
    }),
  );
  const rules = { '.*activation': ['data', null], '': [null, 'mdl', null] };
  const split = build(Mesh.config({ iciMeshShape: [1, 2, 4], activationSplitDimsMapping: rules }));
  const traced = (splits: Mesh) =>
    traceProgram(
      (({ x, theta }: any) =>
        splitActivations(splits.activationAxes.bind(splits), () =>
          runInContext({ theta }, () => layer.fprop(x)),
        )) as any,
      { x: { shape: [4, 6], dtype: 'float32' }, theta: randomTheta(layer) as any },
    ).graph.nodes.flatMap(({ op, scope, attrs }) =>
      op === 'ShardingConstraint' ? [`${scope}: ${attrs.axes} by ${attrs.counts}`] : [],
    );
  // Rows are split already. The rule of three dimensions is for no output here, that of rows alone splits nothing.
  expect(traced(split)).toEqual(['linear: 2 by 0,1', 'activation:  by 0,0']);
  expect(traced(mesh)).toEqual(['linear: 2 by 0,1']);
});

test('an axis that the mesh has not, and another rank, are errors', () => {
  const linear = (w: (string | null)[]) =>
    Linear.config({ inputDims: 8, outputDims: 8, weightSplitDimsMapping: { w } });
  expect(() => build(linear(['data']))).toThrow(
    "model (Linear): weightSplitDimsMapping.w has 1 dimensions, and 'w' has 2.",
  );
  expect(() => heldBy(build(linear(['model', null])))).toThrow(
    "w is split over 'model', which is no axis of task.mesh. Did you mean 'mdl'? Its axes are replica, data, mdl.",
  );
  expect(() => mesh.parts('ff', ['dat', null])).toThrow(
    "ff is split over 'dat', which is no axis of task.mesh. Did you mean 'data'? Its axes are replica, data, mdl.",
  );
});
