/** @file Repeat and StackedTransformerRepeated, against layers that are called one after the other. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  compile,
  costAnalysis,
  evalShape,
  type HostTensor,
  type Tensor,
  tf,
  valueAndGrad,
} from '../../src/compiler/index.js';
import { optimize } from '../../src/compiler/passes/index.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { build, type Config, sub } from '../../src/hparams/index.js';
import {
  BaseLayer,
  BatchNorm,
  Dropout,
  decodeStateSpecs,
  FeedForward,
  fillVariables,
  initVariables,
  LayerNorm,
  Linear,
  listVariables,
  Repeat,
  StackedTransformer,
  StackedTransformerRepeated,
  Tanh,
  Taps,
  TransformerLm,
  WeightCollection,
} from '../../src/layers/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { VariableGroup } from '../../src/learners/optimizers/variableGroup.js';
import { clipBySingleNorm } from '../../src/learners/transforms/clipping.js';
import { engines } from '../compiler/engines.js';
import { repeatedly } from '../compiler/repeatedRuns.js';
import { expectClose, initialTheta, ints, numbers, randomTheta, run, tensor } from './helpers.js';

type Values = Record<string, Tensor>;

const D = 4;
const square = (values: Partial<Config<FeedForward>> = {}) =>
  FeedForward.config({ inputDims: D, outputDims: D, activationTpl: Tanh.config(), ...values });

/** Values of the layers one by one, `<name>_0/…`, from those of a Repeat at `<at>/sub/…`. */
const apart = (theta: Values, at: string, name: string): Values =>
  Object.fromEntries(
    Object.entries(theta).flatMap(([path, value]) =>
      path.startsWith(at)
        ? tf.unstack(value).map((one, i) => [`${name}_${i}${path.slice(at.length)}`, one])
        : [[path, value]],
    ),
  );

test('variables stack those of the repetitions, which are drawn each with a key and fans of its own', async () => {
  const repeat = build(Repeat.config({ subTpl: square({ hasBias: true }), xTimes: 6 }));
  expect(listVariables(repeat).map(({ path, shape, repeatPrefix }) => [path, shape, repeatPrefix])).toEqual([
    ['sub/linear/w', [6, D, D], [6]],
    ['sub/bias/b', [6, D], [6]],
  ]);
  const drawn = initVariables(repeat, 3);
  const weights = drawn.get('sub/linear/w')!;
  const slices = Array.from({ length: 6 }, (_, i) => weights.subarray(i * D * D, (i + 1) * D * D));
  expect(new Set(slices.map((slice) => slice.join())).size).toBe(6);
  // Xavier's limit for [D, D]; that of [6, D, D] is smaller by the root of 6.
  const limit = Math.sqrt(6 / (2 * D));
  for (const slice of slices) {
    const largest = Math.max(...slice.map(Math.abs));
    expect(largest).toBeLessThanOrEqual(limit * 1.00001);
    expect(largest).toBeGreaterThan(limit * 0.6);
  }
  const views = Object.fromEntries([...drawn].map(([path, { length }]) => [path, new Float32Array(length)]));
  await fillVariables(repeat, 3, views);
  expect(views).toEqual(Object.fromEntries(drawn));
});

const [V, B, T] = [7, 2, 5];
const depths = { modelDims: D, hiddenDims: 6, numHeads: 2 };
const ids = Int32Array.from({ length: B * T }, (_, i) => (i * 5 + 3) % V);

/** A language model over a stack of three layers, repeated or not. */
const model = (stackedTransformerTpl: Config<StackedTransformer>) =>
  build(TransformerLm.config({ vocabSize: V, modelDims: D, stackedTransformerTpl }));
const repeated = (values: Partial<Config<StackedTransformerRepeated>> = {}) =>
  model(StackedTransformerRepeated.config({ ...depths, xTimes: 3, ...values }));
const at = 'transformer/repeat/sub';

/** Values of the plain stack, `transformer/x_layers_0` to `2`, from those of the repeated one. */
const unrolled = (theta: Values): Values =>
  Object.fromEntries(
    Object.entries(apart(theta, at, 'block')).map(([path, value]) => [
      path.replace(/^block_(\d)\/x_layers_0/, 'transformer/x_layers_$1'),
      value,
    ]),
  );

const sumsOf = (x: Tensor): Tensor => tf.sum(tf.mul(x, tf.tensor(numbers(x.size, 99), x.shape)));

describe.each(engines)('%s', (_, { engine, available }) => {
  test.runIf(available)(
    'a repeated stack has the loss and gradients of a plain one, and those of finite differences',
    async () => {
      const lm = repeated();
      const plain = model(StackedTransformer.config({ ...depths, numLayers: 3 }));
      const labels = { classIds: tf.tensor2d(ids, [B, T], 'int32'), classWeights: tf.ones([B, T]) };
      const lossOf = (layer: TransformerLm, theta: Values) =>
        run(theta, () => layer.fprop({ ids: labels.classIds }, labels).totalLoss);
      const program = (theta: Values) => {
        const [one, other] = [
          (given: Values) => lossOf(lm, given),
          (given: Values) => lossOf(plain, unrolled(given)),
        ].map((loss) => valueAndGrad((given: Values) => ({ value: loss(given), aux: {} }), theta));
        return { one, other } as never;
      };
      const theta = Object.fromEntries(
        listVariables(lm).map(({ path, shape }, i) => {
          const data = numbers(
            shape.reduce((a, b) => a * b, 1),
            i + 3,
          ).map((x) => x / 2);
          return [path, { shape: [...shape], dtype: 'float32', data } as HostTensor];
        }),
      );
      const executable = await compile(program, theta as never, { engine, numThreads: 1 });
      type Result = Record<'one' | 'other', { value: HostTensor; grads: Record<string, HostTensor> }>;
      const lossNow = async (): Promise<number> =>
        ((await executable.run(theta as never)) as unknown as Result).one.value.data[0]!;
      const { one, other } = structuredClone((await executable.run(theta as never)) as unknown as Result);
      expect(one.value.data[0]).toBeCloseTo(other.value.data[0]!, 5);
      for (const [path, { data }] of Object.entries(one.grads))
        data.forEach((value, i) => {
          expect(Math.abs(value - other.grads[path]!.data[i]!), `${path}[${i}]`).toBeLessThan(2e-5);
        });
      for (const [path, { data }] of Object.entries(theta)) {
        const i = Math.floor(data.length / 2);
        const [before, step] = [data[i]!, 2e-2];
        const at = async (delta: number): Promise<number> => {
          data[i] = before + delta;
          return lossNow();
        };
        const numeric = ((await at(step)) - (await at(-step))) / (2 * step);
        data[i] = before;
        expect(Math.abs(numeric - one.grads[path]!.data[i]!), path).toBeLessThan(2e-3);
      }
      await executable.dispose();
    },
  );

  const unrollInDecode = engine === 'native';
  test.runIf(available)(`decoding step by step, unrolled: ${unrollInDecode}`, async () => {
    const lm = repeated({ unrollInDecode });
    const theta = randomTheta(lm);
    const whole = run(theta, () => lm.logits({ ids: tf.tensor2d(ids, [B, T], 'int32') }), { doEval: true });
    const specs = decodeStateSpecs(lm, B, T);
    const key = `${at}/x_layers_0/self_attention/kv_cache/key_state`;
    expect(Object.keys(specs).filter((path) => path.startsWith(key))).toEqual(
      unrollInDecode ? [0, 1, 2].map((i) => `${key}#${i}`) : [key],
    );
    const all = (given: { theta: Values; ids: Tensor; state: Values }) => {
      let decodeState = given.state;
      const steps = Array.from({ length: T }, (_, t) => {
        decodeState = { ...decodeState };
        const token = tf.reshape(tf.slice(given.ids, [0, t], [B, 1]), [B]);
        return run(given.theta, () => lm.extendStep(token, { timeStep: tf.scalar(t, 'int32') }), {
          decodeState,
          doEval: true,
        });
      });
      return { logits: tf.stack(steps, 1) };
    };
    const host = (x: Tensor) => ({ shape: x.shape, dtype: x.dtype, data: x.dataSync() });
    const args = {
      theta: Object.fromEntries(Object.entries(theta).map(([path, x]) => [path, host(x)])),
      ids: { shape: [B, T], dtype: 'int32', data: ids },
      state: Object.fromEntries(
        Object.entries(specs).map(([path, spec]) => [path, host(tf.zeros([...spec.shape]))]),
      ),
    };
    const executable = await compile(all as never, args as never, { engine, numThreads: 1 });
    const { logits } = (await repeatedly(executable, args as never)) as unknown as { logits: HostTensor };
    expectClose(whole, logits.data, 1e-4);
    await executable.dispose();
  });
});

test('a program is no larger for more repetitions', () => {
  const sizeOf = (xTimes: number): number => {
    const lm = repeated({ xTimes, dropoutProb: 0.1 });
    const theta = Object.fromEntries(
      listVariables(lm).map(({ path, shape, dtype }) => [path, { shape, dtype }]),
    );
    const f = ({ theta, ids, prngKey }: { theta: Values; ids: Tensor; prngKey: Tensor }) =>
      valueAndGrad(
        (given: Values) => ({ value: run(given, () => sumsOf(lm.logits({ ids })), { prngKey }), aux: {} }),
        theta,
      ) as never;
    const key = { shape: [2], dtype: 'int32' };
    const { graph } = traceProgram(
      f as never,
      { theta, ids: { shape: [B, T], dtype: 'int32' }, prngKey: key } as never,
    );
    return optimize(graph).nodes.length;
  };
  expect(sizeOf(12)).toBe(sizeOf(3));
});

test('gradients compute again what the policy does not keep, as those of layers apart', () => {
  const costOf = (config: Config<StackedTransformer>) => {
    const stack = build(config);
    const theta = Object.fromEntries(
      listVariables(stack).map(({ path, shape, dtype }) => [path, { shape, dtype }]),
    );
    const step = (x: Tensor, theta: Values) =>
      valueAndGrad(
        (given: Values) => ({
          value: sumsOf(run(given, () => stack.fprop(x, { seen: { causal: true } }))),
          aux: {},
        }),
        theta,
      ) as never;
    const { byOp, peakMemory } = costAnalysis(step, { shape: [4, 32, 8], dtype: 'float32' }, theta);
    return { products: byOp.BatchMatMul!, attentions: byOp.Attention!.count, peakMemory };
  };
  const fields = { modelDims: 8, hiddenDims: 32, numHeads: 2 };
  const policies = [
    {},
    { remat: true, checkpointPolicy: 'SAVE_DOT_ONLY' },
    { remat: true, checkpointPolicy: 'SAVE_OUT_PROJ' },
    { remat: true },
  ] as const;
  const memory = policies.map((policy) => {
    const plain = costOf(StackedTransformer.config({ ...fields, ...policy, numLayers: 6 }));
    const one = costOf(StackedTransformerRepeated.config({ ...fields, ...policy, xTimes: 6 }));
    expect(one.products, JSON.stringify(policy)).toEqual(plain.products);
    expect(one.attentions).toBe(plain.attentions);
    return one.peakMemory;
  });
  expect(memory).toEqual([...memory].sort((a, b) => b - a));
  expect(memory[3]).toBeLessThan(0.5 * memory[0]!);
});

/** Results of a function of tensors by ONNX Runtime. */
async function compiled<R>(f: (given: never) => unknown, given: Record<string, Tensor>): Promise<R> {
  const args = Object.fromEntries(
    Object.entries(given).map(([name, x]) => [name, { shape: x.shape, dtype: x.dtype, data: x.dataSync() }]),
  );
  const executable = await compile(f as never, args as never, { engine: 'onnx', numThreads: 1 });
  const results = await repeatedly(executable, args as never);
  await executable.dispose();
  return results as R;
}

test('dropout draws other numbers in each repetition, the same ones when compiled', async () => {
  const repeat = build(Repeat.config({ subTpl: Dropout.config({ keepProb: 0.5 }), xTimes: 3 }));
  const f = ({ prngKey }: { prngKey: Tensor }) => ({
    y: run({}, () => repeat.fprop(tf.ones([4000])), { prngKey }),
  });
  const prngKey = ints([3, 4], [2]);
  const kept = f({ prngKey }).y.dataSync();
  expect(kept.filter((value) => value === 8).length / 4000).toBeCloseTo(1 / 8, 1);
  expect(kept.every((value) => value === 0 || value === 8)).toBe(true);
  const { y } = await compiled<{ y: HostTensor }>(f, { prngKey });
  expect(y.data).toEqual(kept);
});

/** A layer that keeps a running mean, adds a loss, and reports it. */
class Counting extends BaseLayer.with({ norm: sub(BatchNorm, () => BatchNorm.config({ dim: D })) }) {
  private norm!: BatchNorm;
  protected override setup(): void {
    this.norm = this.createChild('norm', this.hp.norm);
    this.createVariable('count', { shape: [], collections: [WeightCollection.NON_TRAINABLE] });
  }
  fprop(x: Tensor): Tensor {
    this.updateVar('count', tf.add(this.getVar('count'), 1));
    const y = tf.add(this.norm.fprop(x), this.getVar('count'));
    this.addAuxLoss('large', tf.mean(tf.square(y)), 0.5);
    this.addSummary('mean', () => tf.mean(y));
    this.addHistogramSummary('y', () => y);
    return this.tap('y', y);
  }
}

test('variables that a pass replaces, losses and summaries are those of layers in sequence', async () => {
  const repeat = build(Repeat.config({ subTpl: Counting.config(), xTimes: 3 }));
  const theta = randomTheta(repeat);
  const x = tensor([5, D], 4);
  const f = (given: Values) => {
    const { x, ...theta } = given;
    const [updatedVars, summaries, media, auxLosses]: [Values, Values, Values, any[]] = [{}, {}, {}, []];
    const seen = { updatedVars, summaries, media, auxLosses };
    const y = run(theta, () => repeat.fprop(repeat.fprop(x!)), seen);
    const losses = auxLosses.map(({ value, weight }) => tf.mul(value, weight));
    return { y, updatedVars, summaries, media, loss: tf.addN(losses) };
  };
  const layers = Array.from({ length: 3 }, () => build(Counting.config()));
  const thetas = layers.map((_, i) => {
    const own = Object.entries(apart(theta, 'sub', 'layer')).filter(([path]) =>
      path.startsWith(`layer_${i}`),
    );
    return Object.fromEntries(own.map(([path, value]) => [path.slice('layer_0/'.length), value]));
  });
  const replaced: Values[] = layers.map(() => ({}));
  const [auxLosses, means]: [any[], Tensor[]] = [[], []];
  let y = x;
  for (const _ of [1, 2])
    layers.forEach((layer, i) => {
      y = run(thetas[i]!, () => layer.fprop(y), { updatedVars: replaced[i]!, auxLosses });
      means.push(tf.mean(y));
    });
  const eager = f({ ...theta, x });
  const made = await compiled<any>(f, { ...theta, x });
  for (const result of [eager.y, eager.loss]) expect(result).toBeInstanceOf(tf.Tensor);
  expectClose(y, made.y.data);
  expectClose(eager.y, made.y.data);
  const loss = tf.mul(tf.addN(auxLosses.map(({ value }) => value)), 0.5);
  expectClose(loss, made.loss.data);
  expect(Object.keys(made.updatedVars).sort()).toEqual(
    ['sub/count', 'sub/norm/moving_mean', 'sub/norm/moving_variance'].sort(),
  );
  for (const [path, { data }] of Object.entries<HostTensor>(made.updatedVars))
    expectClose(tf.stack(replaced.map((values) => values[path.slice('sub/'.length)]!)), data);
  const names = (name: string) => [0, 1, 2].map((i) => `sub_${i}/${name}`);
  expect(Object.keys(made.summaries)).toEqual(expect.arrayContaining(names('mean_scalar')));
  expect(Object.keys(made.media)).toEqual(expect.arrayContaining(names('y_histogram')));
  expectClose(y, made.media['sub_2/y_histogram'].data);
});

test('taps read every repetition', () => {
  const repeat = build(Repeat.config({ subTpl: Counting.config(), xTimes: 3 }));
  const taps = new Taps((name) => name.startsWith('sub/y'), true);
  const x = tensor([5, D], 4);
  const theta = randomTheta(repeat);
  const { aux: y } = valueAndGrad(
    (given: { x: Tensor }) => {
      const aux = run(theta, () => repeat.fprop(given.x), { taps });
      return { value: sumsOf(aux), aux };
    },
    { x },
  );
  const outputs = taps.outputs();
  expect(Object.keys(outputs)).toEqual(['sub/y', 'sub/y#2', 'sub/y#3']);
  expectClose(outputs['sub/y#3']!.activation.values!, y.dataSync());
});

test('a repeated layer may repeat layers', async () => {
  const inner = Repeat.config({ subTpl: square(), xTimes: 2 });
  const repeat = build(Repeat.config({ subTpl: inner, xTimes: 3 }));
  const theta = randomTheta(repeat);
  expect(theta['sub/sub/linear/w']!.shape).toEqual([3, 2, D, D]);
  const layer = build(square());
  const each = Object.values(theta).map((value) => tf.reshape(value, [6, ...value.shape.slice(2)]));
  const x = tensor([2, D], 3);
  let expected = x;
  for (let i = 0; i < 6; i++) {
    const [w, b] = each.map((value) => tf.unstack(value)[i]!);
    expected = run({ 'linear/w': w!, 'bias/b': b! }, () => layer.fprop(expected));
  }
  const { y } = await compiled<{ y: HostTensor }>(
    ({ x, ...theta }: Values) => ({ y: run(theta, () => repeat.fprop(x!)) }),
    { x, ...theta },
  );
  expectClose(expected, y.data);
});

/** A layer of which a part is shared by all repetitions. */
class Sharing extends BaseLayer.with({ part: sub(FeedForward), dims: z.int().default(D) }) {
  private part!: FeedForward;
  private norm!: LayerNorm;
  protected override setup(): void {
    this.part = this.createChild('part', this.hp.part);
    this.norm = this.createChild('norm', LayerNorm.config({ dim: this.hp.dims }));
  }
  fprop(x: Tensor): Tensor {
    return this.norm.fprop(this.part.fprop(x));
  }
}

test('a layer shared by id is one layer for all repetitions, whose gradients add', async () => {
  const part = square({ sharedWeightLayerId: 'common' });
  const repeat = build(Repeat.config({ subTpl: Sharing.config({ part }), xTimes: 3 }));
  const theta = randomTheta(repeat);
  const shapes = Object.fromEntries(Object.entries(theta).map(([path, { shape }]) => [path, shape]));
  expect(shapes).toMatchObject({ 'common/cld/linear/w': [D, D], 'sub/norm/scale': [3, D] });
  const f = ({ x, ...theta }: Values) =>
    valueAndGrad(
      (given: Values) => ({ value: sumsOf(run(given, () => repeat.fprop(x!))), aux: {} }),
      theta,
    ) as never;
  const x = tensor([2, D], 3);
  const made = await compiled<{ grads: Record<string, HostTensor> }>(f, { x, ...theta });
  const eager = f({ x, ...theta }) as { grads: Values };
  for (const [path, gradient] of Object.entries(eager.grads))
    expectClose(gradient, made.grads[path]!.data, 1e-4);
});

test('learners update each repetition as a variable of its own', () => {
  const repeat = build(Repeat.config({ subTpl: square(), xTimes: 3 }));
  const learner = build(
    Learner.config({
      optimizer: Sgd.config({ learningRate: 1, skipLp1dVectors: true, l2RegularizerWeight: 0.1 }),
    }),
  );
  const layout = learner.layout(listVariables(repeat));
  expect(layout.entries.map(({ group }) => group)).toEqual(['decay', 'noDecay']);
  const most = 1;
  const flat = tensor([layout.size], 5);
  const groups = VariableGroup.listOf(layout, () => false).map((variables) => {
    const { offset, size } = variables.place;
    return { variables, grad: () => tf.slice(flat, [offset], [size]) };
  });
  const clipped = tf.concat(
    clipBySingleNorm(most)({ groups, norm: tf.scalar(0) }).groups.map(({ grad }) => grad()),
  );
  expect(clipped.size).toBe(layout.size);
  for (const { offset, size } of layout.entries)
    for (let i = 0; i < 3; i++) {
      const [before, after] = [flat, clipped].map((all) =>
        tf.slice(all, [offset + (i * size) / 3], [size / 3]),
      );
      const norm = tf.norm(before!).dataSync()[0]!;
      expectClose(after!, tf.mul(before!, Math.min(1, most / norm)).dataSync());
    }
});

test('what cannot be is told', () => {
  const repeat = build(Repeat.config({ subTpl: square(), xTimes: 3 }));
  const theta = initialTheta(repeat);
  const x = tensor([2, D]);
  const layer = [...repeat.children.values()][0] as FeedForward;
  expect(() => run(theta, () => layer.fprop(x))).toThrow(
    `theta has shape [3, ${D}, ${D}] for 'sub/linear/w', declared as [${D}, ${D}]. A layer above repeats it, and stacks its variables: it works within that layer alone.`,
  );
  expect(() => run({ ...theta, 'sub/bias/b': tensor([D]) }, () => repeat.fprop(x))).toThrow(
    `model (Repeat): the context has shape [${D}] for 'sub/bias/b', declared as [3, ${D}], of which the first axis is of repetitions.`,
  );
  expect(() => run(theta, () => repeat.extendStep(x))).toThrow(
    'model (Repeat): repeats a FeedForward, which has no extendStep.',
  );
  const norm = BatchNorm.config({ dim: D, sharedWeightLayerId: 'common' });
  const counting = build(Repeat.config({ subTpl: Counting.config({ norm }), xTimes: 3 }));
  expect(() => run(randomTheta(counting), () => counting.fprop(x))).toThrow(
    "model (Repeat): a repetition replaces 'common/cld/moving_mean', which it shares with layers outside",
  );
  const block = StackedTransformer.config({ numHeads: 4 });
  expect(() => repeated({ block })).toThrow(
    'block sets numHeads, which is a field of this layer: set it here.',
  );
  const narrow = build(Repeat.config({ subTpl: Linear.config({ inputDims: D, outputDims: 3 }), xTimes: 2 }));
  expect(() =>
    evalShape((x: Tensor) => run(initialTheta(narrow), () => narrow.fprop(x)), x as never),
  ).toThrow('carry');
});
