/** @file Decoding: greedy and sampled continuations on a model's extendStep. */
export {
  BaseDecoder,
  type DecodeOutput,
  type DecodeRequest,
  GreedyDecoder,
  SampleDecoder,
} from './decoder.js';
export type { ExtendStep, Float32Tensor, Int32Tensor, Prompts } from './loop.js';
