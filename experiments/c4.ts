/** @file Language models of 1 to 175 billion parameters on text, GPT-3 with MLPerf's constants among them: Pax's c4.py. */
import { z } from 'zod';
import { type BaseInput, ByteTokenizer, type Config, type PaxLmOptions, TextInput } from '../src/index.js';
import {
  type ActivationCls,
  type FpropDtype,
  type LrSchedule,
  TransformerLmExperiment,
} from './modelParams.js';

const files = (path: string) => z.array(z.string().min(1)).min(1).default([path]);

/** Models on a mesh of devices, trained with Adam. */
export abstract class TransformerLmSpmdAdam extends TransformerLmExperiment {
  override numLayers = 32;
  override numHeads: number | null = 16;
  override modelDims = 1024;
  override fpropDtype: FpropDtype = 'float32';
  override learningRate: number | null = 1e-3;
}

/** Two layers on synthetic tokens, for 8 devices. */
export class LmCloudSpmdAdam extends TransformerLmSpmdAdam {
  override numLayers = 2;
  override modelDims = 2048;
  override activationCls: ActivationCls = 'GELU';
  override iciMeshShape = [1, 4, 2];
}

/** As LmCloudSpmdAdam, for 4000 steps. */
export class LmCloudSpmdAdamLimitSteps extends LmCloudSpmdAdam {
  override numTrainSteps = 4000;
}

/**
 * The base of the models on text: 24 layers, 1.3 billion parameters, on 8 devices.
 *
 * Pax reads C4 (en/3.0.4) through a SentencePiece vocabulary, neither of which comes with this project. Here every
 * file that `trainFiles` and `evalFiles` name is a document of one's own, read as UTF-8 bytes: the model keeps the
 * published vocabulary, and so its published size, and sees only the first 256 tokens of it. Perplexities are those
 * of bytes and can't be compared with published ones. The files are looked for when a batch is read, so that
 * everything short of training works without them. Evaluation packs documents as training does; Pax gives each a row.
 */
export class C4SpmdAdam extends TransformerLmSpmdAdam.with({
  trainFiles: files('data/c4/train/**/*.txt').describe(
    'Text to train on: paths and globs, a document a file.',
  ),
  evalFiles: files('data/c4/validation/**/*.txt').describe('Text to evaluate on, likewise.'),
  percoreEvalBatchSize: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe('Rows of an evaluation batch for each device; null: percoreBatchSize.'),
  trainingSeed: z.int().nonnegative().default(9876).describe('Seed of the order of the text.'),
}) {
  override percoreBatchSize = 1;
  override numLayers = 24;
  override numHeads: number | null = 32;
  override modelDims = 2048;
  override dimsPerHead: number | null = null;
  override vocabSize = 32_128;
  override activationCls: ActivationCls = 'GELU';
  override checkpointEveryNSteps = 1000;
  override iciMeshShape = [1, 4, 2];

  override datasets(): Config<BaseInput>[] {
    const text = {
      tokenizer: ByteTokenizer.config(),
      seqLen: this.maxSeqLen,
      packed: this.packedInput,
      split: 'all',
    } as const;
    return [
      TextInput.config({
        ...text,
        name: 'C4Train',
        files: this.trainFiles,
        batchSize: this.globalBatchSize(),
        isTraining: true,
        inputRandomSeed: this.trainingSeed,
      }),
      TextInput.config({
        ...text,
        name: 'C4Validation',
        files: this.evalFiles,
        batchSize: this.globalBatchSize(this.percoreEvalBatchSize ?? this.percoreBatchSize),
        evalLoopNumBatches: -1,
        resetForEval: true,
      }),
    ];
  }
}

/** 1 billion parameters on 4 devices, 128 rows a step. */
export class C4Spmd1BAdam4Replicas extends C4SpmdAdam {
  override numLayers = 13;
  override modelDims = 2560;
  override numHeads: number | null = 20;
  override dimsPerHead: number | null = 128;
  override percoreBatchSize = 32;
  override vocabSize = 32_000;
  override fpropDtype: FpropDtype = 'bfloat16';
  override summaryIntervalSteps = 10;
  override iciMeshShape = [1, 4, 1];
}

/** As C4Spmd1BAdam4Replicas, for 15000 steps. */
export class C4Spmd1BAdam4ReplicasLimitSteps extends C4Spmd1BAdam4Replicas {
  override numTrainSteps = 15_000;
}

/** 2 billion parameters on 4 devices, 128 rows a step. */
export class C4Spmd2BAdam4Replicas extends C4SpmdAdam {
  override numLayers = 18;
  override modelDims = 3072;
  override numHeads: number | null = 24;
  override dimsPerHead: number | null = 128;
  override percoreBatchSize = 32;
  override vocabSize = 32_000;
  override fpropDtype: FpropDtype = 'bfloat16';
  override summaryIntervalSteps = 10;
  override iciMeshShape = [1, 4, 1];
}

/** 16 billion parameters on 32 devices, 512 rows a step. */
export class C4Spmd16BAdam32Replicas extends C4SpmdAdam {
  override numLayers = 36;
  override modelDims = 6144;
  override numHeads: number | null = 48;
  override dimsPerHead: number | null = 128;
  override percoreBatchSize = 16;
  override vocabSize = 32_000;
  override fpropDtype: FpropDtype = 'bfloat16';
  override summaryIntervalSteps = 10;
  override iciMeshShape = [1, 16, 2];
}

/** 32 billion parameters on 64 devices, 512 rows a step. */
export class C4Spmd32BAdam64Replicas extends C4SpmdAdam {
  override numLayers = 40;
  override modelDims = 8192;
  override numHeads: number | null = 64;
  override dimsPerHead: number | null = 128;
  override percoreBatchSize = 8;
  override vocabSize = 32_000;
  override fpropDtype: FpropDtype = 'bfloat16';
  override summaryIntervalSteps = 10;
  override iciMeshShape = [1, 16, 4];
}

/**
 * GPT-3 of 175 billion parameters with the constants of its paper (Brown et al., 2020), as matched with Megatron-LM.
 *
 * Pax stops such a run at a log-perplexity of 2.69 on its validation set; stopping early does not exist here. Its
 * pipelined variants stand below as models that are not cut into stages: the devices of the stages count to the
 * data axis, so that devices and batches are the same.
 */
export class C4SpmdGpt3AdamOrgHP extends C4SpmdAdam {
  override maxSeqLen = 2048;
  override numLayers = 96;
  override numHeads: number | null = 96;
  override modelDims = 12_288;
  override vocabSize = 50_257;
  override trainablePositionEmb = true;
  override useBias = true;
  override attenLogitCap = 0;
  override softmaxCapLogits = 0;
  override layernormEpsilon = 1e-5;
  override learningRate: number | null = 6e-5;
  override weightDecay = 0.1;
  override adamBeta2 = 0.95;
  override adamEpsilon = 1e-8;
  override adamClipThreshold = 0;
  override clipGradientNormToValue = 1;
  override lrSchedule: LrSchedule = 'linear_rampup_cosine_decay';
  override lrWarmup: number | null = 265;
  override lrDecayEnd: number | null = 108_600;
  override summaryIntervalSteps = 10;
  override checkpointEveryNSteps = 100;

  protected override lmOptions(): PaxLmOptions {
    const plain = { perDimScale: false, scaleSqrtDepth: false, softmaxBias: false };
    return { ...super.lmOptions(), ...plain, initStd: 0.006 };
  }
}

/** GPT-3 on 1536 devices, 1536 rows a step. */
export class C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas extends C4SpmdGpt3AdamOrgHP {
  // A multiple of 1024 suits the devices better than 50257.
  override vocabSize = 51_200;
  override percoreBatchSize = 1;
  override checkpointMaxToKeep = 100;
  override evalIntervalSteps = 25;
  override summaryIntervalSteps = 1;
  override iciMeshShape = [1, 64, 24];
}

/** GPT-3 on 768 devices, 1536 rows a step (Pax: 8 stages). */
export class C4SpmdGpt3AdamOrgHPBS1p5k768Replicas extends C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas {
  override percoreBatchSize = 2;
  override checkpointEveryNSteps = 50;
  override iciMeshShape = [1, 64, 12];
}

/**
 * GPT-3 as MLPerf Training has it: evaluated every 24 * 1024 rows; warm-up, decay and learning rate follow from the
 * size of the batch.
 */
export abstract class C4SpmdGpt3AdamMLPerfHP extends C4SpmdGpt3AdamOrgHP {
  override vocabSize = 51_200;
  override summaryIntervalSteps = 1;
  override checkpointMaxToKeep = 100;
  override learningRate: number | null = null;
  override lrWarmup: number | null = null;
  override lrDecayEnd: number | null = null;
}

/** MLPerf's GPT-3 on 768 devices, 1536 rows a step (Pax: 8 stages). */
export class C4SpmdGpt3AdamMLPerfHPBS1p5k768Replicas extends C4SpmdGpt3AdamMLPerfHP {
  override percoreBatchSize = 2;
  override evalIntervalSteps = 16;
  override checkpointEveryNSteps = 32;
  override iciMeshShape = [1, 64, 12];
}

/** MLPerf's GPT-3 on 512 devices, 2048 rows a step (Pax: 8 stages). */
export class C4SpmdGpt3AdamMLPerfHPBS2k512Replicas extends C4SpmdGpt3AdamMLPerfHP {
  override percoreBatchSize = 4;
  override evalIntervalSteps = 12;
  override checkpointEveryNSteps = 24;
  override iciMeshShape = [1, 64, 8];
}

/** MLPerf's GPT-3 on 768 devices, 3072 rows a step (Pax: 4 stages). */
export class C4SpmdGpt3AdamMLPerfHPBS3k768Replicas extends C4SpmdGpt3AdamMLPerfHP {
  override percoreBatchSize = 4;
  override evalIntervalSteps = 8;
  override checkpointEveryNSteps = 16;
  override iciMeshShape = [1, 64, 12];
}

/** MLPerf's GPT-3 on 1024 devices, 4096 rows a step (Pax: 8 stages). */
export class C4SpmdGpt3AdamMLPerfHPBS4k1024Replicas extends C4SpmdGpt3AdamMLPerfHP {
  override percoreBatchSize = 4;
  override evalIntervalSteps = 6;
  override checkpointEveryNSteps = 12;
  override iciMeshShape = [1, 64, 16];
}

/** MLPerf's GPT-3 on 1024 devices, 8192 rows a step (Pax: 4 stages). */
export class C4SpmdGpt3AdamMLPerfHPBS8k1024Replicas extends C4SpmdGpt3AdamMLPerfHP {
  override percoreBatchSize = 8;
  override evalIntervalSteps = 3;
  override checkpointEveryNSteps = 6;
  override iciMeshShape = [1, 64, 16];
}

/** GPT-3 with 16 of its 96 layers, on 64 devices, 192 rows a step. */
export class C4SpmdGpt3L16AdamOrgHP extends C4SpmdGpt3AdamOrgHP {
  override numLayers = 16;
  override fpropDtype: FpropDtype = 'bfloat16';
  override percoreBatchSize = 3;
  override evalIntervalSteps = 25_000;
  override iciMeshShape = [1, 16, 4];
}

/** A small GPT-3 of 2.7 billion parameters on 8 devices, 512 rows a step (Pax: 2 stages). */
export class C4SpmdGpt3SmallAdam8Replicas extends C4SpmdGpt3AdamOrgHP {
  override numLayers = 24;
  override numHeads: number | null = 24;
  override modelDims = 3072;
  override dimsPerHead: number | null = 128;
  override vocabSize = 51_200;
  override percoreBatchSize = 64;
  override fpropDtype: FpropDtype = 'bfloat16';
  override learningRate: number | null = 2e-4;
  override checkpointMaxToKeep = 1000;
  override evalIntervalSteps = 10;
  override summaryIntervalSteps = 5;
  override checkpointEveryNSteps = 200;
  override iciMeshShape = [1, 4, 2];
}

/** As C4SpmdGpt3SmallAdam8Replicas on 64 devices (Pax: 4 stages). */
export class C4SpmdGpt3SmallAdam64Replicas extends C4SpmdGpt3SmallAdam8Replicas {
  // In Pax misspelt as PER_CORE_BATCH_SIZE, and so without effect.
  override percoreBatchSize = 8;
  override evalIntervalSteps = 100;
  override summaryIntervalSteps = 1;
  override iciMeshShape = [1, 16, 4];
}
