/** @file Analysis of an experiment's model and training step, from its configs alone. */
import type { ConfiguredExperiment } from '../cli/index.js';
import { type Precision, sizeOf } from '../compiler/index.js';
import { build } from '../hparams/index.js';
import { batchCount } from '../inputs/index.js';
import { changingPart, slotBytes } from '../learners/index.js';
import { trainFlops } from '../programs/mfu.js';
import { trainingDataset } from '../programs/programDataset.js';
import { stepsOfCall } from '../programs/stepCalls.js';
import type { SingleTask } from '../tasks/index.js';
import { deviceShare, type MeshSummary, specBytes } from './deviceShare.js';
import { type LayerSummary, layerTable } from './layerTable.js';
import { type Held, type TracedStep, traceStep } from './tracedStep.js';

/** One variable of the model. */
export interface VariableSummary {
  /** Its path, as in checkpoints: `lm/transformer/x_layers_0/…`. */
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly trainable: boolean;
}

/**
 * Bytes that a device of the mesh holds in a training step, a host where there is no mesh; nothing is computed twice.
 * What devices exchange, and the buffers that receive it, are unknown and not counted.
 */
interface TrainingMemory {
  readonly variables: number;
  /** Of all variables but frozen ones. */
  readonly gradients: number;
  /** Slots of the optimizer. */
  readonly optimizer: number;
  /** The device's rows of the batches that one call takes. */
  readonly batches: number;
  /** Intermediate values as the native engine places them: over each other where they are not alive at the same time. */
  readonly activations: number;
  /** Packed operands of products, constants, and what one thread works on; further ones add little. */
  readonly working: number;
  readonly total: number;
}

/** What an experiment's model is, and what a training step of it costs. */
export interface Analysis {
  readonly parameters: number;
  readonly trainableParameters: number;
  readonly variables: readonly VariableSummary[];
  readonly layers: readonly LayerSummary[];
  /** Tokens, images or examples of a global batch: what a step trains on. */
  readonly tokensPerStep: number;
  /** What `tokensPerStep` counts, as the training input says. */
  readonly unit: string;
  /** FLOPs of the forward pass for a token. */
  readonly forwardFlopsPerToken: number;
  /** FLOPs of a training step, PaLM's: three times those of the forward pass. */
  readonly flopsPerStep: number;
  /** In which most of the products multiply. */
  readonly precision: Precision;
  readonly memory: TrainingMemory;
  readonly mesh: MeshSummary;
  /** Steps of the whole training, as the task sets them. */
  readonly numTrainSteps: number;
}

/** Bytes of a float32: what variables and gradients are made of. */
const FLOAT_BYTES = 4;

function variablesOf(task: SingleTask): VariableSummary[] {
  const trainable = new Set(task.trainablePaths());
  return task.variables.map(({ path, shape, dtype }) => ({
    name: path,
    shape,
    dtype,
    trainable: trainable.has(path),
  }));
}

/** The buffers are as large as training makes them, the padding between variables included. */
function memoryOf(task: SingleTask, held: Held, { memory }: TracedStep): TrainingMemory {
  const { learner } = task.hp.train.hp;
  const changing = changingPart(held.layout).size * FLOAT_BYTES;
  const batch = specBytes(held.batch);
  const parts = {
    variables: held.layout.size * FLOAT_BYTES,
    gradients: changing,
    optimizer: slotBytes(learner.slotLayouts(held.layout)),
    batches: batch * stepsOfCall(batch),
    activations: memory.arena,
    working: memory.packed + memory.scratch + memory.constants,
  };
  return { ...parts, total: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}

/**
 * Analyses an experiment: builds its task and its training input, and traces a training step on the shapes that the
 * input says. No data is read, no initial value is drawn, and no tensor is made.
 *
 * @throws ConfigError where there is not one training dataset, or the mesh does not fit, InputError where the dataset does
 *   not say its shapes, LayerError and CompilerError for what is wrong with the model.
 */
export function analyze(configured: ConfiguredExperiment): Analysis {
  const task = build(configured.task);
  const input = build(trainingDataset(configured));
  const specs = input.paddedBatchSpecs();
  const { count, unit } = batchCount(specs, input.batchUnit);
  const hosts = input.getGlobalBatchSize() / input.batchSize;
  const { held, mesh } = deviceShare(task, specs, hosts);
  const step = traceStep(task, specs, held);
  const layers = layerTable(task.model, step).map((layer) => ({ ...layer, flops: layer.flops * hosts }));
  const variables = variablesOf(task);
  const parametersOf = (list: readonly VariableSummary[]): number =>
    list.reduce((total, { shape }) => total + sizeOf(shape), 0);
  const tokensPerStep = count * hosts;
  const forwardFlops = layers[0]!.flops;
  return {
    parameters: parametersOf(variables),
    trainableParameters: parametersOf(variables.filter(({ trainable }) => trainable)),
    variables,
    layers,
    tokensPerStep,
    unit,
    forwardFlopsPerToken: forwardFlops / tokensPerStep,
    flopsPerStep: trainFlops(forwardFlops),
    precision: step.precision,
    memory: memoryOf(task, held, step),
    mesh,
    numTrainSteps: configured.task.train.numTrainSteps,
  };
}
