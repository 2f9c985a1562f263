/** @file Decoding: the contract of models, the stepper on it, and decoders: greedy and sampled continuations. */

export { BeamSearchDecoder, FlatBeamSearchDecoder } from './beamSearchDecoder.js';
export {
  type ConstrainedText,
  type Constraint,
  Constraints,
  constraintField,
  type TokenBits,
  type TokenBytes,
  type TokenConstraint,
} from './constraints/index.js';
export { type Decodable, isDecodable, targetPath } from './decodable.js';
export { decodeRows } from './decodeLoop.js';
export {
  BaseDecoder,
  type Continuation,
  type DecodeOutput,
  type DecodeRequest,
} from './decoder.js';
export { bytesOf } from './decodeState.js';
export type {
  DecodingModel,
  DrawnIds,
  ExtendGreedily,
  ExtendRows,
  ExtendSampling,
  ExtendStep,
  Float32Tensor,
  Int32Tensor,
  Prefill,
  Prompts,
  Reorder,
} from './decodingModel.js';
export { type ExampleSettings, exampleSettings } from './exampleSettings.js';
export { adjustmentsOf } from './logitAdjustments.js';
export { PREFILL_STEPS } from './promptLanes.js';
export { PromptLookupDecoder } from './promptLookupDecoder.js';
export { unitDouble } from './promptRows.js';
export type { FilledBlock, RowFill } from './rowFill.js';
export { GreedyDecoder, SampleDecoder } from './sampleDecoder.js';
export { GREEDY, isRandom, type RowSettings, sampleIds } from './sampledIds.js';
export { logProbability, type SamplingRule, sampleId, topK } from './sampling.js';
export { SpeculativeDecoder } from './speculativeDecoder.js';
export { ofRows, type PromptSharing, type StepperOptions } from './stepPrograms.js';
export { Stepper } from './stepper.js';
