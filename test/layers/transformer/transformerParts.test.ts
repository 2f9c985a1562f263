/** @file Variants of transformers as subclasses that override one part, whole and token by token. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type Attends,
  type BaseLayer,
  decodeStateSpecs,
  GELU,
  listVariables,
  RmsNorm,
  StackedTransformer,
  Transformer,
  TransformerFeedForward,
  TransformerLm,
} from '../../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [B, T, D, F] = [2, 3, 4, 6];
type Values = Record<string, Tensor>;

const cacheOf = (layer: BaseLayer): Values => stateOf(decodeStateSpecs(layer, B, T));

/** Top-1 of two halves of the hidden units, by their sums. */
class HalvedFeedForward extends TransformerFeedForward {
  protected override hidden(x: Tensor): Tensor {
    const [left, right] = tf.split(super.hidden(x), 2, -1);
    const isLeft = tf.greater(tf.sum(left!, -1, true), tf.sum(right!, -1, true));
    const mask = tf.cast(isLeft, 'float32');
    return tf.concat([tf.mul(left!, mask), tf.mul(right!, tf.sub(1, mask))], -1);
  }
}

test('the hidden units of a feed-forward layer', () => {
  const dims = { inputDims: D, hiddenDims: F, hasBias: false, activationTpl: GELU.config() };
  const layer = build(HalvedFeedForward.config(dims));
  const plain = build(TransformerFeedForward.config(dims));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const half = (at: number): Values => {
    const [first, second] = [theta['ffn_layer1/linear/w']!, theta['ffn_layer2/linear/w']!];
    const kept = tf.cast(tf.equal(tf.floorDiv(tf.range(0, F), F / 2), at), 'float32');
    return {
      ...theta,
      'ffn_layer1/linear/w': tf.mul(first, kept),
      'ffn_layer2/linear/w': tf.mul(second, tf.expandDims(kept, 1)),
    };
  };
  const halves = [0, 1].map((at) => run(half(at), () => plain.fprop(x)));
  const outputs = run(theta, () => layer.fprop(x)).dataSync();
  // Each row is that of one half.
  for (let row = 0; row < B * T; row++) {
    const distances = halves.map((other) =>
      Math.max(
        ...other
          .dataSync()
          .slice(row * D, (row + 1) * D)
          .map((v, i) => Math.abs(v - outputs[row * D + i]!)),
      ),
    );
    expect(Math.min(...distances)).toBeLessThan(1e-5);
  }
  checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 3 });
});

/** Attention and feed-forward of the same input, side by side (GPT-J; PaLM, Chowdhery et al., 2022, section 2). */
class ParallelTransformer extends Transformer {
  protected override subLayers(inputs: Tensor, { self, paddings }: Attends): Tensor {
    const attended = this.residual(inputs, self);
    return tf.add(attended, tf.sub(this.feedForward.fprop(inputs, paddings), inputs));
  }
}

test('the order of the sub-layers of a block, whole and token by token', () => {
  const config = ParallelTransformer.config({ inputDims: D, hiddenDims: F, numHeads: 2 });
  config.trFflayerTpl.activationTpl = GELU.config();
  const layer = build(config);
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const part = (name: string) => layer.children.get(name)! as never as { fprop(...args: unknown[]): Tensor };
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  const expected = run(theta, () => {
    const normed = part('layer_norm').fprop(x);
    const attended = part('self_attention').fprop(normed, { seen: { causal: true } });
    return tf.add(attended, part('ff_layer').fprop(x));
  });
  expectClose(whole, expected.dataSync());
  const decodeState = cacheOf(layer);
  for (let t = 0; t < T; t++) {
    const token = tf.slice(x, [0, t, 0], [B, 1, D]);
    const out = run(theta, () => layer.extendStep(token, { timeStep: tf.scalar(t, 'int32') }), {
      decodeState,
    });
    expectClose(out, tf.slice(whole, [0, t, 0], [B, 1, D]).dataSync());
  }
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 2 });
});

/** Every other block has root mean square norms. */
class AlternatingTransformer extends StackedTransformer {
  protected override layerTpl(index: number): Config<Transformer> {
    const template = super.layerTpl(index);
    return index % 2 === 0 ? template : Transformer.config({ lnTpl: RmsNorm.config() });
  }
}

test('the layers of a stack', () => {
  const stack = build(
    AlternatingTransformer.config({ numLayers: 3, modelDims: D, hiddenDims: F, numHeads: 2 }),
  );
  const norms = listVariables(stack).filter(({ path }) => /^x_layers_\d\/layer_norm/.test(path));
  expect(norms.map(({ path }) => path)).toEqual([
    'x_layers_0/layer_norm/scale',
    'x_layers_0/layer_norm/bias',
    'x_layers_1/layer_norm/scale',
    'x_layers_2/layer_norm/scale',
    'x_layers_2/layer_norm/bias',
  ]);
});

/** Embeddings times the root of their depth (Vaswani et al., 2017, section 3.4). */
class ScaledEmbeddingLm extends TransformerLm {
  protected override embed(...args: Parameters<TransformerLm['embed']>): Tensor {
    return tf.mul(super.embed(...args), this.hp.modelDims ** 0.5);
  }
}

test('what enters the stack of a language model, whole and token by token', () => {
  const config = ScaledEmbeddingLm.config({ vocabSize: 5, modelDims: D, positionEmbTpl: null });
  Object.assign(config.stackedTransformerTpl, { numLayers: 1, hiddenDims: F, numHeads: 2 });
  const layer = build(config);
  const plain = build(
    TransformerLm.config({
      vocabSize: 5,
      modelDims: D,
      positionEmbTpl: null,
      stackedTransformerTpl: config.stackedTransformerTpl,
    }),
  );
  const theta = randomTheta(layer);
  const ids = ints([1, 4, 2, 0, 3, 3], [B, T]);
  const logits = run(theta, () => layer.logits({ ids }));
  // A table of twice the size gives the same inputs; its logits are divided again.
  const table = Object.keys(theta).find((path) => path.startsWith('softmax/') && path.endsWith('/w'))!;
  const doubled = { ...theta, [table]: tf.mul(theta[table]!, 2) as Tensor };
  const activations = run(doubled, () => plain.activations({ ids }));
  expectClose(
    run(theta, () => layer.activations({ ids })),
    activations.dataSync(),
  );
  const decodeState = cacheOf(layer);
  for (let t = 0; t < T; t++) {
    const token = tf.reshape(tf.slice(ids, [0, t], [B, 1]), [B]);
    const out = run(theta, () => layer.extendStep(token, { timeStep: tf.scalar(t, 'int32') }), {
      decodeState,
      doEval: true,
    });
    expectClose(out, tf.reshape(tf.slice(logits, [0, t, 0], [B, 1, 5]), [B, 5]).dataSync());
  }
});
