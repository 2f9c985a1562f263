/** @file Models: networks with losses and metrics, and configs of well-known ones. */
export {
  BaseModel,
  type ReadIds,
  type RowSettings,
  type TensorBatch,
  type WeightedScalar,
  type WeightedScalars,
} from './baseModel.js';
export { classificationMetrics, regressionMetrics } from './batchMetrics.js';
export { BertModel } from './bertModel.js';
export { ClassificationMLPModel } from './classificationMlp.js';
export { ClassificationModel } from './classificationModel.js';
export { ClipModel } from './clipModel.js';
export { CtcModel } from './ctcModel.js';
export { LanguageModelDPO, SequenceModelDPO } from './directPreference.js';
export { DistillationModel } from './distillation.js';
export { LanguageModelGRPO } from './groupRelative.js';
export { LanguageModel } from './languageModel.js';
export { MaskedAutoencoder } from './maskedAutoencoder.js';
export { type MaxTextConstants, translateMaxText } from './maxText.js';
export { type PaxLmOptions, type PaxPipeline, paxActivations, paxLm, paxNormalizations } from './paxLm.js';
export { paxSplits } from './paxSplits.js';
export { type GlamOptions, type GrokOptions, glamLm, grokLm } from './presets/glam.js';
export { type Gpt2Options, gpt2Init, gpt2Lm } from './presets/gpt2.js';
export { type LlamaOptions, llamaLm } from './presets/llama.js';
export type { NameRule, NameRules } from './presets/nameRules.js';
export { networkDifferences } from './presets/networkDifferences.js';
export {
  modelOfSettings,
  nameRulesOf,
  type PublishedFamilyName,
  type PublishedSettings,
  pretrainedLm,
  pretrainedModel,
  publishedFamilies,
  publishedSettings,
  settingsWithDefaults,
  unknownFamily,
} from './presets/pretrainedLm.js';
export { rotationsOf } from './presets/rotarySettings.js';
export { SequenceModel } from './sequenceModel.js';
export { TextEmbeddingModel } from './textEmbedding.js';
