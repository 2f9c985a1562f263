/** @file Inputs: sources of batches, tokenizers, reading ahead. */

export { AudioInput } from './audio/audioInput.js';
export { LogMel } from './audio/logMel.js';
export { BaseAugmentation } from './augmentations/baseAugmentation.js';
export { ColorJitter } from './augmentations/colorJitter.js';
export { RandomCrop, RandomErasing, RandomHorizontalFlip, RandomResizedCrop } from './augmentations/crops.js';
export { BaseMixing, CutMix, Mixup } from './augmentations/mixing.js';
export { RandAugment } from './augmentations/randAugment.js';
export { BaseInput, directoryName } from './baseInput.js';
export {
  arraysOf,
  type Batch,
  type BatchCount,
  type BatchSpecs,
  type BatchUnit,
  batchBytes,
  batchCount,
  type LmBatch,
  mapBatch,
  type PackedLmBatch,
  specsOf,
  TOKEN_UNIT,
} from './batch.js';
export { CifarImages, IdxImages } from './binaryImages.js';
export { packageDirectory, resolveFiles, type SourceFile } from './corpusFiles.js';
export {
  changedParts,
  type DataIdentity,
  dataChanges,
  recordedIdentity,
  withRecorded,
} from './dataIdentity.js';
export { EncoderThread } from './encoderThread.js';
export {
  ArrayFeature,
  BaseFeature,
  ClassFeature,
  type FeatureSpec,
  type FeatureSpecs,
  type FeatureValues,
  NumberFeature,
} from './features.js';
export { ImageInput } from './imageInput.js';
export { BaseImageSource, ImageFolder } from './imageSources.js';
export { EndOfData, InputError } from './inputErrors.js';
export {
  type ExampleMetrics,
  type ExampleOptions,
  type IdRows,
  type IdVocabulary,
  type InputSource,
  type InputState,
  nextBatch,
  peekBatch,
  type RowTraits,
} from './inputSource.js';
export type { JsonValue } from './jsonValue.js';
export { MultiInput } from './multiInput.js';
export { type OpenInputOptions, openInput } from './prefetch.js';
export { RebatchedInput } from './rebatchedInput.js';
export { type PartState, type PartStates, type RecordedState, recordedParts } from './recordedParts.js';
export { RecordInput } from './recordInput.js';
export { RowInput } from './rowInput.js';
export { CacheDatasetPlaceholder } from './seqio/cacheDatasetPlaceholder.js';
export { MaskTokens, PrefixLm, SpanCorruption, spanCorruptionLengths } from './seqio/denoising.js';
export { Feature } from './seqio/feature.js';
export { BaseFeatureConverter, type FeatureLengths, type Segment } from './seqio/featureConverter.js';
export { LanguageModelFeatures, MaskedLanguageModelFeatures } from './seqio/lmConverters.js';
export { Bleu } from './seqio/metrics/bleu.js';
export { ExactMatch } from './seqio/metrics/exactMatch.js';
export { Rouge } from './seqio/metrics/rouge.js';
export { MeanScore, RankClassification } from './seqio/metrics/scores.js';
export { SquadExactMatch, SquadF1 } from './seqio/metrics/squad.js';
export {
  BasePredictMetric,
  BaseScoreMetric,
  type PostprocessContext,
  type TaskMetric,
} from './seqio/metrics/taskMetric.js';
export { Mixture } from './seqio/mixture.js';
export {
  BasePreprocessor,
  type Example,
  MapPreprocessor,
  type PreprocessContext,
} from './seqio/preprocessor.js';
export { SeqioInput } from './seqio/seqioInput.js';
export { MixtureOrTask, Task } from './seqio/seqioTask.js';
export { SequenceModelFeatures } from './seqio/sequenceModelFeatures.js';
export {
  AppendEos,
  Filter,
  FilterByLength,
  FlatMap,
  Rekey,
  Tokenize,
  Trim,
} from './seqio/textPreprocessors.js';
export { ReduceConcatTokens, SelectRandomChunk, SplitTokens } from './seqio/tokenPreprocessors.js';
export { addSkipped, describeSkipped, NONE_SKIPPED, type Skipped } from './skippedExamples.js';
export { ArrowSource, ParquetSource } from './sources/columnSources.js';
export { withDigests } from './sources/fileDigests.js';
export { JsonLinesSource, TextLinesSource } from './sources/lineSources.js';
export {
  BaseRecordSource,
  CsvSource,
  IterableSource,
  TextFileSource,
} from './sources/recordSources.js';
export type { DataRecord, RecordTable } from './sources/recordTable.js';
export { TfRecordSource } from './sources/tfRecordSource.js';
export { StreamInput } from './streamInput.js';
export { SyntheticLmInput } from './syntheticLmInput.js';
export { TextFeature } from './textFeature.js';
export { TextInput } from './textInput.js';
export type { TokenArray } from './tokens.js';
export { BaseTokenizer } from './vocabularies/baseTokenizer.js';
export { ByteTokenizer } from './vocabularies/byteTokenizer.js';
export { charVocabularyOf } from './vocabularies/characters.js';
export { CharTokenizer } from './vocabularies/charTokenizer.js';
export { PretrainedTokenizer } from './vocabularies/pretrainedTokenizer.js';
export { type TokenDecoder, textAfter } from './vocabularies/tokenDecoders.js';
