/** @file Trained runs in use: text, predictions, files for other programs, a server. */

export { compareOnnx } from './compareOnnx.js';
export type { Completion, FinishReason } from './completion.js';
export { type ExampleOutputs, loadDecoderOutputs, loadEvalOutputs } from './exampleOutputs.js';
export type { ExamplePrediction, RawExample } from './examplePredictor.js';
export { exportOnnx } from './exportOnnx.js';
export { type GenerateOptions, generationFields } from './generation.js';
export { type InferOutputs, loadInferOutputs } from './inferOutputs.js';
export { evaluateTask, type TaskResult } from './languageTasks/evaluateTask.js';
export { loadRun } from './loadRun.js';
export type { Predictions } from './predictor.js';
export { exportAdapter, exportHuggingFace, type PublishOptions } from './published/exportPublished.js';
export { exportGguf } from './published/gguf/exportGguf.js';
export { type Imported, type ImportOptions, importPublished } from './published/importPublished.js';
export { type QuantizedQuality, quantizedQuality } from './quantizedQuality.js';
export { type Quantized, type QuantizeOptions, quantizeRun } from './quantizeRun.js';
export { RequestError } from './requestError.js';
export { readRunDocument } from './runDocument.js';
export { isLoopback } from './server/hosts.js';
export { type ServerOptions, serve } from './server/server.js';
export { startLora } from './startLora.js';
export type { LoadRunOptions, ReadOptions, TrainedRun } from './trainedRun.js';
