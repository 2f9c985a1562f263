/** @file Networks over tokens as models use them: the arrays of a batch that they read, the ids that they know, their decodes. */
import type { Tensor } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import {
  decodeStateSpecs,
  type LmOutput,
  type TransformerEncoderDecoder,
  TransformerLm,
} from '../layers/index.js';
import type { ReadIds, RowSettings } from './baseModel.js';

/** A network that predicts tokens. */
export type TokenLayer = TransformerLm | TransformerEncoderDecoder;

/** The array of a name, such as 'ids' or 'src.ids'. @throws LayerError where a batch lacks it */
export type ArrayOf = (name: string) => Tensor;

/** A network's view of batches and decodes. Arrays have the names of a LanguageModel's or a SequenceModel's batch. */
export interface TokenNetwork extends Decodable {
  /** Those that inputs have to keep to; fields are the network's. */
  readonly readIds: readonly ReadIds[];
  /** Those of the loss, besides. */
  readonly labelIds: readonly ReadIds[];
  readonly rowSettings: Omit<RowSettings, 'field'>;
  /** Predictions and losses of a batch. */
  outputs(arrayOf: ArrayOf): LmOutput;
}

/** The view of a network. */
export const tokenNetwork = (layer: TokenLayer): TokenNetwork =>
  layer instanceof TransformerLm ? decoderOnly(layer) : encoderDecoder(layer);

const labelsOf = (arrayOf: ArrayOf, half = '') => ({
  classIds: arrayOf(`${half}labels`),
  classWeights: arrayOf(`${half}weights`),
});

function decoderOnly(layer: TransformerLm): TokenNetwork {
  const { vocabSize, packedInput, modelType, usePaddings } = layer.hp;
  const known = { count: vocabSize, field: 'vocabSize' };
  const read = [
    ...(usePaddings ? ['paddings'] : []),
    ...(packedInput ? ['segmentIds', 'segmentPos'] : []),
    ...(modelType === 'prefix' ? ['inputsIndicator'] : []),
  ];
  return {
    vocabSize,
    readIds: [{ path: 'ids', ...known }],
    labelIds: [{ path: 'labels', ...known }],
    rowSettings: { packedInput, modelType, usePaddings },
    outputs: (arrayOf) => layer.fprop({ ids: arrayOf('ids'), ...arraysOf(arrayOf, read) }, labelsOf(arrayOf)),
    seesWholePrompt: modelType === 'prefix',
    initialDecodeState: (rows, seqLen) => decodeStateSpecs(layer, rows, seqLen),
    extendStep: (ids, args) => layer.extendStep(ids, args),
  };
}

function encoderDecoder(layer: TransformerEncoderDecoder): TokenNetwork {
  const { packedInput, softmaxTpl, encoderEmbeddingTpl, encoderStemTpl, decoderEmbeddingTpl } = layer.hp;
  const predicted = { count: softmaxTpl.numClasses, field: 'softmaxTpl.numClasses' };
  const target = decoderEmbeddingTpl
    ? { count: decoderEmbeddingTpl.numClasses, field: 'decoderEmbeddingTpl.numClasses' }
    : predicted;
  const source = encoderEmbeddingTpl
    ? { count: encoderEmbeddingTpl.numClasses, field: 'encoderEmbeddingTpl.numClasses' }
    : target;
  const beside = ['paddings', ...(packedInput ? ['segmentIds', 'segmentPos'] : [])];
  const sourceName = encoderStemTpl ? 'features' : 'ids';
  const sourcePath = `src.${sourceName}`;
  return {
    vocabSize: predicted.count,
    readIds: [
      ...(encoderStemTpl ? [] : [{ path: sourcePath, ...source }]),
      { path: 'tgt.ids', ...target },
      { path: 'tgt.labels', ...predicted },
    ],
    labelIds: [],
    rowSettings: { packedInput },
    outputs: (arrayOf) =>
      layer.fprop(
        arraysOf(arrayOf, [sourceName, ...beside], 'src.'),
        { ids: arrayOf('tgt.ids'), ...arraysOf(arrayOf, beside, 'tgt.') },
        labelsOf(arrayOf, 'tgt.'),
      ),
    nested: { source: 'src', target: 'tgt' },
    promptNames: [sourcePath, 'src.paddings'],
    initialDecodeState: (rows, seqLen, prompt) =>
      decodeStateSpecs(layer, rows, seqLen, layer.encodedLength(prompt![sourcePath]!.shape[1]!)),
    begin: (prompt) => layer.begin({ [sourceName]: prompt[sourcePath], paddings: prompt['src.paddings'] }),
    extendStep: (ids, args) => layer.extendStep(ids, args),
  };
}

const arraysOf = (arrayOf: ArrayOf, names: readonly string[], half = ''): Record<string, Tensor> =>
  Object.fromEntries(names.map((name) => [name, arrayOf(half + name)]));
