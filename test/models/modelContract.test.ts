/** @file Contract of models: gradients of the loss by finite differences, every engine against the eager one, for all metrics. */
import { test } from 'vitest';
import { ops, type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  Conformer,
  ConformerEncoder,
  FeedForward,
  FullSoftmax,
  Linear,
  listVariables,
  MaskedLmSoftmax,
  PositionalEmbedding,
  SharedEmbeddingSoftmax,
  StackedTransformer,
  Tanh,
  TokenTypeEmbedding,
  TransformerEncoderDecoder,
  TransformerLm,
  TransformerTextEncoder,
  type Variable,
  VisionTransformer,
  VitEntryLayers,
} from '../../src/layers/index.js';
import {
  type BaseModel,
  BertModel,
  ClassificationModel,
  ClipModel,
  CtcModel,
  MaskedAutoencoder,
  SequenceModel,
  type TensorBatch,
  TextEmbeddingModel,
  type WeightedScalars,
} from '../../src/models/index.js';
import { expectAllSame, floats, given, type Host, ids, type Subject } from '../layers/engineComparison.js';
import { checkSlope, ints, isState, randomTheta, run } from '../layers/helpers.js';
import { longTest } from '../longTest.js';

type Tensors = Readonly<Record<string, Tensor>>;

/** A model and a batch, whose arrays stand by path. */
interface ModelCase {
  readonly title: string;
  readonly config: Config<BaseModel>;
  /** Arrays that programs take as inputs. */
  readonly given: Readonly<Record<string, Host>>;
  /** Arrays that are constants: weights and paddings. */
  readonly fixed?: () => Tensors;
  readonly theta?: (model: BaseModel) => Record<string, Tensor>;
  readonly doEval?: boolean;
  /** Largest difference between engines, as part of 1 + |value|. */
  readonly tolerance?: number;
}

/** A batch of arrays by path. */
function nestedBatch(arrays: Tensors): TensorBatch {
  const batch: Record<string, unknown> = {};
  for (const [path, array] of Object.entries(arrays)) {
    const [outer, inner] = path.split('.') as [string, string?];
    batch[outer] = inner === undefined ? array : { ...(batch[outer] as object), [inner]: array };
  }
  return batch as TensorBatch;
}

/** Values and weights of all metrics; of the loss alone there is a gradient. */
const allOf = (metrics: WeightedScalars): Tensor =>
  tf.stack(
    Object.entries(metrics).flatMap(([name, both]) =>
      both.map((x, i) => {
        const scalar = tf.reshape(x, []);
        return name === 'total_loss' && i === 0 ? scalar : ops.stopGradient(scalar);
      }),
    ),
  );

/** The gradient of the loss by all variables is its slope along a direction in all of them. */
function checkGradient({
  config,
  given: inputs,
  fixed = () => ({}),
  theta,
  doEval = false,
}: ModelCase): void {
  const model = build(config);
  const values = theta?.(model) ?? randomTheta(model);
  const arrays = Object.entries(inputs).map(([path, { data, shape, dtype }]) => [
    path,
    tf.tensor(data as Float32Array, shape, dtype as 'float32'),
  ]);
  const batch = nestedBatch({ ...Object.fromEntries(arrays), ...fixed() });
  checkSlope(
    (moved) => run(moved, () => model.fprop(batch)[0].total_loss![0], { doEval, prngKey: ints([5, 6], [2]) }),
    values,
  );
}

/** A case as the engines take it. */
function subjectOf({
  title,
  config,
  given: inputs,
  fixed = () => ({}),
  theta,
  ...options
}: ModelCase): Subject {
  const model = build(config);
  const values = theta?.(model) ?? randomTheta(model);
  const hosts = (which: readonly Variable[]): Record<string, Host> =>
    Object.fromEntries(
      which.map(({ path, shape }) => [path, given('float32', [...values[path]!.dataSync()], shape)]),
    );
  const variables = listVariables(model);
  return {
    ...{ title, inputs, ...options },
    params: hosts(variables.filter((variable) => !isState(variable))),
    state: hosts(variables.filter(isState)),
    call: (arrays) => allOf(model.fprop(nestedBatch({ ...arrays, ...fixed() }))[0]),
  };
}

const rows = (values: number[][]): Tensor => tf.tensor2d(values) as Tensor;
const layers = { numLayers: 1, hiddenDims: 5, numHeads: 2 };
const stack = () => StackedTransformer.config(layers);

const sequenceModel: ModelCase = {
  title: 'SequenceModel with smoothed labels',
  config: SequenceModel.config({
    labelSmoothingProb: 0.1,
    modelTpl: TransformerEncoderDecoder.config({
      ...{ modelDims: 4, encoderStackedTransformerTpl: stack(), decoderStackedTransformerTpl: stack() },
      softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: 6 }),
    }),
  }),
  given: {
    'src.ids': ids([2, 5], 6),
    'tgt.ids': ids([2, 3], 6),
    'tgt.labels': ids([2, 3], 5),
  },
  fixed: () => ({
    'src.paddings': rows([
      [0, 0, 0, 0, 1],
      [0, 0, 0, 0, 0],
    ]),
    'tgt.paddings': rows([
      [0, 0, 0],
      [0, 0, 1],
    ]),
    'tgt.weights': rows([
      [1, 1, 1],
      [1, 1, 0],
    ]),
  }),
};

const textClassifier: ModelCase = {
  title: 'ClassificationModel of texts',
  config: ClassificationModel.config({
    ...{ inputField: 'ids', paddingsField: 'paddings' },
    networkTpl: TransformerTextEncoder.config({
      ...{ vocabSize: 9, modelDims: 4, pooling: 'last', stackedTransformerTpl: stack() },
      ...{ positionEmbTpl: PositionalEmbedding.config(), tokenTypeEmbTpl: TokenTypeEmbedding.config() },
      poolerTpl: FeedForward.config({ activationTpl: Tanh.config() }),
    }),
    softmaxTpl: FullSoftmax.config({ inputDims: 4, numClasses: 6 }),
  }),
  given: { ids: ids([3, 4], 9), label_probs: ids([3], 6) },
  fixed: () => ({
    paddings: rows([
      [0, 0, 0, 0],
      [0, 0, 1, 1],
      [1, 1, 1, 1],
    ]),
    weights: tf.tensor1d([1, 2, 0]),
  }),
};

const bertModel: ModelCase = {
  title: 'BertModel',
  config: BertModel.config({
    maskTokenId: 8,
    lmTpl: TransformerLm.config({
      ...{ vocabSize: 9, modelDims: 4, modelType: 'bidirectional', packedInput: true },
      ...{ tokenTypeEmbTpl: TokenTypeEmbedding.config(), softmaxTpl: MaskedLmSoftmax.config() },
      stackedTransformerTpl: stack(),
    }),
  }),
  given: {
    labels: ids([2, 8], 9),
    segmentIds: given('int32', [1, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0], [2, 8]),
    segmentPos: given('int32', [0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 0, 0], [2, 8]),
    tokenTypes: ids([2, 8], 2),
  },
  fixed: () => ({
    paddings: rows([
      [0, 0, 0, 0, 0, 0, 0, 0],
      [0, 0, 0, 0, 0, 0, 1, 1],
    ]),
  }),
};

const ctcModel: ModelCase = {
  title: 'CtcModel',
  config: CtcModel.config({
    encoderTpl: ConformerEncoder.config({
      ...{ inputDims: 3, modelDims: 4, numLayers: 1 },
      conformerTpl: Conformer.config({ attenNumHeads: 2, ffnDimMultiplier: 1, layerOrder: 'mhsa' }),
    }),
    softmaxTpl: FullSoftmax.config({ numClasses: 4 }),
  }),
  given: { inputs: floats([2, 5, 3]), labels: given('int32', [1, 3, 2, 2], [2, 2]) },
  fixed: () => ({
    paddings: rows([
      [0, 0, 0, 0, 0],
      [0, 0, 0, 1, 1],
    ]),
  }),
};

const maskedAutoencoder: ModelCase = {
  title: 'MaskedAutoencoder',
  config: MaskedAutoencoder.config({
    encoderTpl: VisionTransformer.config({
      entryLayersTpl: VitEntryLayers.config({
        ...{ posEmbShapes: [2, 3], patchSize: 2, inputDims: 4, outputDims: 4, posEmbTpl: null },
      }),
      transformerLayersTpl: StackedTransformer.config({ ...layers, modelDims: 4 }),
      exitLayersTpl: null,
    }),
    ...{ maskRatio: 0.5, decoderDims: 4, decoderPositionEmbTpl: PositionalEmbedding.config() },
    decoderTpl: stack(),
  }),
  given: { image: floats([2, 4, 6, 1]) },
};

const clipModel: ModelCase = {
  title: 'ClipModel',
  config: ClipModel.config({
    ...{ imageTpl: Linear.config({ inputDims: 5, outputDims: 4 }), imageDims: 4, projectionDims: 3 },
    textTpl: TransformerTextEncoder.config({
      ...{ vocabSize: 9, modelDims: 4, causal: true, pooling: 'last', stackedTransformerTpl: stack() },
      positionEmbTpl: PositionalEmbedding.config(),
    }),
  }),
  given: { image: floats([3, 5]), ids: ids([3, 4], 9) },
  fixed: () => ({
    paddings: rows([
      [0, 0, 0, 0],
      [0, 0, 1, 1],
      [0, 1, 1, 1],
    ]),
    weights: tf.tensor1d([1, 1, 0]),
  }),
};

const textEmbedding: ModelCase = {
  title: 'TextEmbeddingModel',
  config: TextEmbeddingModel.config({
    temperature: 0.5,
    encoderTpl: TransformerTextEncoder.config({
      ...{ vocabSize: 9, modelDims: 4, stackedTransformerTpl: stack() },
      positionEmbTpl: PositionalEmbedding.config(),
    }),
  }),
  given: { 'text.ids': ids([3, 4], 9), 'positive.ids': ids([3, 2], 9) },
  fixed: () => ({
    'text.paddings': rows([
      [0, 0, 0, 0],
      [0, 0, 1, 1],
      [0, 1, 1, 1],
    ]),
    'positive.paddings': rows([
      [0, 0],
      [0, 1],
      [0, 0],
    ]),
    weights: tf.tensor1d([1, 1, 0]),
  }),
};

const cases: readonly ModelCase[] = [
  maskedAutoencoder,
  clipModel,
  ctcModel,
  bertModel,
  sequenceModel,
  textClassifier,
  textEmbedding,
];

test.each(cases.map((each) => [each.title, each] as const))('%s has the gradient of its loss', (_, each) =>
  checkGradient(each),
);

longTest('all metrics and gradients are the same on every engine', () => expectAllSame(cases.map(subjectOf)));
