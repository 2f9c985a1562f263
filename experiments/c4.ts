/** @file Language models of 1 to 175 billion parameters on text, GPT-3 with MLPerf's constants among them: Pax's c4.py. */
import { z } from 'zod';
import { type BaseInput, ByteTokenizer, type Config, TextInput } from '../src/index.js';
import type { PaxLmOptions } from '../src/models/index.js';
import { StopAtTarget } from '../src/tasks/index.js';
import { TransformerLmExperiment } from './modelParams.js';

const files = (path: string) => z.array(z.string().min(1)).min(1).default([path]);

/** Models on a mesh of devices, trained with Adam. */
export abstract class TransformerLmSpmdAdam extends TransformerLmExperiment.preset({
  numLayers: 32,
  numHeads: 16,
  modelDims: 1024,
  fpropDtype: 'float32',
  learningRate: 1e-3,
}) {}

/** Two layers on synthetic tokens, for 8 devices. */
export class LmCloudSpmdAdam extends TransformerLmSpmdAdam.preset({
  numLayers: 2,
  modelDims: 2048,
  activationCls: 'GELU',
  iciMeshShape: [1, 4, 2],
}) {}

/** As LmCloudSpmdAdam, for 4000 steps. */
export class LmCloudSpmdAdamLimitSteps extends LmCloudSpmdAdam.preset({ numTrainSteps: 4000 }) {}

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
}).preset({
  percoreBatchSize: 1,
  numLayers: 24,
  numHeads: 32,
  modelDims: 2048,
  dimsPerHead: null,
  vocabSize: 32_128,
  activationCls: 'GELU',
  checkpointPolicy: 'SAVE_DOT_FOR_MLPERF_200B',
  checkpointEveryNSteps: 1000,
  iciMeshShape: [1, 4, 2],
}) {
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
export class C4Spmd1BAdam4Replicas extends C4SpmdAdam.preset({
  numLayers: 13,
  modelDims: 2560,
  numHeads: 20,
  dimsPerHead: 128,
  percoreBatchSize: 32,
  vocabSize: 32_000,
  fpropDtype: 'bfloat16',
  useRepeatedLayer: true,
  checkpointPolicy: 'SAVE_NOTHING',
  summaryIntervalSteps: 10,
  iciMeshShape: [1, 4, 1],
}) {}

/** As C4Spmd1BAdam4Replicas, for 15000 steps. */
export class C4Spmd1BAdam4ReplicasLimitSteps extends C4Spmd1BAdam4Replicas.preset({
  numTrainSteps: 15_000,
}) {}

/** 2 billion parameters on 4 devices, 128 rows a step. */
export class C4Spmd2BAdam4Replicas extends C4SpmdAdam.preset({
  numLayers: 18,
  modelDims: 3072,
  numHeads: 24,
  dimsPerHead: 128,
  percoreBatchSize: 32,
  vocabSize: 32_000,
  fpropDtype: 'bfloat16',
  useRepeatedLayer: true,
  checkpointPolicy: 'SAVE_NOTHING',
  summaryIntervalSteps: 10,
  iciMeshShape: [1, 4, 1],
}) {}

/** 16 billion parameters on 32 devices, 512 rows a step. */
export class C4Spmd16BAdam32Replicas extends C4SpmdAdam.preset({
  numLayers: 36,
  modelDims: 6144,
  numHeads: 48,
  dimsPerHead: 128,
  percoreBatchSize: 16,
  vocabSize: 32_000,
  fpropDtype: 'bfloat16',
  useRepeatedLayer: true,
  checkpointPolicy: 'SAVE_NOTHING',
  summaryIntervalSteps: 10,
  iciMeshShape: [1, 16, 2],
}) {}

/** 32 billion parameters on 64 devices, 512 rows a step. */
export class C4Spmd32BAdam64Replicas extends C4SpmdAdam.preset({
  numLayers: 40,
  modelDims: 8192,
  numHeads: 64,
  dimsPerHead: 128,
  percoreBatchSize: 8,
  vocabSize: 32_000,
  fpropDtype: 'bfloat16',
  useRepeatedLayer: true,
  checkpointPolicy: 'SAVE_NOTHING',
  summaryIntervalSteps: 10,
  iciMeshShape: [1, 16, 4],
}) {}

/** GPT-3 of 175 billion parameters with the constants of its paper (Brown et al., 2020), as matched with Megatron-LM. */
export class C4SpmdGpt3AdamOrgHP extends C4SpmdAdam.with({
  targetLogPplx: z
    .number()
    .nullable()
    .default(2.69)
    .describe('Log-perplexity of an evaluation on C4Validation at which training stops; null: it goes on.'),
}).preset({
  maxSeqLen: 2048,
  numLayers: 96,
  numHeads: 96,
  modelDims: 12_288,
  vocabSize: 50_257,
  useRepeatedLayer: true,
  checkpointPolicy: 'SAVE_NOTHING',
  trainablePositionEmb: true,
  useBias: true,
  attenLogitCap: 0,
  softmaxCapLogits: 0,
  layernormEpsilon: 1e-5,
  learningRate: 6e-5,
  weightDecay: 0.1,
  adamBeta2: 0.95,
  adamEpsilon: 1e-8,
  adamClipThreshold: 0,
  clipGradientNormToValue: 1,
  lrSchedule: 'linear_rampup_cosine_decay',
  lrWarmup: 265,
  lrDecayEnd: 108_600,
  summaryIntervalSteps: 10,
  checkpointEveryNSteps: 100,
}) {
  protected override lmOptions(): PaxLmOptions {
    const plain = { perDimScale: false, scaleSqrtDepth: false, softmaxBias: false };
    return { ...super.lmOptions(), ...plain, initStd: 0.006 };
  }

  override task() {
    const task = super.task();
    const metric = 'eval_test_C4Validation/metrics/log_pplx';
    if (this.targetLogPplx !== null)
      task.earlyStoppingFn = StopAtTarget.config({ metric, target: this.targetLogPplx });
    return task;
  }
}

/** GPT-3 on 1536 devices, 1536 rows a step. */
export class C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas extends C4SpmdGpt3AdamOrgHP.preset({
  // A multiple of 1024 suits the devices better than 50257.
  vocabSize: 51_200,
  percoreBatchSize: 1,
  checkpointMaxToKeep: 100,
  evalIntervalSteps: 25,
  summaryIntervalSteps: 1,
  iciMeshShape: [1, 64, 24],
}) {}

/** GPT-3 in stages, for a mesh whose first axis is theirs. Pax's keep products for the gradient (SAVE_DOT_FOR_MLPERF_200B), these nothing. */
export abstract class C4SpmdPipelineGpt3AdamOrgHP extends C4SpmdGpt3AdamOrgHP.preset({
  useRepeatedLayer: false,
}) {}

/** GPT-3 in 8 stages on 768 devices, 1536 rows a step. */
export class C4SpmdPipelineGpt3AdamOrgHPBS1p5k768Replicas extends C4SpmdPipelineGpt3AdamOrgHP.preset({
  vocabSize: 51_200,
  checkpointMaxToKeep: 100,
  evalIntervalSteps: 25,
  summaryIntervalSteps: 1,
  numStages: 8,
  // In Pax misspelt as MICROBATCH_SIAZE; here as it is meant.
  microbatchSize: 8,
  percoreBatchSize: 2,
  checkpointEveryNSteps: 50,
  iciMeshShape: [8, 1, 8, 12],
}) {}

/**
 * GPT-3 as MLPerf Training has it: evaluated every 24 * 1024 rows; warm-up, decay and learning rate follow from the
 * size of the batch.
 */
export abstract class C4SpmdPipelineGpt3AdamMLPerfHP extends C4SpmdPipelineGpt3AdamOrgHP.preset({
  vocabSize: 51_200,
  summaryIntervalSteps: 1,
  checkpointMaxToKeep: 100,
  learningRate: null,
  lrWarmup: null,
  lrDecayEnd: null,
}) {}

/** MLPerf's GPT-3 in 8 stages on 768 devices, 1536 rows a step. */
export class C4SpmdPipelineGpt3AdamMLPerfHPBS1p5k768Replicas extends C4SpmdPipelineGpt3AdamMLPerfHP.preset({
  numStages: 8,
  microbatchSize: 8,
  percoreBatchSize: 2,
  evalIntervalSteps: 16,
  checkpointEveryNSteps: 32,
  iciMeshShape: [8, 1, 8, 12],
}) {}

/** MLPerf's GPT-3 in 8 stages on 512 devices, 2048 rows a step. */
export class C4SpmdPipelineGpt3AdamMLPerfHPBS2k512Replicas extends C4SpmdPipelineGpt3AdamMLPerfHP.preset({
  numStages: 8,
  microbatchSize: 8,
  streamIo: true,
  percoreBatchSize: 4,
  evalIntervalSteps: 12,
  checkpointEveryNSteps: 24,
  iciMeshShape: [8, 1, 8, 8],
}) {}

/** MLPerf's GPT-3 in 4 stages on 768 devices, 3072 rows a step. */
export class C4SpmdPipelineGpt3AdamMLPerfHPBS3k768Replicas extends C4SpmdPipelineGpt3AdamMLPerfHP.preset({
  numStages: 4,
  microbatchSize: 16,
  streamIo: true,
  percoreBatchSize: 4,
  evalIntervalSteps: 8,
  checkpointEveryNSteps: 16,
  iciMeshShape: [4, 1, 16, 12],
}) {}

/** MLPerf's GPT-3 in 8 stages on 1024 devices, 4096 rows a step. */
export class C4SpmdPipelineGpt3AdamMLPerfHPBS4k1024Replicas extends C4SpmdPipelineGpt3AdamMLPerfHP.preset({
  numStages: 8,
  microbatchSize: 8,
  streamIo: true,
  percoreBatchSize: 4,
  evalIntervalSteps: 6,
  checkpointEveryNSteps: 12,
  iciMeshShape: [8, 1, 8, 16],
}) {}

/** MLPerf's GPT-3 in 4 stages on 1024 devices, 8192 rows a step. */
export class C4SpmdPipelineGpt3AdamMLPerfHPBS8k1024Replicas extends C4SpmdPipelineGpt3AdamMLPerfHP.preset({
  numStages: 4,
  microbatchSize: 16,
  streamIo: true,
  percoreBatchSize: 8,
  evalIntervalSteps: 3,
  checkpointEveryNSteps: 6,
  iciMeshShape: [4, 1, 16, 16],
}) {}

/** GPT-3 with 16 of its 96 layers, on 64 devices, 192 rows a step. */
export class C4SpmdGpt3L16AdamOrgHP extends C4SpmdGpt3AdamOrgHP.preset({
  numLayers: 16,
  fpropDtype: 'bfloat16',
  percoreBatchSize: 3,
  evalIntervalSteps: 25_000,
  iciMeshShape: [1, 16, 4],
}) {}

/** A small GPT-3 of 2.7 billion parameters in two stages on 8 devices, 512 rows a step. */
export class C4SpmdPipelineGpt3SmallAdam8Replicas extends C4SpmdPipelineGpt3AdamOrgHP.preset({
  numStages: 2,
  microbatchSize: 8,
  numLayers: 24,
  numHeads: 24,
  modelDims: 3072,
  dimsPerHead: 128,
  vocabSize: 51_200,
  percoreBatchSize: 64,
  fpropDtype: 'bfloat16',
  learningRate: 2e-4,
  checkpointMaxToKeep: 1000,
  evalIntervalSteps: 10,
  summaryIntervalSteps: 5,
  checkpointEveryNSteps: 200,
  iciMeshShape: [2, 1, 2, 2],
}) {}

/** As C4SpmdPipelineGpt3SmallAdam8Replicas in four stages on 64 devices. */
export class C4SpmdPipelineGpt3SmallAdam64Replicas extends C4SpmdPipelineGpt3SmallAdam8Replicas.preset({
  numStages: 4,
  microbatchSize: 16,
  // In Pax misspelt as PER_CORE_BATCH_SIZE, and so without effect.
  percoreBatchSize: 8,
  evalIntervalSteps: 100,
  summaryIntervalSteps: 1,
  iciMeshShape: [4, 1, 4, 4],
}) {}
