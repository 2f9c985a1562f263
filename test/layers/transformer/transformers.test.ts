/** @file TransformerFeedForward, Transformer and StackedTransformer: composition, norm policies, dropout, sharing. */
import { expect, test } from 'vitest';
import { compile, costAnalysis, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import { CHECKPOINT_POLICIES } from '../../../src/layers/checkpointPolicy.js';
import {
  GELU,
  initVariables,
  LayerNorm,
  listVariables,
  RmsNorm,
  StackedTransformer,
  Tanh,
  Transformer,
  TransformerFeedForward,
} from '../../../src/layers/index.js';
import { longTest } from '../../longTest.js';
import { checkGradients, expectClose, ints, randomTheta, run, tensor } from '../helpers.js';
import { layerNorm, type Matrix, matrix, multiply } from '../plain.js';

const [D, F] = [4, 6];
type Values = Record<string, Tensor>;

const feedForward = (values: Partial<Config<TransformerFeedForward>> = {}) =>
  TransformerFeedForward.config({ inputDims: D, hiddenDims: F, activationTpl: Tanh.config(), ...values });

/** x w + b of the named FeedForward. */
function affine(theta: Values, name: string, x: Matrix): Matrix {
  const b = theta[`${name}/bias/b`]?.dataSync();
  const w = theta[`${name}/linear/w`]!;
  return multiply(x, matrix(w.dataSync(), w.shape[1]!)).map((row) => row.map((v, i) => v + (b ? b[i]! : 0)));
}

function norm(theta: Values, name: string, x: Matrix): Matrix {
  const scale = theta[`${name}/scale`]!.dataSync().map((value) => value + 1);
  return layerNorm(x, scale, theta[`${name}/bias`]!.dataSync(), 1e-6);
}

const map = (x: Matrix, f: (value: number, i: number, j: number) => number): Matrix =>
  x.map((row, i) => row.map((value, j) => f(value, i, j)));

const branch = (theta: Values, x: Matrix): Matrix =>
  affine(theta, 'ffn_layer2', map(affine(theta, 'ffn_layer1', x), Math.tanh));

const policies: Record<string, (theta: Values, x: Matrix) => Matrix> = {
  pre: (theta, x) => map(branch(theta, norm(theta, 'layer_norm', x)), (v, i, j) => v + x[i]![j]!),
  post: (theta, x) => map(norm(theta, 'layer_norm', branch(theta, x)), (v, i, j) => v + x[i]![j]!),
  primer_hybrid: (theta, x) => {
    const inner = branch(theta, norm(theta, 'pre_layer_norm', x));
    return map(norm(theta, 'post_layer_norm', inner), (v, i, j) => v + x[i]![j]!);
  },
  post_skip: (theta, x) =>
    norm(
      theta,
      'layer_norm',
      map(branch(theta, x), (v, i, j) => v + x[i]![j]!),
    ),
};

test.each(['pre', 'post', 'primer_hybrid', 'post_skip'] as const)('norm policy %s', (normPolicy) => {
  const layer = build(feedForward({ normPolicy }));
  const theta = randomTheta(layer);
  const x = tensor([2, 3, D]);
  const outputs = run(theta, () => layer.fprop(x));
  expect(outputs.shape).toEqual([2, 3, D]);
  expectClose(outputs, policies[normPolicy]!(theta, matrix(x.dataSync(), D)).flat());
  checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 4 });
});

test('a gate multiplies the first layer, which then has no activation', () => {
  const layer = build(feedForward({ useGatedActivation: true }));
  const theta = randomTheta(layer);
  const x = tensor([3, D]);
  const rows = matrix(x.dataSync(), D);
  const normalized = norm(theta, 'layer_norm', rows);
  const linear = affine(theta, 'ffn_layer1', normalized);
  const gated = map(affine(theta, 'ffn_layer1_gate', normalized), (v, i, j) => Math.tanh(v) * linear[i]![j]!);
  expectClose(
    run(theta, () => layer.fprop(x)),
    map(affine(theta, 'ffn_layer2', gated), (v, i, j) => v + rows[i]![j]!).flat(),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 4 });
});

test('padding counts as 0, and so does its update; skip connection and residual weight', () => {
  const x = tensor([2, 2, D]);
  const paddings = tf.tensor2d([0, 1, 0, 0], [2, 2]);
  const layer = build(feedForward({ residualWeight: 0.5 }));
  const theta = randomTheta(layer);
  const rows = matrix(x.dataSync(), D);
  const update = branch(theta, norm(theta, 'layer_norm', rows));
  const expected = map(rows, (v, i, j) => (i === 1 ? 0 : v + 0.5 * update[i]![j]!));
  expectClose(
    run(theta, () => layer.fprop(x, paddings)),
    expected.flat(),
  );
  const bare = build(feedForward({ addSkipConnection: false }));
  expectClose(
    run(theta, () => bare.fprop(x)),
    update.flat(),
  );
});

test('dropout acts in training only', () => {
  const layer = build(feedForward({ residualDropoutProb: 0.5, reluDropoutProb: 0.5 }));
  const theta = randomTheta(layer);
  const x = tensor([4, D]);
  const plain = run(theta, () => build(feedForward()).fprop(x)).dataSync();
  const prngKey = ints([1, 2], [2]);
  expectClose(
    run(theta, () => layer.fprop(x), { prngKey, doEval: true }),
    plain,
  );
  const dropped = run(theta, () => layer.fprop(x), { prngKey }).dataSync();
  const kept = dropped.filter((value, i) => value !== x.dataSync()[i]);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.length).toBeLessThan(dropped.length);
  checkGradients(layer, [x], (input) => layer.fprop(input!), { prngKey, probes: 4 });
});

const transformer = (values: Partial<Config<Transformer>> = {}) => {
  const config = Transformer.config({ inputDims: D, hiddenDims: F, numHeads: 2, ...values });
  config.trFflayerTpl.activationTpl = GELU.config();
  return config;
};

test('a transformer layer is attention and feed-forward, each with its residual connection', () => {
  const layer = build(transformer());
  const theta = randomTheta(layer);
  const x = tensor([2, 3, D]);
  const part = (name: string) => layer.children.get(name)! as never as { fprop(...args: unknown[]): Tensor };
  const outputs = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  const expected = run(theta, () => {
    const normed = part('layer_norm').fprop(x);
    const attended = part('self_attention').fprop(normed, { seen: { causal: true } });
    return part('ff_layer').fprop(tf.add(x, attended));
  });
  expectClose(outputs, expected.dataSync());
});

test.each(['pre', 'primer_hybrid', 'post', 'post_skip'] as const)(
  'gradients and decoding, norm policy %s',
  (normPolicy) => {
    const layer = build(transformer({ normPolicy }));
    const theta = randomTheta(layer);
    const x = tensor([2, 3, D]);
    checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 2 });
    const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
    const state = () => tf.zeros([2, 2, 3, 2]);
    const decodeState = {
      'self_attention/kv_cache/key_state': state(),
      'self_attention/kv_cache/value_state': state(),
    };
    for (let t = 0; t < 3; t++) {
      const token = tf.slice(x, [0, t, 0], [2, 1, D]);
      const out = run(theta, () => layer.extendStep(token, { timeStep: tf.scalar(t, 'int32') }), {
        decodeState,
      });
      expectClose(out, tf.slice(whole, [0, t, 0], [2, 1, D]).dataSync());
    }
  },
);

test('a stack has layers of its own weights, even where templates set every field', () => {
  const config = StackedTransformer.config({
    numLayers: 2,
    modelDims: D,
    hiddenDims: D,
    numHeads: 2,
    dimPerHead: 2,
  });
  const layer = config.transformerLayerParamsTpl;
  // Nothing is left for the stack to change: a template that were used as it is would be one layer twice.
  layer.lnTpl = LayerNorm.config({ dim: D });
  layer.trFflayerTpl.lnTpl = RmsNorm.config({ dim: D });
  layer.trFflayerTpl.fflayerTpl.linearTpl.inputDims = D;
  layer.trFflayerTpl.fflayerTpl.linearTpl.outputDims = D;
  const names = listVariables(build(config)).map((variable) => variable.path);
  const ofLayer = (i: number) =>
    names.filter((name) => name.startsWith(`x_layers_${i}/`)).map((name) => name.slice(11));
  expect(ofLayer(0)).toEqual(ofLayer(1));
  expect(ofLayer(0)).toContain('ff_layer/ffn_layer1/linear/w');
  expect(ofLayer(0)).toContain('ff_layer/ffn_layer2/linear/w');
  expect(names.length).toBe(2 * ofLayer(0).length);
});

test('a stack runs its layers in order', () => {
  const config = StackedTransformer.config({ numLayers: 2, modelDims: D, hiddenDims: F, numHeads: 2 });
  const stack = build(config);
  const theta = randomTheta(stack);
  const x = tensor([1, 3, D]);
  const layers = [...stack.children]
    .filter(([name]) => name.startsWith('x_layers'))
    .map(([, layer]) => layer as Transformer);
  const expected = run(theta, () =>
    layers[1]!.fprop(layers[0]!.fprop(x, { seen: { causal: true } }), { seen: { causal: true } }),
  );
  expectClose(
    run(theta, () => stack.fprop(x, { seen: { causal: true } })),
    expected.dataSync(),
  );
});

/** A loss of a stack of four layers with its gradients, and their inputs. */
function stackStep(values: Partial<Config<StackedTransformer>>) {
  const stack = build(
    StackedTransformer.config({
      ...{ numLayers: 4, modelDims: 8, hiddenDims: 32, numHeads: 2 },
      ...values,
    }),
  );
  const theta = Object.fromEntries(
    listVariables(stack).map(({ path, shape, dtype }) => [path, { shape, dtype }]),
  );
  const loss = (x: Tensor) => (theta: Record<string, Tensor>) => ({
    value: tf.sum(tf.sin(run(theta, () => stack.fprop(x, { seen: { causal: true } })))) as Tensor,
    aux: {},
  });
  const x = { shape: [4, 32, 8], dtype: 'float32' } as const;
  const f = (x: Tensor, theta: Record<string, Tensor>) => valueAndGrad(loss(x), theta) as never;
  return { stack, f, specs: [x, theta] as const };
}

longTest('remat takes less memory for the same gradients; policies keep more', () => {
  const peakOf = (values: object): number => {
    const { f, specs } = stackStep(values as never);
    return costAnalysis(f, ...specs).peakMemory;
  };
  const none = peakOf({});
  const policies = Object.keys(CHECKPOINT_POLICIES) as (keyof typeof CHECKPOINT_POLICIES)[];
  const peaks = Object.fromEntries(
    policies.map((checkpointPolicy) => [checkpointPolicy, peakOf({ remat: true, checkpointPolicy })]),
  ) as Record<keyof typeof CHECKPOINT_POLICIES, number>;
  const {
    SAVE_NOTHING,
    SAVE_EVERYTHING,
    SAVE_QKV_OUT_PROJ,
    SAVE_ITERATION_INPUT,
    SAVE_UNET_CONV,
    SAVE_UNET_ALL_CONV,
    ...more
  } = peaks;
  expect(SAVE_NOTHING).toBeLessThan(0.6 * none);
  expect(SAVE_EVERYTHING).toBe(none);
  // A stack keeps the inputs of its layers anyway, and has no convolutions.
  expect([SAVE_ITERATION_INPUT, SAVE_UNET_CONV, SAVE_UNET_ALL_CONV]).toEqual(Array(3).fill(SAVE_NOTHING));
  for (const [policy, peak] of Object.entries(more)) {
    expect(peak, policy).toBeGreaterThanOrEqual(SAVE_NOTHING);
    expect(peak, policy).toBeLessThan(none);
  }
  // No gradient of a layer with norms in front reads its output, so nothing keeps it.
  expect(more.SAVE_DOT_EXCEPT_LOGITS_FFN1).toBe(more.SAVE_DOT_FOR_MLPERF_200B);
  expect(more.SAVE_TRANSFORMER_LAYER_OUTPUT).toBe(SAVE_NOTHING);
  expect(more.SAVE_DOT_EXCEPT_LOGITS).toBeGreaterThan(more.SAVE_DOT_EXCEPT_LOGITS_FFN1);
  // Its projections are separate.
  expect(SAVE_QKV_OUT_PROJ).toBe(more.SAVE_OUT_PROJ);
});

test('with remat, a stack is trained to the same bits', async () => {
  const trained = async (remat: boolean) => {
    const { stack, f, specs } = stackStep({ remat });
    const of = ({ x, theta }: any) => f(x, theta);
    const program = await compile(of, { x: specs[0], theta: specs[1] }, { engine: 'onnx' });
    const theta = Object.fromEntries(
      [...initVariables(stack, 7)].map(([path, data]) => [path, { ...specs[1][path]!, data }]),
    );
    const x = { ...specs[0], data: Float32Array.from({ length: 1024 }, (_, i) => Math.sin(i * i)) };
    const losses: number[] = [];
    for (let step = 0; step < 4; step++) {
      const { value, grads } = (await program.run({ x, theta } as never)) as any;
      losses.push(value.data[0]);
      for (const [path, { data }] of Object.entries(theta))
        for (let i = 0; i < data.length; i++) data[i]! -= 0.01 * grads[path].data[i];
    }
    await program.dispose();
    return { losses, theta };
  };
  const [kept, again] = [await trained(false), await trained(true)];
  expect(again).toEqual(kept);
  expect(kept.losses[3]).toBeLessThan(kept.losses[0]! - 1);
});
