/**
 * @file Every layer of the guide's pages on no examples and on some, eagerly, in training and in evaluation: results and gradients
 * of the shapes that they have for more, and finite.
 */
import { describe, expect, test } from 'vitest';
import { answerForEmpties } from '../../src/compiler/eager/empties.js';
import { isTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { type BaseLayer, listVariables, type Variable } from '../../src/layers/index.js';
import { allSections, layerOf } from '../docs/layerSections.js';
import { initialTheta, ints, isState, run, tensor } from './helpers.js';

// As the eager engine does: kernels of tfjs fail for tensors without elements.
answerForEmpties('cpu');

/** Makes an input of so many examples. */
type Make = (rows: number) => unknown;
const floats =
  (...shape: number[]): Make =>
  (rows) =>
    tensor([rows, ...shape]);
const zeros =
  (...shape: number[]): Make =>
  (rows) =>
    tf.zeros([rows, ...shape]);
const ones =
  (...shape: number[]): Make =>
  (rows) =>
    tf.ones([rows, ...shape]);
const ids =
  (...shape: number[]): Make =>
  (rows) =>
    tf.zeros([rows, ...shape], 'int32');
const record =
  (fields: Readonly<Record<string, Make>>): Make =>
  (rows) =>
    Object.fromEntries(Object.entries(fields).map(([name, make]) => [name, make(rows)]));
const none: Make = () => undefined;
const labels = record({ classIds: ids(5), classWeights: ones(5) });
const causal: Make = () => ({ seen: { causal: true } });

const each = (names: string, ...inputs: Make[]): [string, Make[]][] =>
  names.split(' ').map((name) => [name, inputs]);

/** Arguments of `fprop` by the layer's name. */
const argumentsOf = new Map<string, readonly Make[]>([
  ...each('LoraLinear Linear FeedForward MLPBlock WeightNormLinear AttentionProjection', floats(4)),
  ...each(
    'CombinedQKVProjectionLayer OneHeadedAttentionProjection Sequential AddResidual FullLike',
    floats(4),
  ),
  ...each('LoraAttentionProjection LoraCombinedQKVProjectionLayer Einsum', floats(8)),
  ...each('ReLU ReLU6 SquaredReLU CubedReLU SineReLU LeakyReLU ELU Sigmoid Tanh GELU SiLU Swish', floats(4)),
  ...each('QuickGELU ClampedSwish ClampedLinear', floats(4)),
  ...each('Softplus Exp Identity LayerNorm RmsNorm RmsNormNoScale BatchNorm IdentityNorm Dropout', floats(4)),
  ...each('PerDimScale Bias', floats(3)),
  ...each('GroupNorm Repeat StackingOverTime Pooling1D', floats(3, 4)),
  ...each('StochasticResidual', floats(4), floats(4)),
  ...each('Chain ApplyPadding', floats(3, 4), zeros(3)),
  ...each('DictToArgs', record({ ids: ids(3), paddings: zeros(3) })),
  ...each('DotProductAttention GroupedQueryAttention MultiQueryDotProductAttention', floats(5, 4), causal),
  ...each('DotProductAttentionXL LatentAttention LocalSelfAttention', floats(5, 4), causal),
  ...each('LocalSelfAttentionXL LocalSelfAttentionAlibi', floats(5, 4), causal),
  ...each('DotProductAttentionWithContext DotProductAttentionWithContextXL', floats(5, 4)),
  ...each('LocalSelfAttentionRelativeBias SelfAttentionWithNormAndResidual Conformer', floats(5, 4)),
  ...each('CausalDepthwiseConv1D', floats(5, 2, 3)),
  ...each('RotaryPositionalEmbedding', floats(5, 2, 8)),
  ...each('FRnn StackFrnn GatedDeltaNet Mamba Mamba2 GriffinRecurrentBlock SSM S5', floats(5, 4), causal),
  ...each('LstmFrnn MultiScaleRetention', floats(5, 8), causal),
  ...each('StackBiFrnn SpectrumAugmenter TransformerFeedForward TokenTypeEmbedding', floats(5, 4)),
  ...each('Transformer ParallelTransformer SSMGated StackedTransformer', floats(5, 4), causal),
  ...each('StackedTransformerRepeated PipelinedTransformer', floats(5, 4), causal),
  ...each('LayerwiseShardablePipelined', floats(5, 4)),
  ...each('TransformerFeedForwardMoe AdaptedTransformerFeedForward', floats(5, 8)),
  ...each('MultitaskResidualAdapter', floats(5, 8), none, ids()),
  ...each('MultiTokenPredictionHead', floats(5, 4), floats(5, 4), causal),
  ...each('TransformerLm MultiTokenPredictionLm', record({ ids: ids(5) }), labels),
  ...each('TransformerEncoderDecoder', record({ ids: ids(4) }), record({ ids: ids(5) }), labels),
  ...each('Embedding TransformerTextEncoder', ids(5)),
  ...each('TokenCounter', zeros(5)),
  ...each(
    'FullSoftmax SharedEmbeddingSoftmax NClassMajorSharedEmbeddingSoftmax',
    floats(5, 8),
    ones(5),
    ids(5),
  ),
  ...each('GShardSharedEmbeddingSoftmax SigmoidCrossEntropy MaskedLmSoftmax', floats(5, 8), ones(5), ids(5)),
  ...each('BiTemperedLoss', floats(5), zeros(5)),
  ...each('Ngrammer VQNgrammer', ids(5), floats(5, 8)),
  ...each('BregmanNgrammer', ids(5), floats(5, 4)),
  ...each('VectorQuantization BregmanCompression', floats(5, 2, 4)),
  ...each('BregmanPCA ScalarQuantizer', floats(4)),
  ...each('VectorQuantizer', floats(5, 64)),
  ...each('RandomVectorQuantizer', floats(4, 80)),
  ...each('LookupFreeQuantizer', floats(5, 10)),
  ...each('MaskedLmDataAugmenter', ids(5), zeros(5)),
  ...each('ConformerEncoder ConvolutionalStem', floats(6, 3)),
  ...each('TemporalShifting', floats(400)),
  ...each('Conv1D DepthwiseConv1D LightConv1D', floats(5, 8)),
  ...each('Conv2D SeparableConv2D ConvBNAct ResNetBlock ResNetBasicBlock', floats(4, 4, 8)),
  ...each('InvertedResidualBlock VanillaBlock ConvNeXtBlock UNetDownBlock', floats(4, 4, 8)),
  ...each('Conv2DTranspose', floats(2, 2, 16)),
  ...each('ConvBNActWithPadding', floats(4, 4, 1), zeros(4)),
  ...each('Pooling GlobalPooling', floats(4, 4, 2)),
  ...each('ResNet MobileNet VanillaNet UNet', floats(8, 8, 3)),
  ...each('UNetUpBlock', floats(2, 2, 16), floats(4, 4, 8)),
  ...each('VitEntryLayers VisionTransformer', floats(32, 32, 3)),
  ...each('VitExitLayers', floats(5, 16)),
  ...each('MixerBlock', floats(16, 8)),
  ...each('Conv3D GroupNormSpatial', floats(2, 3, 3, 4)),
  ...each('CausalConv VideoResBlock BlurPool3D DiscriminatorResBlock', floats(2, 3, 3, 2)),
  ...each('CondNormLayer', floats(2, 3, 3, 4), floats(2, 3, 3, 2)),
  ...each('VideoEncoder', floats(3, 4, 4, 3)),
  ...each('VideoDecoder', floats(2, 2, 2, 8)),
  ...each('VQVaeModel VideoDiscriminator', floats(1, 4, 4, 3)),
  ...each(
    'VQGANLoss',
    record({
      ...{ reconstructed: floats(1, 2, 2, 3), logitsReal: floats(1), logitsFake: floats(1) },
      ...{ r1GradientPenalty: floats(), quantizerLoss: () => tf.scalar(1) },
    }),
    floats(1, 2, 2, 3),
  ),
]);

/** Layers whose tensors have no axis of examples, or that stand within others of the list. */
const within = new Set([
  ...['WeightNormL2', 'SpectralNorm', 'PositionalEmbedding', 'PositionalEmbedding2D'],
  ...['TrainablePositionalEmbedding', 'RelativeBias', 'Alibi', 'KeyValuePrefix'],
  ...['FullCache', 'WindowCache', 'MemoryCache', 'LatentCache', 'RgLru', 'ShortConvolution'],
  ...['LstmCellSimple', 'LayerNormalizedLstmCellSimple', 'CifgLstmCellSimple', 'GruCell', 'SruCell'],
]);

/** Examples of a batch that isn't empty: microbatches of pipelines take as many as there are of them at least. */
const someOf = (name: string): number => (/Pipelined/.test(name) ? 12 : 1);

/** Tensors in a layer's results. */
function tensorsIn(value: unknown): Tensor[] {
  if (isTensor(value)) return [value];
  return value && typeof value === 'object' ? Object.values(value).flatMap(tensorsIn) : [];
}

const hasFinite = (x: Tensor): boolean => x.dataSync().every(Number.isFinite);

/** Values of a layer's variables, trained ones apart. */
function valuesOf(layer: BaseLayer): Record<'theta' | 'state', Record<string, Tensor>> {
  const values = initialTheta(layer);
  const those = (which: (variable: Variable) => boolean) =>
    Object.fromEntries(
      listVariables(layer)
        .filter(which)
        .map(({ path }) => [path, values[path]!]),
    );
  return { theta: those((variable) => !isState(variable)), state: those(isState) };
}

describe.each(allSections().map((section) => [section.name, section] as const))('%s', (name, section) => {
  test.skipIf(within.has(name))('takes no examples, and some', () => {
    const inputs = argumentsOf.get(name);
    if (!inputs) throw new Error(`${name}: expected the arguments of its fprop in this file's table.`);
    const layer = layerOf(section) as BaseLayer & { fprop(...args: unknown[]): unknown };
    const { theta, state } = valuesOf(layer);
    const call = (rows: number, doEval: boolean, given = theta): Tensor[] =>
      tensorsIn(
        run({ ...state, ...given }, () => layer.fprop(...inputs.map((make) => make(rows))), {
          ...{ doEval, prngKey: ints([5, 6], [2]) },
        }),
      );
    const resultsOf = (rows: number, doEval: boolean): string[] =>
      call(rows, doEval).map((x, i) => {
        expect(hasFinite(x), `result ${i} of ${rows}`).toBe(true);
        // A size of 1 may be that of the examples.
        return x.shape.map((size) => (size === rows || size === 1 ? 'B' : size)).join();
      });
    expect(resultsOf(0, false)).toEqual(resultsOf(someOf(name), false));
    resultsOf(0, true);
    if (Object.keys(theta).length === 0) return;
    const total = (given: Record<string, Tensor>) => {
      const real = call(0, false, given).filter(({ dtype }) => dtype === 'float32');
      // Every variable has a part, whatever the layer reads.
      const sums = [...Object.values(given), ...real].map((x) => tf.sum(x));
      return { value: sums.reduce((a, b) => tf.add(a, b)), aux: {} };
    };
    const { grads } = valueAndGrad(total, theta);
    for (const [path, grad] of Object.entries(grads)) {
      expect(grad.shape, path).toEqual(theta[path]!.shape);
      // Of a sum over all elements of the variable alone.
      expect(new Set(grad.dataSync()), `gradient of ${path} for no rows`).toEqual(new Set([1]));
    }
  });
});
