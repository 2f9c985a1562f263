/** @file Analysis of an experiment's model and training step, from its configs alone. */
import type { ConfiguredExperiment } from '../cli/index.js';
import { type Bfloat16Products, type FlatLayout, type Precision, sizeOf } from '../compiler/index.js';
import { build } from '../hparams/index.js';
import { batchCount } from '../inputs/index.js';
import { changingPart, groupParts, slotBytes } from '../learners/index.js';
import { stepsOfCall, trainedTasks, trainFlops, trainingDataset } from '../programs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { specBytes } from './batchSpecs.js';
import { deviceShare, type MeshSummary } from './deviceShare.js';
import { type LayerSummary, layerTable } from './layerTable.js';
import { type Held, type TracedStep, traceStep } from './tracedStep.js';

/** One variable of the model. */
export interface VariableSummary {
  /** Its path, as in checkpoints: `lm/transformer/x_layers_0/…`. */
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly trainable: boolean;
  /** What rules and patterns of the configs make of it: `trained`, `decayed`, its optimizer, its initializer. */
  readonly rules: readonly string[];
}

/**
 * Memory of a training step, in bytes, on a device of the mesh, or on a host without a mesh; nothing is recomputed.
 * Communication between devices and its buffers are unknown and not counted.
 */
export interface TrainingMemory {
  readonly variables: number;
  /** Of all variables but frozen ones: of all elements, or of rows with their indices. */
  readonly gradients: number;
  /** Slots of the optimizer. */
  readonly optimizer: number;
  /** The device's rows of the batches that one call takes. */
  readonly batches: number;
  /** Intermediate values as the native engine places them: over each other where they are not alive at the same time. */
  readonly activations: number;
  /** Packed operands of products, constants, and the working memory of one thread; further ones add little. */
  readonly working: number;
  readonly total: number;
}

/** Cost of a training step. */
interface StepCost {
  /** Tokens, images or examples in a global batch. */
  readonly tokensPerStep: number;
  /** Unit of `tokensPerStep`, given by the training input. */
  readonly unit: string;
  /** FLOPs of the forward pass for a token. */
  readonly forwardFlopsPerToken: number;
  /** FLOPs of a training step, PaLM's: three times those of the forward pass. */
  readonly flopsPerStep: number;
  /**
   * FLOPs of the gradients as the step computes them: unused ones, such as that of the first layer's input, are left out, and
   * values that are computed again for the backward pass count again.
   */
  readonly computedFlopsPerStep: number;
}

/** A task that is trained in turn with the main one. */
interface AuxiliaryCost extends StepCost {
  /** Its part of all steps, from 0 to 1. */
  readonly share: number;
}

/** Analysis of an experiment's model and the cost of its training step: of the main task's, where several are trained. */
export interface Analysis extends StepCost {
  readonly parameters: number;
  readonly trainableParameters: number;
  readonly variables: readonly VariableSummary[];
  readonly layers: readonly LayerSummary[];
  /** Tasks beside the main one by name; absent where there are none. */
  readonly auxiliary?: Readonly<Record<string, AuxiliaryCost>>;
  /** In which most of the products multiply. */
  readonly precision: Precision;
  readonly memory: TrainingMemory;
  readonly mesh: MeshSummary;
  /** Steps of the whole training, as the task sets them. */
  readonly numTrainSteps: number;
}

/** Bytes of a float32, the type of variables and gradients. */
const FLOAT_BYTES = 4;

function variablesOf(task: SingleTask): VariableSummary[] {
  const { learner } = task.hp.train.hp;
  const trainable = new Set(task.trainablePaths());
  const noisy = new Set(task.noisyPaths());
  return task.variables.map((variable) => {
    const { path, shape, dtype, storage, init } = variable;
    const parts = groupParts(learner.groupOf(variable));
    const { name: kind } = init.constructor;
    const rules = [
      ...(trainable.has(path) ? ['trained'] : []),
      ...(parts?.decays === true ? ['decayed'] : []),
      ...(parts !== undefined && parts.optimizer !== '' ? [`updated by optimizer ${parts.optimizer}`] : []),
      ...(noisy.has(path) ? ['noisy'] : []),
      `initialized by ${kind} ${JSON.stringify(init.hp)}`,
    ];
    return { name: path, shape, dtype: storage ?? dtype, trainable: trainable.has(path), rules };
  });
}

/** Numbers in the gradients of a layout, those of tables that are rows and indices as such. */
function gradientSize(layout: FlatLayout, rowsOf: TracedStep['gradientRows']): number {
  const { size, entries } = changingPart(layout);
  const saved = entries.map((entry) => {
    const rows = rowsOf.get(entry.name);
    return rows === undefined ? 0 : entry.size - rows * (entry.shape[1]! + 1);
  });
  return saved.reduce((left, each) => left - each, size);
}

/** A traced step, and what a device holds of its task. */
interface HeldStep {
  readonly task: SingleTask;
  readonly held: Held;
  readonly step: TracedStep;
}

/**
 * The buffers are as large as training makes them, the padding between variables included. Tasks share variables and
 * gradients; slots, batches and intermediate values are each one's own.
 */
function memoryOf(steps: readonly HeldStep[]): TrainingMemory {
  const summed = (bytes: (each: HeldStep) => number): number =>
    steps.reduce((sum, each) => sum + bytes(each), 0);
  const gradients = steps.map(({ held, step }) => gradientSize(held.layout, step.gradientRows));
  const parts = {
    variables: steps[0]!.held.layout.size * FLOAT_BYTES,
    gradients: Math.max(...gradients) * FLOAT_BYTES,
    optimizer: summed(({ task, held }) => slotBytes(task.hp.train.hp.learner.slotLayouts(held.layout))),
    batches: summed(({ held }) => specBytes(held.batch) * stepsOfCall(specBytes(held.batch))),
    activations: summed(({ step }) => step.memory.arena),
    working: summed(({ step: { memory } }) => memory.packed + memory.scratch + memory.constants),
  };
  return { ...parts, total: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}

/**
 * Analyses an experiment: builds its task and its training input, and traces a training step on the input's shapes. No
 * data is read, no initial value is drawn, and no tensor is made.
 *
 * @param products instructions by which a run makes products of bfloat16, as its record says; by default, bf16's where this CPU
 *   has some.
 * @throws ConfigError without exactly one training dataset, or for a mesh that does not fit, InputError for a dataset
 * that does not declare its shapes, LayerError and CompilerError for errors of the model.
 */
export function analyze(
  configured: Pick<ConfiguredExperiment, 'name' | 'task' | 'datasets'>,
  products?: Bfloat16Products,
): Analysis {
  const task = build(configured.task);
  const input = build(trainingDataset(configured));
  const hosts = input.getGlobalBatchSize() / input.batchSize;
  const [main, ...others] = trainedTasks(task, input).map((trained) => {
    const { held, mesh } = deviceShare(task, trained, hosts);
    const step = traceStep(trained.task, trained.batch, held, products);
    const layers = layerTable(trained.task.model, step).map((layer) => ({
      ...layer,
      flops: layer.flops * hosts,
    }));
    const { count, unit } = batchCount(trained.batch, input.batchUnit);
    const tokensPerStep = count * hosts;
    const forwardFlops = layers[0]!.flops;
    const cost: StepCost = {
      tokensPerStep,
      unit,
      forwardFlopsPerToken: forwardFlops / tokensPerStep,
      flopsPerStep: trainFlops(forwardFlops),
      computedFlopsPerStep: (step.stepFlops * tokensPerStep) / batchCount(held.batch, input.batchUnit).count,
    };
    return { ...trained, held, mesh, step, layers, cost };
  });
  const auxiliary = others.map(({ part, share, cost }) => [part!, { ...cost, share }] as const);
  const variables = variablesOf(task);
  const parametersOf = (list: readonly VariableSummary[]): number =>
    list.reduce((total, { shape }) => total + sizeOf(shape), 0);
  return {
    parameters: parametersOf(variables),
    trainableParameters: parametersOf(variables.filter(({ trainable }) => trainable)),
    variables,
    layers: main!.layers,
    ...main!.cost,
    ...(auxiliary.length > 0 && { auxiliary: Object.fromEntries(auxiliary) }),
    precision: main!.step.precision,
    memory: memoryOf([main!, ...others]),
    mesh: main!.mesh,
    numTrainSteps: configured.task.train.numTrainSteps,
  };
}
