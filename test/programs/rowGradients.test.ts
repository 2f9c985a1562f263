/** @file Gradients of tables as rows and indices: the steps that all rows take, of every rule, and where they stay dense. */
import { describe, expect, test } from 'vitest';
import {
  type Engine,
  layoutSpecs,
  type Tensor,
  tf,
  traceProgram,
  uniform,
} from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import type { Batch } from '../../src/inputs/index.js';
import { Embedding } from '../../src/layers/index.js';
import {
  Adagrad,
  Adam,
  type BaseOptimizer,
  fillSlots,
  Learner,
  MultiOptimizerLearner,
  Sgd,
} from '../../src/learners/index.js';
import { BaseModel, type TensorBatch } from '../../src/models/index.js';
import { compileStep } from '../../src/programs/stepCalls.js';
import { trainStateOf } from '../../src/programs/taskState.js';
import type { JobOptions } from '../../src/runs/options.js';
import { SingleTask, Train, trainStep } from '../../src/tasks/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';

const ROWS = 4;

/** Squared errors of products of two embeddings; users are looked up twice. */
class Towers extends BaseModel {
  protected users!: Embedding;
  protected items!: Embedding;
  protected override setup(): void {
    this.users = this.createChild('users', Embedding.config({ numClasses: 41, inputDims: 5 }));
    this.items = this.createChild(
      'items',
      Embedding.config({ numClasses: 30, inputDims: 5, scaleSqrtDepth: true }),
    );
    this.createVariable('bias', { shape: [] });
  }
  override computePredictions({ user, friend, item }: TensorBatch) {
    const users = tf.add(this.users.fprop(user!), this.users.fprop(friend!));
    return tf.add(tf.sum(tf.mul(users, this.items.fprop(item!)), -1), this.getVar('bias'));
  }
  override computeLoss = this.loss((predictions, { label }) => {
    const loss = tf.mean(tf.squaredDifference(predictions, label!)) as Tensor;
    return [{ total_loss: [loss, tf.scalar(predictions.size)] }, {}];
  });
}

/** The same rules with gradients of all rows. */
class DenseSgd extends Sgd {
  override get skipsZeroGradients() {
    return false;
  }
}
class DenseAdagrad extends Adagrad {
  override get skipsZeroGradients() {
    return false;
  }
}

function batchAt(step: number): Batch {
  const numbers = uniform([step, 7], 4 * ROWS);
  const ids = (from: number, limit: number) => ({
    ...{ shape: [ROWS], dtype: 'int32' as const },
    data: Int32Array.from(numbers.subarray(from, from + ROWS), (x) => Math.floor(x * limit)),
  });
  const label = { shape: [ROWS], dtype: 'float32' as const, data: numbers.slice(3 * ROWS) };
  // The last row occurs, and a few ids do often.
  const [user, friend, item] = [ids(0, 4), ids(ROWS, 4), ids(2 * ROWS, 30)];
  user.data[0] = 40;
  item.data[1] = item.data[2]!;
  return { user, friend, item, label } as unknown as Batch;
}

/** Some steps of a learner, one of which may have a label that is not finite. */
async function trained(
  optimizer: Config<BaseOptimizer>,
  { engine = 'onnx' as Engine, numSubBatches = 1, bad = -1, numThreads = 2 } = {},
) {
  const config = SingleTask.config({
    model: Towers.config(),
    train: Train.config({ learner: Learner.config({ optimizer }), numSubBatches }),
  });
  const task = build(config);
  const state = trainStateOf(task);
  for (const view of Object.values(state.views)) view.set(uniform([1, 2], view.length).map((x) => x - 0.5));
  fillSlots(state);
  const options = { engine, numThreads, task: config } as unknown as JobOptions;
  const step = await compileStep(options, task, state, 'train', batchAt(0));
  const reports = [];
  for (let at = 0; at < 4; at++) {
    const batch = batchAt(at);
    if (at === bad) (batch as unknown as { label: { data: Float32Array } }).label.data[1] = Number.NaN;
    step.buffers.load(batch);
    step.updater.prepare(at);
    await step.call.run();
    reports.push({ ...step.updater.report(), norms: step.updater.gradNorms() });
  }
  const [{ rowGrads }] = step.executable.outputs as unknown as [{ rowGrads: Record<string, unknown> }];
  await step.executable.dispose();
  return { state, reports, tables: Object.keys(rowGrads) };
}

const bits = ({ state }: Awaited<ReturnType<typeof trained>>) =>
  [state.params, ...Object.values(state.slots)].map((buffer) => [...buffer]);

/** The largest difference of two trainings. */
function apart(a: Awaited<ReturnType<typeof trained>>, b: typeof a): number {
  const others = bits(b);
  return Math.max(...bits(a).flatMap((buffer, i) => buffer.map((x, k) => Math.abs(x - others[i]![k]!))));
}

describe.each(['onnx', ...(hasCompiler ? ['native' as const] : [])] as const)('on %s', (engine) => {
  const rules = [
    ['SGD', Sgd, DenseSgd],
    ['Adagrad', Adagrad, DenseAdagrad],
  ] as const;
  test.each(rules)('%s moves the rows that were looked up as it moves all', async (_name, Rule, Dense) => {
    for (const numSubBatches of [1, 4]) {
      const options = { engine, numSubBatches, bad: 2 };
      const found = await trained(Rule.config({ learningRate: 0.1 }), options);
      const expected = await trained(Dense.config({ learningRate: 0.1 }), options);
      expect([found.tables, expected.tables]).toEqual([['users/emb_var', 'items/emb_var'], []]);
      // On ONNX, the gradient of all rows is a product, which sums in an order of its own.
      if (engine === 'native') expect(bits(found)).toEqual(bits(expected));
      else expect(apart(found, expected)).toBeLessThan(1e-6);
      expect(found.reports.map(({ isValidStep }) => isValidStep)).toEqual([1, 1, 0, 1]);
      for (const [path, norm] of Object.entries(expected.reports[3]!.norms))
        expect(found.reports[3]!.norms[path], path).toBeCloseTo(norm, 6);
    }
  });
});

test.each([
  ['the norm of all', { clipGradientNormToValue: 0.5 }],
  ['the norm of each', { clipGradientSingleNormToValue: 0.2 }],
])('rows are clipped by %s', async (_name, clipping) => {
  const [found, expected] = [
    await trained(Adagrad.config({ learningRate: 0.1, ...clipping })),
    await trained(DenseAdagrad.config({ learningRate: 0.1, ...clipping })),
  ];
  expect(found.tables).toHaveLength(2);
  expect(apart(found, expected)).toBeLessThan(1e-6);
  found.reports.forEach(({ rawGradNorm, clippedGradNorm }, i) => {
    expect(clippedGradNorm).toBeLessThan(rawGradNorm);
    expect(rawGradNorm).toBeCloseTo(expected.reports[i]!.rawGradNorm, 5);
    expect(clippedGradNorm).toBeCloseTo(expected.reports[i]!.clippedGradNorm, 5);
  });
});

/** The tables whose gradients are rows. */
function tablesOf(learner: Config<Learner>, rows = ROWS, numSubBatches = 1): string[] {
  const task = build(
    SingleTask.config({ model: Towers.config(), train: Train.config({ learner, numSubBatches }) }),
  );
  const ids = { shape: [rows], dtype: 'int32' as const };
  const batch = { user: ids, friend: ids, item: ids, label: { shape: [rows], dtype: 'float32' as const } };
  const params = layoutSpecs(task.layout());
  const specs = { params, batch, prngKey: { shape: [2], dtype: 'int32' as const } };
  const { outputs } = traceProgram(trainStep(task, { rows: true }), specs, { abstract: true });
  return Object.keys((outputs as unknown as { rowGrads: object }).rowGrads);
}

test('gradients stay dense where all rows move, or most of them are looked up', () => {
  const sgd = (fields: object = {}) =>
    Learner.config({ optimizer: Sgd.config({ learningRate: 1, ...fields }) });
  const both = ['users/emb_var', 'items/emb_var'];
  expect(tablesOf(sgd())).toEqual(both);
  for (const fields of [
    { momentum: 0.5 },
    { decoupledWeightDecay: 0.1 },
    { l1RegularizerWeight: 0.1 },
    { l2RegularizerWeight: 0.1 },
    { emaDecay: 0.9 },
  ])
    expect(tablesOf(sgd(fields)), Object.keys(fields)[0]).toEqual([]);
  expect(tablesOf(Learner.config({ optimizer: Adam.config({ learningRate: 1 }) }))).toEqual([]);
  // 30 items, of which half are looked up.
  expect([15, 16].map((rows) => tablesOf(sgd(), rows))).toEqual([['items/emb_var'], []]);
  expect(tablesOf(sgd(), 16, 4)).toEqual([]);
  const frozen = sgd();
  frozen.bpropVariableExclusion = ['items/.*'];
  expect(tablesOf(frozen)).toEqual(['users/emb_var']);
  const auxiliary = MultiOptimizerLearner.config({
    optimizer: Adam.config({ learningRate: 1 }),
    auxiliaryOptimizers: [Adagrad.config({ learningRate: 1 })],
    auxiliaryRegex: ['items/.*'],
    auxiliaryNames: ['tables'],
  });
  expect(tablesOf(auxiliary)).toEqual(['items/emb_var']);
});
