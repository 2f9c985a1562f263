/** @file Language models on synthetic tokens from 0.1 million to a million million parameters: Pax's lm_cloud.py. */
import {
  type ActivationCls,
  ClassificationModelAdam,
  type FpropDtype,
  TransformerLmExperiment,
} from './modelParams.js';

/** An 8-layer MLP with large hidden layers, for eight devices. */
export class LargeMlp extends ClassificationModelAdam {
  override numLayer = 8;
  override inputDim = 4096;
  override hiddenDim = 7168;
  override iciMeshShape = [8, 1, 1];
}

/** An 8-layer MLP with small hidden layers, for eight devices. */
export class SmallMlp extends ClassificationModelAdam {
  override numLayer = 8;
  override inputDim = 1024;
  override hiddenDim = 1024;
  override iciMeshShape = [8, 1, 1];
}

/** A 32-layer model of 0.4 billion parameters, the same on every device (Pax's TransformerLmPmapAdam). */
export class LmCloudTransformerAdam extends TransformerLmExperiment {
  override numLayers = 32;
  override vocabSize = 32_000;
  override numHeads: number | null = 16;
  override dimsPerHead: number | null = null;
  override modelDims = 1024;
  override learningRate: number | null = 1e-3;
  override fpropDtype: FpropDtype = 'float32';
  override combineQkv = false;
  override softmaxCapLogits = 0;
}

/** As LmCloudTransformerAdam with two layers. */
export class LmCloudTransformerAdamTest extends LmCloudTransformerAdam {
  override numLayers = 2;
}

/** As LmCloudTransformerAdam with ten layers, for 2000 steps. */
export class LmCloudTransformerAdamLimitSteps extends LmCloudTransformerAdam {
  override numLayers = 10;
  override numTrainSteps = 2000;
}

/** Models for a mesh of devices: GELU, heads of depth 128. */
export abstract class LmCloudSpmd extends TransformerLmExperiment {
  override numLayers = 10;
  override modelDims = 2048;
  override activationCls: ActivationCls = 'GELU';
}

/** A model of 2 million parameters for one device, to try things on the machine at hand. */
export class LmCloudSpmdTest extends LmCloudSpmd {
  override percoreBatchSize = 4;
  override numLayers = 2;
  override modelDims = 64;
  override dimsPerHead: number | null = 8;
}

/** 2 billion parameters on 4 devices, 32 rows a step. */
export class LmCloudSpmd2B extends LmCloudSpmd {
  override percoreBatchSize = 8;
  override numLayers = 18;
  override modelDims = 3072;
  override iciMeshShape = [1, 4, 1];
}

/** As LmCloudSpmd2B, for 300 steps. */
export class LmCloudSpmd2BLimitSteps extends LmCloudSpmd2B {
  override numTrainSteps = 300;
}

/** 32 billion parameters on 64 devices, 512 rows a step. */
export class LmCloudSpmd32B extends LmCloudSpmd {
  override percoreBatchSize = 8;
  override numLayers = 40;
  override modelDims = 8192;
  override iciMeshShape = [1, 16, 4];
}

/** 64 billion parameters on 128 devices, 512 rows a step. */
export class LmCloudSpmd64B extends LmCloudSpmd {
  override percoreBatchSize = 4;
  override numLayers = 51;
  override modelDims = 10_240;
  override iciMeshShape = [1, 16, 8];
}

/** 128 billion parameters on 256 devices, 1024 rows a step. */
export class LmCloudSpmd128B extends LmCloudSpmd {
  override percoreBatchSize = 4;
  override numLayers = 71;
  override modelDims = 12_288;
  override iciMeshShape = [1, 64, 4];
}

/** 256 billion parameters on 512 devices, 2048 rows a step. */
export class LmCloudSpmd256B extends LmCloudSpmd {
  override percoreBatchSize = 4;
  override numLayers = 80;
  override modelDims = 16_384;
  override iciMeshShape = [1, 64, 8];
}

/** 512 billion parameters on 1024 devices, 4096 rows a step. */
export class LmCloudSpmd512B extends LmCloudSpmd {
  override percoreBatchSize = 4;
  override numLayers = 102;
  override modelDims = 20_480;
  override iciMeshShape = [1, 64, 16];
}

/** 1024 billion parameters on 2048 devices, 4096 rows a step. */
export class LmCloudSpmd1024B extends LmCloudSpmd {
  override percoreBatchSize = 2;
  override numLayers = 142;
  override modelDims = 24_576;
  override iciMeshShape = [1, 256, 8];
}

/** 9 billion parameters on 64 devices, 512 rows a step. In Pax, the 16 of the data axis are stages of a pipeline. */
export class LmCloudSpmd9B extends LmCloudSpmd {
  override percoreBatchSize = 8;
  override numLayers = 48;
  override modelDims = 4096;
  override fpropDtype: FpropDtype = 'float32';
  override iciMeshShape = [4, 16, 1];
}

/** 175 billion parameters on 8 slices of 16 devices, 96 rows a step. In Pax, the slices are stages of a pipeline. */
export class LmCloudSpmd175B extends LmCloudSpmd {
  override percoreBatchSize = 0.75;
  override numLayers = 96;
  override modelDims = 12_288;
  override numHeads: number | null = 96;
  override maxSeqLen = 2048;
  override iciMeshShape = [1, 1, 16];
  override dcnMeshShape = [1, 8, 1];
}

/** 2 billion parameters on two slices of 4 devices, 128 rows a step. */
export class LmCloudSpmdMultislice2B extends LmCloudSpmd {
  override percoreBatchSize = 16;
  override numLayers = 18;
  override modelDims = 3072;
  override iciMeshShape = [1, 4, 1];
  override dcnMeshShape = [2, 1, 1];
}
