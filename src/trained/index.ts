/** @file Trained runs in use: text, predictions, files for other programs, a server. */
export type { Completion, FinishReason } from './completion.js';
export { type DecoderOutputs, loadDecoderOutputs } from './decoderOutputs.js';
export type { ExamplePrediction, RawExample, RowValues } from './examplePredictor.js';
export type { GenerateOptions } from './generation.js';
export { loadRun } from './loadRun.js';
export type { Predictions } from './predictor.js';
export { RequestError } from './requestError.js';
export type { LoadRunOptions, TrainedRun } from './trainedRun.js';
