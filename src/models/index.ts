/** @file Models: what tasks train, evaluate and decode with. */
export { BaseModel, type TensorBatch, type WeightedScalar, type WeightedScalars } from './baseModel.js';
export { type Gpt2Options, gpt2Init, gpt2Lm } from './gpt2.js';
export { LanguageModel } from './languageModel.js';
