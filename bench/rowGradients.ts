/**
 * @file Two towers with large tables: steps whose gradients are rows and indices, beside steps with gradients of all rows.
 * `peers/torch_rows.py` takes the same steps.
 *
 *     npx tsx bench/rowGradients.ts [batch [rows [threads]]]
 */
import { type Tensor, tf, uniform } from '../src/compiler/index.js';
import { build, type Config } from '../src/hparams/index.js';
import type { Batch } from '../src/inputs/index.js';
import { Embedding } from '../src/layers/index.js';
import { Adagrad, AdamW, type BaseOptimizer, fillSlots, Learner, Sgd } from '../src/learners/index.js';
import { BaseModel, type TensorBatch } from '../src/models/index.js';
import { compileStep } from '../src/programs/stepCalls.js';
import { trainStateOf } from '../src/programs/taskState.js';
import type { JobOptions } from '../src/runs/options.js';
import { SingleTask, Train } from '../src/tasks/index.js';

const [batchSize = 512, numClasses = 50_000, numThreads = 1] = process.argv.slice(2).map(Number);
const inputDims = 64;
const STEPS = 32;
const ROUNDS = 7;

/** Logits of users and items in the batch against each other, of which each user's own item is the label. */
class Towers extends BaseModel {
  private users!: Embedding;
  private items!: Embedding;
  protected override setup(): void {
    // One config would be one table.
    this.users = this.createChild('users', Embedding.config({ numClasses, inputDims }));
    this.items = this.createChild('items', Embedding.config({ numClasses, inputDims }));
  }
  override computePredictions({ user, item }: TensorBatch) {
    return tf.matMul(this.users.fprop(user!), this.items.fprop(item!), false, true) as Tensor;
  }
  override computeLoss = this.loss((logits) => {
    const labels = tf.eye(batchSize);
    const loss = tf.neg(tf.mean(tf.sum(tf.mul(tf.logSoftmax(logits), labels), -1))) as Tensor;
    return [{ total_loss: [loss, tf.scalar(batchSize)] }, {}];
  });
}

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

const ids = (seed: number) => ({
  ...{ shape: [batchSize], dtype: 'int32' as const },
  data: Int32Array.from(uniform([seed, 1], batchSize), (x) => Math.floor(x * x * numClasses)),
});

async function stepOf(optimizer: Config<BaseOptimizer>) {
  const config = SingleTask.config({
    model: Towers.config(),
    train: Train.config({ learner: Learner.config({ optimizer }) }),
  });
  const task = build(config);
  const state = trainStateOf(task);
  await task.initialize(state.views);
  fillSlots(state);
  const options = { engine: 'native', numThreads, task: config } as unknown as JobOptions;
  const batch = { user: ids(1), item: ids(2) } as unknown as Batch;
  const before = process.memoryUsage().rss;
  const { call, updater, mostSteps, buffers } = await compileStep(options, task, state, 'train', batch);
  const turn = async (): Promise<number> => {
    for (let i = 0; i < mostSteps; i++) {
      buffers.load(batch, i);
      updater.prepare(i, i);
    }
    let steps = 0;
    const began = performance.now();
    for (; steps < STEPS; steps += mostSteps) await call.run(mostSteps);
    return (performance.now() - began) / steps;
  };
  await turn();
  return { turn, megabytes: (process.memoryUsage().rss - before) / 1e6 };
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;

for (const clipGradientNormToValue of [0, 1]) {
  const fields = { learningRate: 0.1, clipGradientNormToValue };
  for (const [name, dense, rows] of [
    ['SGD', DenseSgd.config(fields), Sgd.config(fields)],
    ['Adagrad', DenseAdagrad.config(fields), Adagrad.config(fields)],
    ['AdamW, lazy', AdamW.config(fields), AdamW.config({ ...fields, lazyUpdate: true })],
  ] as const) {
    const sides = [await stepOf(dense), await stepOf(rows)];
    const times: number[][] = [[], []];
    for (let round = 0; round < ROUNDS; round++)
      for (const [i, { turn }] of sides.entries()) times[i]!.push(await turn());
    const [ofAll, ofRows] = times.map(median) as [number, number];
    const memory = sides.map(({ megabytes }) => `${megabytes.toFixed(0)} MB`).join(' → ');
    console.log(
      `${name}${clipGradientNormToValue > 0 ? ', clipped' : ''}: ${ofAll.toFixed(3)} → ${ofRows.toFixed(3)} ms a step (${(ofAll / ofRows).toFixed(1)} times), ${memory} touched`,
    );
  }
}
