/** @file Variational noise: on the weights that its pattern names, from its first step on, in training alone. */
import { expect, test } from 'vitest';
import {
  compile,
  type HostTensor,
  type PrngKey,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { Constant } from '../../src/layers/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { BaseModel, type TensorBatch } from '../../src/models/index.js';
import { evalStep, SingleTask, Train, trainStep } from '../../src/tasks/index.js';
import { engines } from '../compiler/engines.js';
import { tinyTraining } from '../programs/tinyTraining.js';

const size = 4096;

/** Half the squares of its weights, which are its gradients then. */
class Squares extends BaseModel {
  protected override setup(): void {
    for (const name of ['drawn', 'still'])
      this.createVariable(name, { shape: [size], init: build(Constant.config({ scale: 0 })) });
  }
  override computePredictions(_: TensorBatch) {
    const half = (name: string) => tf.mul(tf.sum(tf.square(this.getVar(name))), 0.5);
    return tf.add(half('drawn'), half('still'));
  }
  override computeLoss = this.loss((squares, { weights }) => [
    { total_loss: [squares, tf.sum(weights!) as Tensor] },
    {},
  ]);
}

interface Outputs {
  readonly loss: HostTensor;
  readonly grads: Record<'drawn' | 'still', HostTensor>;
}

function configOf(vn: Partial<Config<SingleTask>['vn']>, numSubBatches = 1): Config<SingleTask> {
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) });
  const config = SingleTask.config({
    model: Squares.config(),
    train: Train.config({ learner, numSubBatches }),
  });
  return Object.assign(config, { vn: Object.assign(config.vn, vn) });
}

const zeros: HostTensor = { shape: [size], dtype: 'float32', data: new Float32Array(size) };

const inputsOf = (step: number, key: PrngKey = [1, 2]) => ({
  params: { drawn: zeros, still: zeros },
  batch: { weights: { shape: [2], dtype: 'float32', data: Float32Array.of(1, 1) } },
  prngKey: { shape: [2], dtype: 'int32', data: Int32Array.from(key) },
  step: { shape: [], dtype: 'int32', data: Int32Array.of(step) },
});

const deviation = (data: ArrayLike<number>): number =>
  Math.sqrt(Array.from(data).reduce((sum, x) => sum + x * x, 0) / data.length);

test.each(engines.filter(([, { available }]) => available))(
  '%s: normal noise of its scale on the named weights, from its first step on',
  async (_, { engine }) => {
    const task = build(configOf({ vnScale: 0.5, vnRegex: 'dra.*', vnStartStep: 3 }));
    const executable = await compile(trainStep(task), inputsOf(0) as unknown as Tree<TensorSpec>, { engine });
    const gradsAt = async (step: number, key?: PrngKey) => {
      const { grads } = (await executable.run(inputsOf(step, key) as never)) as unknown as Outputs;
      return { drawn: grads.drawn.data.slice(), still: grads.still.data.slice() };
    };
    const [before, first, again, other] = [
      await gradsAt(2),
      await gradsAt(3),
      await gradsAt(4),
      await gradsAt(3, [1, 3]),
    ];
    for (const { still } of [before, first]) expect(still).toEqual(zeros.data);
    expect(before.drawn).toEqual(zeros.data);
    expect(deviation(first.drawn)).toBeCloseTo(0.5, 1);
    expect(Math.abs(Array.from(first.drawn).reduce((sum, x) => sum + x) / size)).toBeLessThan(0.03);
    // The key alone decides, which each step has of its own.
    expect(again.drawn).toEqual(first.drawn);
    expect(other.drawn).not.toEqual(first.drawn);
  },
);

test('each sub-batch draws its own noise', async () => {
  const task = build(configOf({ vnScale: 0.5, vnRegex: '.*' }, 2));
  const { step: _, ...inputs } = inputsOf(0);
  const executable = await compile(trainStep(task), inputs as unknown as Tree<TensorSpec>, {
    engine: 'onnx',
  });
  const { grads } = (await executable.run(inputs as never)) as unknown as Outputs;
  expect(deviation(grads.drawn.data)).toBeCloseTo(0.5 / Math.SQRT2, 1);
  expect(grads.still.data).not.toEqual(grads.drawn.data);
});

test('evaluations have the stored weights', async () => {
  const task = build(configOf({ vnScale: 0.5, vnRegex: '.*' }));
  const { step: _, ...inputs } = inputsOf(5);
  const executable = await compile(evalStep(task), inputs as unknown as Tree<TensorSpec>, { engine: 'onnx' });
  const { metrics } = (await executable.run(inputs as never)) as never as {
    metrics: Record<string, Record<'value', HostTensor>>;
  };
  expect(metrics.total_loss!.value.data[0]).toBe(0);
});

/** Losses of four steps at rest, and the parameters before and behind them. */
async function trained(vnScale: number) {
  const { program, state } = await tinyTraining('onnx', 1, {
    edit: (config) => {
      Object.assign(config.vn, { vnScale, vnRegex: '.*emb_var', vnStartStep: 2 });
      config.train.learner.optimizer.learningRate = 0;
    },
  });
  const initial = state.params.slice();
  const losses: number[] = [];
  while (losses.length < 4) {
    const reports = await program.runSteps(Math.min(program.mostSteps, 4 - losses.length));
    losses.push(...reports.map(({ loss }) => loss));
  }
  return { losses, params: state.params, initial };
}

test('a program counts the steps, and moves the stored weights', async () => {
  const [plain, noisy] = [await trained(0), await trained(0.1)];
  expect(noisy.losses.slice(0, 2)).toEqual(plain.losses.slice(0, 2));
  for (const i of [2, 3]) expect(noisy.losses[i]).not.toBe(plain.losses[i]);
  expect(noisy.params).toEqual(noisy.initial);
});

test('a pattern that names nothing is an error before anything trains', () => {
  expect(() => build(configOf({ vnScale: 0.075, vnRegex: 'draw' }))).toThrow(
    "task.vn.vnRegex: 'draw' matches the whole path of no variable, and vnScale is 0.075. Expected a pattern such as '.*' for " +
      "all of 'drawn', 'still', or a vnScale of 0.",
  );
  expect(() => build(configOf({ vnScale: 0, vnRegex: 'draw' }))).not.toThrow();
  expect(() => configOf({ vnScale: 0, vnRegex: '(' })).toThrow("'(' is not a regular expression");
});
