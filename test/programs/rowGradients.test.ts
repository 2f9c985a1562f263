/** @file Gradients of tables as rows and indices: the steps that all rows take, of every rule, and where they stay dense. */

import { describe, expect, test } from 'vitest';
import type { Ranks } from '../../src/collectives/index.js';
import {
  type Engine,
  executions,
  type HostTensor,
  layoutSpecs,
  type Tensor,
  tf,
  traceProgram,
  uniform,
} from '../../src/compiler/index.js';
import { optimize } from '../../src/compiler/passes/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import type { Batch } from '../../src/inputs/index.js';
import { Embedding } from '../../src/layers/index.js';
import {
  Adagrad,
  Adam,
  AdamW,
  type BaseOptimizer,
  fillSlots,
  Learner,
  MultiOptimizerLearner,
  Sgd,
} from '../../src/learners/index.js';
import { BaseModel, type TensorBatch } from '../../src/models/index.js';
import { rankStep } from '../../src/programs/ranks/rankStep.js';
import { compileStep } from '../../src/programs/stepCalls.js';
import { trainStateOf } from '../../src/programs/taskState.js';
import type { JobOptions } from '../../src/runs/options.js';
import { SingleTask, Train, trainStep } from '../../src/tasks/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { longTest } from '../longTest.js';
import { ranksInProcess } from './ranks/ranksInProcess.js';

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
  override movesRowsAlone() {
    return false;
  }
}
class DenseAdagrad extends Adagrad {
  override movesRowsAlone() {
    return false;
  }
}
class DenseAdamW extends AdamW {
  override movesRowsAlone() {
    return false;
  }
}

/** Fields of the rules whose steps are compared. */
const RULES = [
  ['SGD', Sgd, DenseSgd, {}],
  ['Adagrad', Adagrad, DenseAdagrad, {}],
  ['lazy AdamW', AdamW, DenseAdamW, { lazyUpdate: true }],
  [
    'lazy AdamW with limits',
    AdamW,
    DenseAdamW,
    { lazyUpdate: true, clipThreshold: 0.3, muDtype: 'bfloat16' },
  ],
] as const;

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

const learnerOf = (optimizer: Config<BaseOptimizer>, fields: object = {}) =>
  Learner.config({ optimizer, ...fields });

/** Rows of a batch that a rank has. */
function shareOf(batch: Batch, { rank, count }: Pick<Ranks, 'rank' | 'count'>): Batch {
  const size = ROWS / count;
  const cut = Object.entries(batch as unknown as Record<string, HostTensor>).map(
    ([name, { dtype, data }]) => [
      name,
      { shape: [size], dtype, data: data.slice(rank * size, (rank + 1) * size) },
    ],
  );
  return Object.fromEntries(cut);
}

interface Training {
  readonly engine?: Engine;
  readonly numSubBatches?: number;
  /** The step with a label that is not finite. */
  readonly bad?: number;
  readonly ranks?: Ranks;
}

/** Some steps of a learner. */
async function trained(
  learner: Config<Learner>,
  { engine = 'onnx', numSubBatches = 1, bad = -1, ranks }: Training = {},
) {
  const config = SingleTask.config({
    model: Towers.config(),
    train: Train.config({ learner, numSubBatches }),
  });
  const task = build(config);
  const state = trainStateOf(task);
  for (const view of Object.values(state.views)) view.set(uniform([1, 2], view.length).map((x) => x - 0.5));
  fillSlots(state);
  const options = { engine, numThreads: 2, task: config } as unknown as JobOptions;
  const own = (at: number) => shareOf(batchAt(at), ranks ?? { rank: 0, count: 1 });
  const step = ranks
    ? await rankStep(options, task, state, 'train', own(0), ranks)
    : await compileStep(options, task, state, 'train', own(0));
  const reports = [];
  for (let at = 0; at < 4; at++) {
    const batch = own(at);
    if (at === bad) (batch as unknown as { label: { data: Float32Array } }).label.data[0] = Number.NaN;
    step.buffers.load(batch);
    step.updater.prepare(at);
    await step.call.run();
    reports.push({ ...step.updater.report(), norms: step.updater.gradNorms() });
  }
  const { outputs } = step.executable;
  const found = ranks
    ? (outputs as unknown as { rowSums: object }).rowSums
    : (outputs as unknown as [{ rowGrads: object }])[0].rowGrads;
  await step.executable.dispose();
  return { state, reports, tables: Object.keys(found) };
}

const bits = ({ state }: Awaited<ReturnType<typeof trained>>) =>
  [state.params, ...Object.values(state.slots)].map((buffer) => [...buffer]);

/** The largest difference of two trainings, in parameters and slots of float32. */
function apart(a: Awaited<ReturnType<typeof trained>>, b: typeof a): number {
  const floats = ({ state }: typeof a) =>
    [state.params, ...Object.values(state.slots)].filter((buffer) => buffer instanceof Float32Array);
  const others = floats(b);
  return Math.max(
    ...floats(a).flatMap((buffer, i) => [...buffer].map((x, k) => Math.abs(x - others[i]![k]!))),
  );
}

const BOTH = ['users/emb_var', 'items/emb_var'];

describe.each(['onnx', ...(hasCompiler ? ['native' as const] : [])] as const)('on %s', (engine) => {
  test.each(RULES)('%s moves the rows that were looked up as with all', async (_name, Rule, Dense, rule) => {
    const fields = { learningRate: 0.1, ...rule };
    for (const numSubBatches of [1, 4]) {
      const options = { engine, numSubBatches, bad: 2 };
      const found = await trained(learnerOf(Rule.config(fields)), options);
      const expected = await trained(learnerOf(Dense.config(fields)), options);
      expect([found.tables, expected.tables]).toEqual([BOTH, []]);
      // On ONNX, the gradient of all rows is a product, which sums in an order of its own, as the squares of a limit do. AdamW's
      // sums of products are fused with other ones where rows are chosen among them.
      if (engine === 'native' && !('lazyUpdate' in rule)) expect(bits(found)).toEqual(bits(expected));
      else expect(apart(found, expected)).toBeLessThan(2e-6);
      expect(found.reports.map(({ isValidStep }) => isValidStep)).toEqual([1, 1, 0, 1]);
      for (const [path, norm] of Object.entries(expected.reports[3]!.norms))
        expect(found.reports[3]!.norms[path], path).toBeCloseTo(norm, 6);
    }
  });

  longTest('ranks have the bits of one process, and hand each other rows', async () => {
    const learner = learnerOf(
      AdamW.config({ learningRate: 0.1, lazyUpdate: true, clipGradientNormToValue: 0.2 }),
    );
    const options = { engine, numSubBatches: 4 };
    const one = await trained(learner, options);
    expect(one.reports.every(({ gradScale }) => gradScale < 1)).toBe(true);
    for (const count of engine === 'native' ? [1, 2, 4] : [2]) {
      const elements: Record<string, number> = {};
      const ranks = ranksInProcess(count, (name, bytes) => {
        elements[name] = (elements[name] ?? 0) + bytes / 4;
      });
      const all = await Promise.all(ranks.map((each) => trained(learner, { ...options, ranks: each })));
      for (const each of all) {
        expect(each.tables).toEqual(BOTH);
        expect(bits(each)).toEqual(bits(one));
        expect(each.reports).toEqual(one.reports);
      }
      // 4 steps of 4 sub-batches of 3 lookups, each an index and 5 numbers.
      expect(elements.allGather).toBe(4 * 4 * 3 * 6);
      // The bias, the loss and metrics, aligned: less than either table.
      expect(elements.allReduce).toBeLessThan(4 * count * 30 * 5);
    }
  });
});

/** The learner of `optimizer` in which the tables have optimizers of their own, that clip by norms of their own. */
const separate = (Rule: typeof Adagrad) =>
  MultiOptimizerLearner.config({
    optimizer: Rule.config({ learningRate: 0.1, clipGradientNormToValue: 0.5 }),
    auxiliaryOptimizers: [Rule.config({ learningRate: 0.2, clipGradientNormToValue: 0.3 })],
    auxiliaryRegex: ['items/.*'],
    auxiliaryNames: ['items'],
    applySeparateScaling: true,
  });
const clipping =
  (fields: object, ofLearner: object = {}) =>
  (Rule: typeof Adagrad) =>
    learnerOf(Rule.config({ learningRate: 0.1, ...fields }), ofLearner);

test.each([
  ['the norm of all', clipping({ clipGradientNormToValue: 0.5 }), {}],
  ['the norm of each', clipping({ clipGradientSingleNormToValue: 0.2 }), {}],
  ['the norms of each optimizer', separate, {}],
  [
    'the norm of each sub-batch',
    clipping({}, { clipSubBatchGradientNormToValue: 0.1 }),
    { numSubBatches: 4 },
  ],
])('rows are clipped by %s', async (_name, learner, options) => {
  const [found, expected] = [
    await trained(learner(Adagrad), options),
    await trained(learner(DenseAdagrad), options),
  ];
  expect([found.tables, expected.tables]).toEqual([BOTH, []]);
  expect(apart(found, expected)).toBeLessThan(1e-6);
  found.reports.forEach(({ rawGradNorm, clippedGradNorm }, i) => {
    if ('numSubBatches' in options) expect(rawGradNorm).toBeLessThan(0.1 + 1e-6);
    else expect(clippedGradNorm).toBeLessThan(rawGradNorm);
    expect(rawGradNorm).toBeCloseTo(expected.reports[i]!.rawGradNorm, 5);
    expect(clippedGradNorm).toBeCloseTo(expected.reports[i]!.clippedGradNorm, 5);
  });
});

test('no sum over sub-batches has the size of a table', () => {
  const sizes = (rows: boolean): Set<string> => {
    const { graph } = tracedStep(learnerOf(Sgd.config({ learningRate: 1 })), ROWS, 4, rows);
    const made = new Set<string>();
    for (const { node } of executions(optimize(graph)))
      for (const { shape, dtype } of node.outputs) made.add(`${dtype}[${shape}]`);
    return made;
  };
  expect([sizes(false).has('float32[30,5]'), sizes(true).has('float32[30,5]')]).toEqual([true, false]);
  expect([sizes(false).has('float32[41,5]'), sizes(true).has('float32[41,5]')]).toEqual([true, false]);
});

function tracedStep(learner: Config<Learner>, rows: number, numSubBatches: number, asRows = true) {
  const task = build(
    SingleTask.config({ model: Towers.config(), train: Train.config({ learner, numSubBatches }) }),
  );
  const ids = { shape: [rows], dtype: 'int32' as const };
  const batch = { user: ids, friend: ids, item: ids, label: { shape: [rows], dtype: 'float32' as const } };
  const params = layoutSpecs(task.layout());
  const specs = { params, batch, prngKey: { shape: [2], dtype: 'int32' as const } };
  return traceProgram(trainStep(task, { rows: asRows }), specs, { abstract: true });
}

/** The tables whose gradients are rows. */
const tablesOf = (learner: Config<Learner>, rows = ROWS, numSubBatches = 1): string[] =>
  Object.keys((tracedStep(learner, rows, numSubBatches).outputs as unknown as { rowGrads: object }).rowGrads);

test('gradients stay dense where all rows move, or most of them are looked up', () => {
  const sgd = (fields: object = {}) => learnerOf(Sgd.config({ learningRate: 1, ...fields }));
  expect(tablesOf(sgd())).toEqual(BOTH);
  for (const fields of [
    { momentum: 0.5 },
    { decoupledWeightDecay: 0.1 },
    { l1RegularizerWeight: 0.1 },
    { l2RegularizerWeight: 0.1 },
    { emaDecay: 0.9 },
  ])
    expect(tablesOf(sgd(fields)), Object.keys(fields)[0]).toEqual([]);
  const adam = (fields: object) => tablesOf(learnerOf(Adam.config({ learningRate: 1, ...fields })));
  expect([adam({}), adam({ lazyUpdate: true }), adam({ lazyUpdate: true, emaDecay: 0.9 })]).toEqual([
    [],
    BOTH,
    [],
  ]);
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
