/** @file Language models on several slices of devices: Pax's c4_multislice.py. */
import { C4SpmdAdam, C4SpmdGpt3AdamOrgHP } from './c4.js';
import type { FpropDtype } from './modelParams.js';

/** MaxText's model of 22 billion parameters, on 8 devices, 128 rows a step. `translateMaxText` gives its constants. */
export class C4Spmd22BAdamMaxText extends C4SpmdAdam {
  override numLayers = 48;
  override modelDims = 6144;
  override hiddenDims: number | null = 24_576;
  override numHeads: number | null = 24;
  override dimsPerHead: number | null = 256;
  override percoreBatchSize = 16;
  override maxSeqLen = 1024;
  override vocabSize = 32_768;
  override fpropDtype: FpropDtype = 'bfloat16';
  override summaryIntervalSteps = 10;
}

/** 22 billion parameters on one slice of 64 devices (v4-128), 1024 rows a step. */
export class C4Spmd22BAdam1xv4_128 extends C4Spmd22BAdamMaxText {
  override iciMeshShape = [1, 64, 1];
}

/** 22 billion parameters on two slices of 64 devices, 2048 rows a step. */
export class C4Spmd22BAdam2xv4_128 extends C4Spmd22BAdam1xv4_128 {
  override dcnMeshShape = [2, 1, 1];
}

/** 22 billion parameters on four slices of 64 devices, 4096 rows a step. */
export class C4Spmd22BAdam4xv4_128 extends C4Spmd22BAdam1xv4_128 {
  override dcnMeshShape = [4, 1, 1];
}

/** As C4Spmd22BAdam1xv4_128, for 300 steps. */
export class C4Spmd22BAdam1xv4_128LimitSteps extends C4Spmd22BAdam1xv4_128 {
  override numTrainSteps = 300;
}

/** As C4Spmd22BAdam2xv4_128, for 300 steps. */
export class C4Spmd22BAdam2xv4_128LimitSteps extends C4Spmd22BAdam2xv4_128 {
  override numTrainSteps = 300;
}

/** As C4Spmd22BAdam4xv4_128, for 300 steps. */
export class C4Spmd22BAdam4xv4_128LimitSteps extends C4Spmd22BAdam4xv4_128 {
  override numTrainSteps = 300;
}

/** 25 billion parameters in wider layers on one slice of 192 devices (v4-384), 1920 rows a step. */
export class C4Spmd22BAdam1xv4_384 extends C4Spmd22BAdamMaxText {
  override numLayers = 24;
  override modelDims = 9216;
  override hiddenDims: number | null = 36_864;
  override dimsPerHead: number | null = 384;
  override percoreBatchSize = 10;
  override iciMeshShape = [1, 192, 1];
}

/** As C4Spmd22BAdam1xv4_384 on two slices, 3840 rows a step. */
export class C4Spmd22BAdam2xv4_384 extends C4Spmd22BAdam1xv4_384 {
  override dcnMeshShape = [2, 1, 1];
}

/** MaxText's model before it is scaled by 3, on one slice of 4 devices (v4-8), 64 rows a step. */
export class C4Spmd22BAdam1xv4_8 extends C4Spmd22BAdamMaxText {
  override numLayers = 16;
  override modelDims = 2048;
  override hiddenDims: number | null = 8192;
  override numHeads: number | null = 8;
  override iciMeshShape = [1, 4, 1];
}

/** As C4Spmd22BAdam1xv4_8 on two slices, 128 rows a step. */
export class C4Spmd22BAdam2xv4_8 extends C4Spmd22BAdam1xv4_8 {
  override dcnMeshShape = [2, 1, 1];
}

/** As C4Spmd22BAdam1xv4_8 on four slices, 256 rows a step. */
export class C4Spmd22BAdam4xv4_8 extends C4Spmd22BAdam1xv4_8 {
  override dcnMeshShape = [4, 1, 1];
}

/** As C4Spmd22BAdam1xv4_8, for 300 steps. */
export class C4Spmd22BAdam1xv4_8LimitSteps extends C4Spmd22BAdam1xv4_8 {
  override numTrainSteps = 300;
}

/** As C4Spmd22BAdam2xv4_8, for 300 steps. */
export class C4Spmd22BAdam2xv4_8LimitSteps extends C4Spmd22BAdam2xv4_8 {
  override numTrainSteps = 300;
}

/** As C4Spmd22BAdam4xv4_8, for 300 steps. */
export class C4Spmd22BAdam4xv4_8LimitSteps extends C4Spmd22BAdam4xv4_8 {
  override numTrainSteps = 300;
}

/** GPT-3 on two slices of 256 devices that share no weights, 256 rows a step, for 100 steps. */
export class C4SpmdGpt3AdamDataParallel2x16x16 extends C4SpmdGpt3AdamOrgHP {
  override percoreBatchSize = 0.5;
  override iciMeshShape = [1, 16, 16];
  override dcnMeshShape = [2, 1, 1];
  override fpropDtype: FpropDtype = 'bfloat16';
  override checkpointEveryNSteps = 2000;
  override numTrainSteps = 100;
}
