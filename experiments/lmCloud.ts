/** @file Language models on synthetic tokens from 0.1 million to a million million parameters: Pax's lm_cloud.py. */
import { ClassificationModelAdam, TransformerLmExperiment } from './modelParams.js';

/** An 8-layer MLP with large hidden layers, for eight devices. */
export class LargeMlp extends ClassificationModelAdam.preset({
  numLayer: 8,
  inputDim: 4096,
  hiddenDim: 7168,
  iciMeshShape: [8, 1, 1],
}) {}

/** An 8-layer MLP with small hidden layers, for eight devices. */
export class SmallMlp extends ClassificationModelAdam.preset({
  numLayer: 8,
  inputDim: 1024,
  hiddenDim: 1024,
  iciMeshShape: [8, 1, 1],
}) {}

/** A 32-layer model of 0.4 billion parameters, the same on every device (Pax's TransformerLmPmapAdam). */
export class LmCloudTransformerAdam extends TransformerLmExperiment.preset({
  numLayers: 32,
  vocabSize: 32_000,
  numHeads: 16,
  dimsPerHead: null,
  modelDims: 1024,
  learningRate: 1e-3,
  fpropDtype: 'float32',
  combineQkv: false,
  softmaxCapLogits: 0,
}) {}

/** As LmCloudTransformerAdam with two layers. */
export class LmCloudTransformerAdamTest extends LmCloudTransformerAdam.preset({ numLayers: 2 }) {}

/** As LmCloudTransformerAdam with ten layers, for 2000 steps. */
export class LmCloudTransformerAdamLimitSteps extends LmCloudTransformerAdam.preset({
  numLayers: 10,
  numTrainSteps: 2000,
}) {}

/** Models for a mesh of devices: GELU, heads of depth 128. */
export abstract class LmCloudSpmd extends TransformerLmExperiment.preset({
  numLayers: 10,
  modelDims: 2048,
  activationCls: 'GELU',
  useRepeatedLayer: true,
}) {}

/** A model of 2 million parameters for one device, to try things on the machine at hand. */
export class LmCloudSpmdTest extends LmCloudSpmd.preset({
  percoreBatchSize: 4,
  numLayers: 2,
  modelDims: 64,
  dimsPerHead: 8,
}) {}

/** 2 billion parameters on 4 devices, 32 rows a step. */
export class LmCloudSpmd2B extends LmCloudSpmd.preset({
  percoreBatchSize: 8,
  numLayers: 18,
  modelDims: 3072,
  iciMeshShape: [1, 4, 1],
}) {}

/** As LmCloudSpmd2B, for 300 steps. */
export class LmCloudSpmd2BLimitSteps extends LmCloudSpmd2B.preset({ numTrainSteps: 300 }) {}

/** 32 billion parameters on 64 devices, 512 rows a step. */
export class LmCloudSpmd32B extends LmCloudSpmd.preset({
  percoreBatchSize: 8,
  numLayers: 40,
  modelDims: 8192,
  checkpointPolicy: 'SAVE_CONTEXT_AND_OUT_PROJ',
  iciMeshShape: [1, 16, 4],
}) {}

/** 64 billion parameters on 128 devices, 512 rows a step. */
export class LmCloudSpmd64B extends LmCloudSpmd.preset({
  percoreBatchSize: 4,
  numLayers: 51,
  modelDims: 10_240,
  checkpointPolicy: 'SAVE_CONTEXT_AND_OUT_PROJ',
  iciMeshShape: [1, 16, 8],
}) {}

/** 128 billion parameters on 256 devices, 1024 rows a step. */
export class LmCloudSpmd128B extends LmCloudSpmd.preset({
  percoreBatchSize: 4,
  numLayers: 71,
  modelDims: 12_288,
  iciMeshShape: [1, 64, 4],
}) {}

/** 256 billion parameters on 512 devices, 2048 rows a step. */
export class LmCloudSpmd256B extends LmCloudSpmd.preset({
  percoreBatchSize: 4,
  numLayers: 80,
  modelDims: 16_384,
  iciMeshShape: [1, 64, 8],
}) {}

/** 512 billion parameters on 1024 devices, 4096 rows a step. */
export class LmCloudSpmd512B extends LmCloudSpmd.preset({
  percoreBatchSize: 4,
  numLayers: 102,
  modelDims: 20_480,
  iciMeshShape: [1, 64, 16],
}) {}

/** 1024 billion parameters on 2048 devices, 4096 rows a step. */
export class LmCloudSpmd1024B extends LmCloudSpmd.preset({
  percoreBatchSize: 2,
  numLayers: 142,
  modelDims: 24_576,
  iciMeshShape: [1, 256, 8],
}) {}

/** Models in stages, for a mesh whose first axis is theirs. */
export abstract class LmCloudSpmdPipeline extends LmCloudSpmd.preset({ useRepeatedLayer: false }) {}

/** 9 billion parameters in 16 stages on 64 devices, 512 rows a step. */
export class LmCloudSpmdPipeline9B extends LmCloudSpmdPipeline.preset({
  percoreBatchSize: 8,
  numLayers: 48,
  modelDims: 4096,
  fpropDtype: 'float32',
  numStages: 16,
  microbatchSize: 4,
  iciMeshShape: [16, 4, 1, 1],
}) {}

/** 175 billion parameters in 8 stages, each a slice of 16 devices, 96 rows a step. */
export class LmCloudSpmdPipeline175B extends LmCloudSpmdPipeline.preset({
  percoreBatchSize: 0.75,
  numLayers: 96,
  modelDims: 12_288,
  numHeads: 96,
  maxSeqLen: 2048,
  numStages: 8,
  microbatchSize: 2,
  iciMeshShape: [1, 1, 1, 16],
  dcnMeshShape: [8, 1, 1, 1],
}) {}

/** 2 billion parameters on two slices of 4 devices, 128 rows a step. */
export class LmCloudSpmdMultislice2B extends LmCloudSpmd.preset({
  percoreBatchSize: 16,
  numLayers: 18,
  modelDims: 3072,
  iciMeshShape: [1, 4, 1],
  dcnMeshShape: [2, 1, 1],
}) {}

/** 2 billion parameters in two stages, each a slice of 4 devices, 128 rows a step. */
export class LmCloudSpmdPipelineMultislice2B extends LmCloudSpmdPipeline.preset({
  percoreBatchSize: 16,
  numLayers: 18,
  modelDims: 3072,
  numStages: 2,
  microbatchSize: 4,
  streamIo: true,
  iciMeshShape: [1, 4, 1, 1],
  dcnMeshShape: [2, 1, 1, 1],
}) {}

/** As LmCloudSpmdPipelineMultislice2B, but that microbatches pass both stages three times. */
export class LmCloudSpmdPipelineMultislice2BCircular extends LmCloudSpmdPipelineMultislice2B.preset({
  microbatchSize: 8,
  circularRepeat: 3,
}) {}
