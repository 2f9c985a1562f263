/** @file Language models on several slices of devices: Pax's c4_multislice.py. */
import { C4SpmdAdam, C4SpmdGpt3AdamOrgHP } from './c4.js';

/** MaxText's model of 22 billion parameters, on 8 devices, 128 rows a step. `translateMaxText` gives its constants. */
export class C4Spmd22BAdamMaxText extends C4SpmdAdam.preset({
  numLayers: 48,
  modelDims: 6144,
  hiddenDims: 24_576,
  numHeads: 24,
  dimsPerHead: 256,
  percoreBatchSize: 16,
  maxSeqLen: 1024,
  vocabSize: 32_768,
  fpropDtype: 'bfloat16',
  useRepeatedLayer: true,
  checkpointPolicy: 'SAVE_NOTHING',
  summaryIntervalSteps: 10,
}) {}

/** 22 billion parameters on one slice of 64 devices (v4-128), 1024 rows a step. */
export class C4Spmd22BAdam1xv4_128 extends C4Spmd22BAdamMaxText.preset({ iciMeshShape: [1, 64, 1] }) {}

/** 22 billion parameters on two slices of 64 devices, 2048 rows a step. */
export class C4Spmd22BAdam2xv4_128 extends C4Spmd22BAdam1xv4_128.preset({ dcnMeshShape: [2, 1, 1] }) {}

/** 22 billion parameters on four slices of 64 devices, 4096 rows a step. */
export class C4Spmd22BAdam4xv4_128 extends C4Spmd22BAdam1xv4_128.preset({ dcnMeshShape: [4, 1, 1] }) {}

/** As C4Spmd22BAdam1xv4_128, for 300 steps. */
export class C4Spmd22BAdam1xv4_128LimitSteps extends C4Spmd22BAdam1xv4_128.preset({ numTrainSteps: 300 }) {}

/** As C4Spmd22BAdam2xv4_128, for 300 steps. */
export class C4Spmd22BAdam2xv4_128LimitSteps extends C4Spmd22BAdam2xv4_128.preset({ numTrainSteps: 300 }) {}

/** As C4Spmd22BAdam4xv4_128, for 300 steps. */
export class C4Spmd22BAdam4xv4_128LimitSteps extends C4Spmd22BAdam4xv4_128.preset({ numTrainSteps: 300 }) {}

/** 25 billion parameters in wider layers on one slice of 192 devices (v4-384), 1920 rows a step. */
export class C4Spmd22BAdam1xv4_384 extends C4Spmd22BAdamMaxText.preset({
  numLayers: 24,
  modelDims: 9216,
  hiddenDims: 36_864,
  dimsPerHead: 384,
  percoreBatchSize: 10,
  iciMeshShape: [1, 192, 1],
}) {}

/** As C4Spmd22BAdam1xv4_384 on two slices, 3840 rows a step. */
export class C4Spmd22BAdam2xv4_384 extends C4Spmd22BAdam1xv4_384.preset({ dcnMeshShape: [2, 1, 1] }) {}

/** MaxText's model before it is scaled by 3, on one slice of 4 devices (v4-8), 64 rows a step. */
export class C4Spmd22BAdam1xv4_8 extends C4Spmd22BAdamMaxText.preset({
  numLayers: 16,
  modelDims: 2048,
  hiddenDims: 8192,
  numHeads: 8,
  iciMeshShape: [1, 4, 1],
}) {}

/** As C4Spmd22BAdam1xv4_8 on two slices, 128 rows a step. */
export class C4Spmd22BAdam2xv4_8 extends C4Spmd22BAdam1xv4_8.preset({ dcnMeshShape: [2, 1, 1] }) {}

/** As C4Spmd22BAdam1xv4_8 on four slices, 256 rows a step. */
export class C4Spmd22BAdam4xv4_8 extends C4Spmd22BAdam1xv4_8.preset({ dcnMeshShape: [4, 1, 1] }) {}

/** As C4Spmd22BAdam1xv4_8, for 300 steps. */
export class C4Spmd22BAdam1xv4_8LimitSteps extends C4Spmd22BAdam1xv4_8.preset({ numTrainSteps: 300 }) {}

/** As C4Spmd22BAdam2xv4_8, for 300 steps. */
export class C4Spmd22BAdam2xv4_8LimitSteps extends C4Spmd22BAdam2xv4_8.preset({ numTrainSteps: 300 }) {}

/** As C4Spmd22BAdam4xv4_8, for 300 steps. */
export class C4Spmd22BAdam4xv4_8LimitSteps extends C4Spmd22BAdam4xv4_8.preset({ numTrainSteps: 300 }) {}

/** GPT-3 on two slices of 256 devices that share no weights, 256 rows a step, for 100 steps. */
export class C4SpmdGpt3AdamDataParallel2x16x16 extends C4SpmdGpt3AdamOrgHP.preset({
  percoreBatchSize: 0.5,
  iciMeshShape: [1, 16, 16],
  dcnMeshShape: [2, 1, 1],
  fpropDtype: 'bfloat16',
  checkpointEveryNSteps: 2000,
  numTrainSteps: 100,
}) {}
