/** @file Decoding: greedy and sampled continuations on a model's extendStep. */

export type {
  DecodingModel,
  DrawnIds,
  ExtendGreedily,
  ExtendSampling,
  ExtendStep,
  Float32Tensor,
  Int32Tensor,
  Prefill,
  Prompts,
} from './decodeLoop.js';
export {
  BaseDecoder,
  type DecodeOutput,
  type DecodeRequest,
  GreedyDecoder,
  SampleDecoder,
} from './decoder.js';
export { GREEDY, isRandom, sampleIds } from './sampledIds.js';
export type { SamplingRule } from './sampling.js';
