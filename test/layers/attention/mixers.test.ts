/** @file Blocks with another mixer, and with attention to a memory: whole, token by token, in stacks of every kind. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  BaseMixer,
  decodeStateSpecs,
  GELU,
  listVariables,
  type MixerArgs,
  StackedTransformer,
  StackedTransformerRepeated,
  type StepArgs,
  type Theta,
  Transformer,
} from '../../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [B, T, D, M] = [2, 5, 4, 3];
type Values = Record<string, Tensor>;

/** Exponential means: y[t] = a y[t - 1] + (1 - a) x[t], with a decay for each feature. */
class ExponentialMean extends BaseMixer {
  declare readonly theta: Theta<'decay'>;

  protected override setup(): void {
    this.createVariable('decay', { shape: [this.hp.inputDim] });
  }

  override decodeStateSpecs(batchSize: number) {
    return { mean: { shape: [batchSize, this.hp.inputDim], dtype: 'float32' as const } };
  }

  fprop(inputs: Tensor, { seen = {} }: MixerArgs = {}): Tensor {
    if (!seen.causal) throw this.error('sees earlier positions alone.');
    return this.#means(inputs, tf.zeros([inputs.shape[0]!, this.hp.inputDim]))[0];
  }

  extendStep(inputs: Tensor, { length }: StepArgs): Tensor {
    const [means, last] = this.#means(inputs, this.getDecodeState('mean'), length);
    this.updateDecodeState('mean', last);
    return means;
  }

  #means(inputs: Tensor, first: Tensor, length?: Tensor): [Tensor, Tensor] {
    const decay = tf.sigmoid(this.theta.decay);
    let last = first;
    const means = tf.unstack(inputs, 1).map((x, t) => {
      const next = tf.add(tf.mul(decay, last), tf.mul(tf.sub(1, decay), x)) as Tensor;
      const isPresent = length && tf.reshape(tf.less(tf.scalar(t, 'int32'), length), [-1, 1]);
      last = isPresent ? tf.where(isPresent, next, last) : next;
      return last;
    });
    return [tf.stack(means, 1) as Tensor, last];
  }
}

const emptyState = (layer: Parameters<typeof decodeStateSpecs>[0], memoryLen = 0): Values =>
  stateOf(decodeStateSpecs(layer, B, T, memoryLen));

test('a block whose positions see each other by a recurrence', () => {
  const mixerTpl = ExponentialMean.config();
  const layer = build(Transformer.config({ inputDims: D, hiddenDims: 6, mixerTpl }));
  expect(listVariables(layer).map(({ path }) => path)).toContain('mixer/decay');
  expect([...layer.children.keys()]).not.toContain('self_attention');
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  const decodeState = emptyState(layer);
  expect(Object.keys(decodeState)).toEqual(['mixer/mean']);
  // A block of a prompt that is filled up, then token by token.
  const prompt = tf.concat([tf.slice(x, [0, 0, 0], [B, 2, D]), tensor([B, 2, D], 77)], 1) as Tensor;
  run(theta, () => layer.extendStep(prompt, { timeStep: tf.scalar(0, 'int32'), length: ints([2, 2], [B]) }), {
    decodeState,
  });
  for (let t = 2; t < T; t++) {
    const token = tf.slice(x, [0, t, 0], [B, 1, D]);
    const out = run(theta, () => layer.extendStep(token, { timeStep: tf.scalar(t, 'int32') }), {
      decodeState,
    });
    expectClose(out, tf.slice(whole, [0, t, 0], [B, 1, D]).dataSync());
  }
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 2 });
});

const fields = { numLayers: 2, modelDims: D, hiddenDims: 6, numHeads: 2 };
const crossing = Transformer.config({ useCrossAttention: true });
// Smooth, for finite differences.
crossing.trFflayerTpl.activationTpl = GELU.config();
const stacks = {
  plain: StackedTransformer.config({ ...fields, transformerLayerParamsTpl: crossing }),
  remat: StackedTransformer.config({ ...fields, remat: true, transformerLayerParamsTpl: crossing }),
  repeated: StackedTransformerRepeated.config({
    ...{ ...fields, numLayers: 1, xTimes: 2, unrollInDecode: false },
    transformerLayerParamsTpl: crossing,
  }),
  'repeated, apart': StackedTransformerRepeated.config({
    ...{ ...fields, numLayers: 1, xTimes: 2 },
    transformerLayerParamsTpl: crossing,
  }),
  'norms after': StackedTransformer.config({
    ...fields,
    transformerLayerParamsTpl: Transformer.config({ useCrossAttention: true, normPolicy: 'primer_hybrid' }),
  }),
};

test.each(Object.entries(stacks))('attention to a memory, in stacks: %s', (name, config) => {
  const stack = build(config);
  const theta = randomTheta(stack);
  const [x, states] = [tensor([B, T, D]), tensor([B, M, D], 5)];
  const seen = { paddings: tf.tensor2d([0, 0, 1, 0, 0, 0], [B, M]) };
  const args = { seen: { causal: true }, memory: { states, seen } };
  const whole = run(theta, () => stack.fprop(x, args));
  const decodeState = emptyState(stack, M);
  const context = { decodeState };
  run(theta, () => stack.begin(states), context);
  for (let t = 0; t < T; t++) {
    const token = tf.slice(x, [0, t, 0], [B, 1, D]);
    const step = { timeStep: tf.scalar(t, 'int32'), memorySeen: seen };
    const out = run(theta, () => stack.extendStep(token, step), context);
    expectClose(out, tf.slice(whole, [0, t, 0], [B, 1, D]).dataSync());
  }
  // The padded state changes nothing; the others have gradients.
  const changed = tf.add(states, tf.mul(tf.reshape(seen.paddings, [B, M, 1]), 100)) as Tensor;
  expectClose(
    run(theta, () => stack.fprop(x, { ...args, memory: { states: changed, seen } })),
    whole.dataSync(),
  );
  // The others have no gradients of their own.
  if (name === 'remat' || name === 'repeated')
    checkGradients(
      stack,
      [x, states],
      (input, memory) => stack.fprop(input!, { ...args, memory: { states: memory!, seen } }),
      { probes: 1 },
    );
  if (name !== 'plain') return;
  expect(listVariables(stack).map(({ path }) => path)).toContain('x_layers_0/cross_layer_norm/scale');
  expect(() => run(theta, () => stack.fprop(x))).toThrow(
    'x_layers_0 (Transformer): useCrossAttention is set, and there is no memory.',
  );
});
