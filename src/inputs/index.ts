/** @file Inputs: sources of batches, tokenizers, reading ahead. */

export { EncoderThread } from './ahead/encoderThread.js';
export { type OpenInputOptions, openInput } from './ahead/prefetch.js';
export { AudioInput } from './audio/audioInput.js';
export { LogMel, WhisperLogMel } from './audio/logMel.js';
export { SoundFeature } from './audio/soundFeature.js';
export { BaseInput, directoryName, hostShare } from './baseInput.js';
export {
  arraysOf,
  type Batch,
  type BatchCount,
  type BatchSpecs,
  type BatchUnit,
  batchBytes,
  batchCount,
  type LmBatch,
  lmBatchSpecs,
  mapBatch,
  mapSpecs,
  type PackedLmBatch,
  specsOf,
  TOKEN_UNIT,
} from './batch.js';
export { EXAMPLE_IDS, exampleRows, nestedRow, paddingOf, type RowValues } from './batchRows.js';
export {
  changedParts,
  type DataIdentity,
  dataChanges,
  recordedIdentity,
  withRecorded,
} from './dataIdentity.js';
export { BaseAugmentation } from './images/augmentations/baseAugmentation.js';
export { ColorJitter } from './images/augmentations/colorJitter.js';
export {
  RandomCrop,
  RandomErasing,
  RandomHorizontalFlip,
  RandomResizedCrop,
} from './images/augmentations/crops.js';
export { BaseMixing, CutMix, Mixup } from './images/augmentations/mixing.js';
export { RandAugment } from './images/augmentations/randAugment.js';
export { CifarImages, IdxImages } from './images/binaryImages.js';
export { ImageFeature } from './images/imageFeature.js';
export { ImageInput } from './images/imageInput.js';
export { BaseImageSource, ImageFolder } from './images/imageSources.js';
export { EndOfData, InputError } from './inputErrors.js';
export {
  type BatchKind,
  type ExampleMetrics,
  type ExampleOptions,
  type IdRows,
  type IdVocabulary,
  type InputSource,
  type InputState,
  nextBatch,
  peekBatch,
  type RowTraits,
  untilEnd,
} from './inputSource.js';
export { BaseInputSpecsProvider, checkInputSpecs, DatasetInputSpecsProvider } from './inputSpecs.js';
export { BaseWhichInput, ByWeight, InTurn, InterleavedInput } from './interleavedInput.js';
export type { JsonValue } from './jsonValue.js';
export { MultiInput } from './multiInput.js';
export { RebatchedInput } from './rebatchedInput.js';
export {
  type PartState,
  type PartStates,
  partsBelow,
  type RecordedState,
  recordedParts,
} from './recordedParts.js';
export { ArrowSource, ParquetSource } from './records/columnSources.js';
export {
  ArrayFeature,
  BaseFeature,
  ClassFeature,
  type FeatureSpec,
  type FeatureSpecs,
  type FeatureValues,
  NumberFeature,
} from './records/features.js';
export { withDigests } from './records/fileDigests.js';
export { JsonLinesSource, TextLinesSource } from './records/lineSources.js';
export { RecordInput } from './records/recordInput.js';
export {
  BaseRecordSource,
  CsvSource,
  IterableSource,
  TextFileSource,
} from './records/recordSources.js';
export type { DataRecord, RecordTable } from './records/recordTable.js';
export { exampleBytes, type FeatureNumbers } from './records/tfExample.js';
export { TfRecordSource } from './records/tfRecordSource.js';
export { RowInput } from './rowInput.js';
export { ScheduledInput } from './scheduledInput.js';
export { CacheDatasetPlaceholder } from './seqio/cacheDatasetPlaceholder.js';
export {
  type DoneShard,
  finishCache,
  numShardsOf,
  type ShardShare,
  writeShards,
} from './seqio/cacheShards.js';
export {
  type ChatMessage,
  findChatTemplate,
  publishedChatTemplate,
  withoutGenerationTags,
} from './seqio/chatTemplate.js';
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
export { PreferenceFeatures, SequencePreferenceFeatures } from './seqio/preferenceFeatures.js';
export {
  BasePreprocessor,
  type Example,
  MapPreprocessor,
  type PreprocessContext,
} from './seqio/preprocessor.js';
export { RenderChat } from './seqio/renderChat.js';
export { SeqioInput } from './seqio/seqioInput.js';
export { MixtureOrTask, Task } from './seqio/seqioTask.js';
export { SequenceModelFeatures } from './seqio/sequenceModelFeatures.js';
export type { CacheManifest, TaskCache } from './seqio/taskCache.js';
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
export { StreamInput } from './streamInput.js';
export { SyntheticLmInput } from './syntheticLmInput.js';
export { packageDirectory, readFiles, resolveFiles, type SourceFile } from './text/corpusFiles.js';
export { TargetFeature } from './text/targetFeature.js';
export { TextFeature } from './text/textFeature.js';
export { TextInput } from './text/textInput.js';
export type { TokenArray } from './text/tokens.js';
export { BaseTokenizer } from './text/vocabularies/baseTokenizer.js';
export { trainBpe, WordCounts } from './text/vocabularies/bpeTrainer.js';
export { ByteTokenizer } from './text/vocabularies/byteTokenizer.js';
export { charVocabularyOf } from './text/vocabularies/characters.js';
export { CharTokenizer } from './text/vocabularies/charTokenizer.js';
export { PretrainedTokenizer } from './text/vocabularies/pretrainedTokenizer.js';
export { type TokenDecoder, textAfter, textOf, WindowDecoder } from './text/vocabularies/tokenDecoders.js';
export { tokenizerJson } from './text/vocabularies/tokenizerJson.js';
