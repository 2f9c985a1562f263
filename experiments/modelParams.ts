/** @file What the experiments that Pax ships have in common (paxml/tasks/lm/model_params.py): mesh, model, optimizer. */
import { z } from 'zod';
import {
  Adam,
  type BaseInput,
  type Config,
  ConfigError,
  Experiment,
  LanguageModel,
  Learner,
  LinearRampupCosineDecay,
  SingleTask,
  SyntheticLmInput,
  Train,
} from '../src/index.js';
import { LinearRampupExponentialDecay } from '../src/learners/index.js';
import {
  ClassificationMLPModel,
  type PaxLmOptions,
  type PaxPipeline,
  paxActivations,
  paxLm,
  paxNormalizations,
  paxSplits,
} from '../src/models/index.js';
import { Mesh } from '../src/tasks/index.js';

const positive = z.int().positive();
const meshShape = z.array(positive).min(3).max(4);

const fpropDtypes = ['float32', 'bfloat16'] as const;
const policies = [
  'SAVE_NOTHING',
  'SAVE_EVERYTHING',
  'SAVE_CONTEXT_AND_OUT_PROJ',
  'SAVE_DOT_FOR_MLPERF_200B',
] as const;
const lrSchedules = ['linear_rampup_exponential_decay', 'linear_rampup_cosine_decay'] as const;

/**
 * Experiments for a mesh of devices, trained with Adam on synthetic tokens, as Pax's SyntheticDataset.
 *
 * The mesh decides how many devices there are, how many rows a global batch has, and what `luthier analyze` says a device
 * holds. These experiments are built, traced and analysed at their published sizes; those that fit into one machine also train.
 */
export abstract class MeshExperiment extends Experiment.with({
  percoreBatchSize: z
    .number()
    .positive()
    .default(16)
    .describe('Rows of a training batch for each device; a fraction where devices share a row.'),
  maxSeqLen: positive.default(1024).describe('Tokens of a row.'),
  iciMeshShape: meshShape
    .default([1, 1, 1])
    .describe(
      'Devices of a slice along the axes replica, data and mdl, of a pipeline along stage before them.',
    ),
  dcnMeshShape: meshShape
    .nullable()
    .default(null)
    .describe('Slices along the same axes; devices of two slices share no fast network. null: one slice.'),
  numTrainSteps: positive.default(10_000_000).describe('Training steps.'),
  learningRate: z
    .number()
    .positive()
    .nullable()
    .default(2.5e-4)
    .describe("The highest learning rate; null: MLPerf's, 2e-5 for batches of up to 3584 rows, else 3e-5."),
  weightDecay: z.number().nonnegative().default(1e-3).describe('Decoupled weight decay of all variables.'),
  clipGradientNormToValue: z
    .number()
    .nonnegative()
    .default(5)
    .describe('Largest norm of all gradients together; 0 does not clip.'),
  adamBeta1: z.number().min(0).lt(1).default(0.9).describe("Adam's decay of gradients."),
  adamBeta2: z.number().min(0).lt(1).default(0.99).describe("Adam's decay of squared gradients."),
  adamEpsilon: z.number().positive().default(1e-6).describe("Added to the root of Adam's denominator."),
  adamClipThreshold: z
    .number()
    .nonnegative()
    .default(1)
    .describe("Largest root mean square of one variable's update; 0 does not limit (Pax: -1)."),
  lrSchedule: z
    .enum(lrSchedules)
    .default('linear_rampup_exponential_decay')
    .describe('How the learning rate falls after the warm-up.'),
  lrWarmup: positive
    .nullable()
    .default(4000)
    .describe("Steps until the highest learning rate; null: MLPerf's, 265 steps of 1536 rows."),
  lrDecayEnd: positive
    .nullable()
    .default(300_000)
    .describe("The step from which the learning rate stays; null: MLPerf's, 108600 steps of 1536 rows."),
  lrMinRatio: z.number().positive().lt(1).default(0.1).describe('The last learning rate over the highest.'),
  checkpointEveryNSteps: positive.default(5000).describe('Steps between checkpoints.'),
  checkpointMaxToKeep: positive.default(10).describe('How many of the newest checkpoints stay.'),
  summaryIntervalSteps: positive.default(100).describe('Steps between summaries.'),
  evalIntervalSteps: positive.default(100).describe('Steps between evaluations.'),
}) {
  /** Devices of the mesh. */
  numDevices(): number {
    return [...this.iciMeshShape, ...(this.dcnMeshShape ?? [])].reduce((a, b) => a * b, 1);
  }

  /**
   * Rows of a batch of all devices.
   *
   * @throws ConfigError where that is no whole number.
   */
  globalBatchSize(percoreBatchSize = this.percoreBatchSize): number {
    const rows = percoreBatchSize * this.numDevices();
    const whole = Math.round(rows);
    // A third of a row for each of three devices is one row, up to rounding.
    if (whole >= 1 && Math.abs(rows - whole) < 1e-6) return whole;
    throw new ConfigError(
      `${this.constructor.name}: ${percoreBatchSize} rows for each of ${this.numDevices()} devices ` +
        `(iciMeshShape [${this.iciMeshShape}], dcnMeshShape ${this.dcnMeshShape && `[${this.dcnMeshShape}]`}) are ${rows} rows; ` +
        'a batch has a whole number of them.',
    );
  }

  override datasets(): Config<BaseInput>[] {
    const values = { batchSize: this.globalBatchSize(), seqLen: this.maxSeqLen, ...this.syntheticTokens() };
    return [
      SyntheticLmInput.config({ ...values, isTraining: true }),
      SyntheticLmInput.config({ ...values, inputRandomSeed: 1 }),
    ];
  }

  /** What synthetic rows hold. */
  protected abstract syntheticTokens(): { readonly vocabSize: number; readonly packed: boolean };

  protected train(): Config<Train> {
    return Train.config({
      learner: Learner.config({ optimizer: this.optimizer() }),
      numTrainSteps: this.numTrainSteps,
      saveIntervalSteps: this.checkpointEveryNSteps,
      saveMaxToKeep: this.checkpointMaxToKeep,
      summaryIntervalSteps: this.summaryIntervalSteps,
      evalIntervalSteps: this.evalIntervalSteps,
    });
  }

  /** The devices, with what is split over them (Pax's set_sharding_annotations_v1). */
  protected mesh(splits?: ReturnType<typeof paxSplits>): Config<Mesh> {
    const { iciMeshShape, dcnMeshShape } = this;
    const mesh = Mesh.config({ iciMeshShape, dcnMeshShape, ...splits });
    if (iciMeshShape.length === 4) mesh.meshAxisNames = ['stage', 'replica', 'data', 'mdl'];
    return mesh;
  }

  private optimizer(): Config<Adam> {
    return Adam.config({
      learningRate: this.learningRate ?? (this.globalBatchSize() <= 3584 ? 2e-5 : 3e-5),
      lrSchedule: this.schedule(),
      beta1: this.adamBeta1,
      beta2: this.adamBeta2,
      epsilon: this.adamEpsilon,
      clipThreshold: this.adamClipThreshold,
      decoupledWeightDecay: this.weightDecay,
      clipGradientNormToValue: this.clipGradientNormToValue,
    });
  }

  private schedule() {
    const Schedule =
      this.lrSchedule === 'linear_rampup_cosine_decay'
        ? LinearRampupCosineDecay
        : LinearRampupExponentialDecay;
    const warmupSteps = this.lrWarmup ?? this.mlperfSteps(265);
    return Schedule.config({
      warmupSteps,
      decayStart: warmupSteps + 1,
      decayEnd: this.lrDecayEnd ?? this.mlperfSteps(108_600),
      minRatio: this.lrMinRatio,
    });
  }

  /** So many steps that as many rows are seen as in `steps` steps of 1536 rows. */
  private mlperfSteps(steps: number): number {
    return Math.ceil((steps * 1536) / this.globalBatchSize());
  }
}

/** Decoder-only language models, as Pax's TransformerLmSpmdAdafactor with Adam. */
export abstract class TransformerLmExperiment extends MeshExperiment.with({
  numLayers: positive.default(10).describe('Transformer layers.'),
  modelDims: positive.default(2048).describe('Depth of the model.'),
  hiddenDims: positive
    .nullable()
    .default(null)
    .describe('Hidden depth of feed-forward layers; null: 4 modelDims.'),
  numHeads: positive
    .nullable()
    .default(null)
    .describe('Attention heads of a layer; null: modelDims / dimsPerHead.'),
  dimsPerHead: positive
    .nullable()
    .default(128)
    .describe('Depth of an attention head; null: modelDims / numHeads.'),
  vocabSize: positive.default(32_000).describe('Size of the vocabulary.'),
  fpropDtype: z
    .enum(fpropDtypes)
    .default('bfloat16')
    .describe('Type that matrix products round their operands to.'),
  packedInput: z.boolean().default(true).describe('Whether rows hold several documents.'),
  separateEmbedding: z
    .boolean()
    .default(false)
    .describe("Whether the embedding has a table of its own, instead of the softmax's weights."),
  trainablePositionEmb: z.boolean().default(false).describe('Trained positions instead of sinusoids.'),
  trainablePeMaxSeqLen: positive.default(16_384).describe('Rows of the table of trained positions.'),
  useRotaryPositionEmb: z.boolean().default(false).describe('Rotary positions beside the embedded ones.'),
  normPolicy: z
    .enum(['pre', 'primer_hybrid', 'post', 'post_skip'])
    .default('pre')
    .describe('Where norms stand: before the branch; around it; after it; after the sum.'),
  normalizationCls: z.enum(paxNormalizations).default('LayerNorm').describe('The class of the norms.'),
  layernormEpsilon: z.number().positive().default(1e-6).describe('Added to the variance in norms.'),
  activationCls: z.enum(paxActivations).default('ReLU').describe('The class of the activation function.'),
  useGatedActivation: z.boolean().default(false).describe('Whether feed-forward layers have a gate.'),
  combineQkv: z.boolean().default(true).describe('Whether query, key and value are one variable.'),
  useRepeatedLayer: z
    .boolean()
    .default(false)
    .describe('Whether the layers are one repeated layer, whose variables are stacked.'),
  checkpointPolicy: z
    .enum(policies)
    .default('SAVE_NOTHING')
    .describe('What a repeated layer keeps for its gradient; others keep all.'),
  useBias: z.boolean().default(false).describe('Whether attention projections have biases.'),
  dropoutProb: z.number().min(0).lt(1).default(0).describe('Probability of dropout.'),
  softmaxCapLogits: z.number().nonnegative().default(30).describe("Cap of the softmax's logits; 0: none."),
  attenLogitCap: z.number().nonnegative().default(50).describe('Cap of attention logits; 0: none (Pax: -1).'),
  numStages: positive
    .nullable()
    .default(null)
    .describe('Stages of a pipeline, as many as the mesh has along its axis stage; null: none.'),
  circularRepeat: positive.default(1).describe('How often a microbatch passes all stages.'),
  numMicrobatches: positive
    .nullable()
    .default(null)
    .describe('Microbatches of a batch; of a pipeline, it or microbatchSize.'),
  microbatchSize: positive
    .nullable()
    .default(null)
    .describe('Rows of a microbatch, of all devices together.'),
  streamIo: z.boolean().default(false).describe('Whether stages share the batch and hand microbatches on.'),
  pipelineBroadcastInputs: z
    .boolean()
    .default(false)
    .describe('Whether segments and positions move from stage to stage with their microbatch.'),
}) {
  override task() {
    return SingleTask.config({
      model: LanguageModel.config({ fpropDtype: this.fpropDtype, lmTpl: paxLm(this.lmOptions()) }),
      train: this.train(),
      mesh: this.mesh(paxSplits(this.lmOptions())),
    });
  }

  /** The network, from the constants. */
  protected lmOptions(): PaxLmOptions {
    const { numLayers, modelDims, hiddenDims, dimsPerHead, vocabSize, packedInput, separateEmbedding } = this;
    const { useRotaryPositionEmb, normPolicy, useGatedActivation, combineQkv, useBias, dropoutProb } = this;
    const { softmaxCapLogits, attenLogitCap } = this;
    return {
      ...{ numLayers, modelDims, hiddenDims, dimsPerHead, vocabSize, packedInput, separateEmbedding },
      ...{ useRotaryPositionEmb, normPolicy, useGatedActivation, combineQkv, useBias, dropoutProb },
      ...{ softmaxCapLogits, attenLogitCap },
      numHeads: this.heads(),
      repeatedLayers: this.useRepeatedLayer ? this.checkpointPolicy : null,
      trainablePositions: this.trainablePositionEmb ? this.trainablePeMaxSeqLen : null,
      normalization: this.normalizationCls,
      normEpsilon: this.layernormEpsilon,
      activation: this.activationCls,
      pipeline: this.pipeline(),
    };
  }

  /** The stages, where there are some. */
  private pipeline(): PaxPipeline | null {
    const { numStages, circularRepeat, numMicrobatches, microbatchSize, iciMeshShape, dcnMeshShape } = this;
    const { streamIo, pipelineBroadcastInputs } = this;
    if (numStages === null) return null;
    const ways = iciMeshShape.length === 4 ? iciMeshShape[0]! * (dcnMeshShape?.[0] ?? 1) : 0;
    if (ways !== numStages)
      throw new ConfigError(
        `${this.constructor.name}: numStages is ${numStages}, and the mesh has ${ways} devices along its axis stage, the first of ` +
          'four: iciMeshShape times dcnMeshShape.',
      );
    if ((numMicrobatches === null) === (microbatchSize === null))
      throw new ConfigError(
        `${this.constructor.name}: set numMicrobatches or microbatchSize, one of both; they are ${numMicrobatches} and ${microbatchSize}.`,
      );
    return {
      ...{ numStages, circularRepeat, streamIo, pipelineBroadcastInputs },
      numMicrobatches: numMicrobatches ?? this.globalBatchSize() / microbatchSize!,
    };
  }

  protected override syntheticTokens() {
    return { vocabSize: this.vocabSize, packed: this.packedInput };
  }

  /** Attention heads; as in Pax, heads times their depth is the depth of the model. */
  private heads(): number {
    const { modelDims, numHeads, dimsPerHead } = this;
    const heads = numHeads ?? (dimsPerHead === null ? Number.NaN : modelDims / dimsPerHead);
    if (Number.isInteger(heads) && (dimsPerHead ?? modelDims / heads) * heads === modelDims) return heads;
    throw new ConfigError(
      `${this.constructor.name}: numHeads ${numHeads} and dimsPerHead ${dimsPerHead} don't fit modelDims ` +
        `${modelDims}: heads times their depth must be the depth of the model, and one of both may be null.`,
    );
  }
}

/** Feed-forward layers that say each token again, as Pax's ClassificationModelAdam. */
export abstract class ClassificationModelAdam extends MeshExperiment.with({
  numLayer: positive.default(8).describe('Feed-forward layers.'),
  inputDim: positive
    .default(4096)
    .describe('Depth of embeddings and outputs, and how many tokens there are.'),
  hiddenDim: positive.default(7168).describe('Depth between the layers.'),
}).preset({
  learningRate: 1e-3,
  checkpointEveryNSteps: 5,
  summaryIntervalSteps: 5,
  numTrainSteps: 10,
}) {
  override task() {
    const { inputDim, hiddenDim, numLayer } = this;
    const model = ClassificationMLPModel.config();
    Object.assign(model.mlpTpl, { numLayers: numLayer, hiddenDims: hiddenDim });
    Object.assign(model.mlpTpl.ffTpl, { inputDims: inputDim, outputDims: inputDim });
    Object.assign(model.softmaxTpl, { inputDims: inputDim, numClasses: inputDim });
    return SingleTask.config({ model, train: this.train(), mesh: this.mesh() });
  }

  protected override syntheticTokens() {
    return { vocabSize: this.inputDim, packed: false };
  }
}
