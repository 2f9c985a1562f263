/** @file Trace of a training step without values: FLOPs, saved activations and output shapes by layer. */

import {
  type Bfloat16Products,
  byteSize,
  executions,
  type FlatLayout,
  nodeFlops,
  type Parts,
  type Precision,
  type ProgramMemory,
  productPrecision,
  programMemory,
  type TensorFunction,
  type TensorSpec,
  type Tree,
  tf,
  traceProgram,
  viewedValues,
} from '../compiler/index.js';
import { eliminateDeadCode, optimize } from '../compiler/passes/index.js';
import { producers, type Value } from '../compiler/program/index.js';
import type { BatchSpecs } from '../inputs/index.js';
import { observeCalls } from '../layers/index.js';
import { batchStep, forwardStep, type SingleTask, stepNumberSpec, trainStep } from '../tasks/index.js';
import { withRows } from './batchSpecs.js';

/** Sums by the path of the layer that a node belongs to. */
type ByLayer = ReadonlyMap<string, number>;

/** A device's memory in a step. */
export interface Held {
  readonly batch: BatchSpecs;
  /** Of the variables, in buffers like theirs. */
  readonly layout: FlatLayout;
  readonly parts: Parts;
}

/** Costs and shapes of a step. */
export interface TracedStep {
  /** FLOPs of the forward pass, of the layers' own operations. */
  readonly flops: ByLayer;
  /** FLOPs of the gradients of a device's rows, forward pass included, as the step computes them. */
  readonly stepFlops: number;
  /** Bytes that a device's backward pass reads of the outputs of the layers' own operations. */
  readonly saved: ByLayer;
  /** Shape of each called layer's result. */
  readonly outputShapes: ReadonlyMap<string, readonly number[]>;
  /** In which most of the products multiply. */
  readonly precision: Precision;
  /** Memory of a device's compiled step beside its inputs and outputs. */
  readonly memory: ProgramMemory;
  /** How many rows the gradient of a table has, by path, where it is rows and indices. */
  readonly gradientRows: ReadonlyMap<string, number>;
}

function add(sums: Map<string, number>, scope: string, amount: number): void {
  sums.set(scope, (sums.get(scope) ?? 0) + amount);
}

function stepSpecs(task: SingleTask, batch: BatchSpecs): Tree<TensorSpec> {
  const params = Object.fromEntries(
    task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }] as const),
  );
  return { params, batch, prngKey: { shape: [2], dtype: 'int32' }, ...stepNumberSpec(task) };
}

/** The first tensor of a layer's result. */
function firstTensor(result: unknown): tf.Tensor | undefined {
  if (result instanceof tf.Tensor) return result;
  if (typeof result !== 'object' || result === null) return undefined;
  for (const part of Object.values(result)) {
    const found = firstTensor(part);
    if (found) return found;
  }
  return undefined;
}

/** Counts as training counts them: on the forward pass alone, optimized. */
function traceForward(
  task: SingleTask,
  specs: Tree<TensorSpec>,
): Pick<TracedStep, 'flops' | 'outputShapes' | 'precision'> {
  const shapes = new Map<string, readonly number[]>();
  const called = new Map<string, readonly number[]>();
  const note = (path: string, method: string, result: unknown): void => {
    const shape = firstTensor(result)?.shape;
    // A layer that embeds with its softmax's weights is a softmax all the same.
    const known = method === 'fprop' ? shapes : called;
    if (shape && !known.has(path)) known.set(path, shape);
  };
  const { graph } = observeCalls(note, () => traceProgram(forwardStep(task), specs, { abstract: true }));
  const flops = new Map<string, number>();
  const optimized = optimize(graph);
  for (const { node, times } of executions(optimized)) add(flops, node.scope, times * nodeFlops(node));
  return { flops, outputShapes: new Map([...called, ...shapes]), precision: productPrecision(optimized) };
}

/** Memory of gradients and update on a device, and activations saved for the gradients. */
function traceTraining(
  task: SingleTask,
  specs: Tree<TensorSpec>,
  { batch, layout, parts }: Held,
  products: Bfloat16Products | undefined,
): Pick<TracedStep, 'saved' | 'memory' | 'gradientRows' | 'stepFlops'> {
  const form = { rows: true };
  const traced = traceProgram(trainStep(task, form) as TensorFunction, specs, { abstract: true });
  const { rowGrads } = traced.outputs as { rowGrads: Record<string, Record<'indices' | 'rows', TensorSpec>> };
  const gradientRows = new Map(
    Object.entries(rowGrads).map(([path, { indices }]) => [path, indices.shape[0]!]),
  );
  const { f, inputs } = task.hp.train.hp.learner.update(layout, gradientRows);
  const gradients = optimize(traced.graph);
  const stepFlops = executions(gradients).reduce((sum, { node, times }) => sum + times * nodeFlops(node), 0);
  const memory = programMemory(
    gradients,
    optimize(traceProgram(f, inputs, { abstract: true }).graph),
    parts,
    products,
  );
  // Layers keep what they keep of one sub-batch; the loop over all of them is one node.
  const { numSubBatches: count } = task.hp.train.hp;
  const program =
    count === 1
      ? traced
      : traceProgram(
          batchStep(task, form) as TensorFunction,
          stepSpecs(
            task,
            withRows(batch, (rows) => rows / count),
          ),
          {
            abstract: true,
          },
        );
  const graph = optimize(program.graph);
  const flat = (paths: readonly string[], values: readonly Value[], root: string): Value[] =>
    values.filter((_, i) => paths[i] === root || paths[i]!.startsWith(`${root}.`));
  const grads = new Set(
    ['grads', 'rowGrads'].flatMap((root) => flat(program.outputPaths, graph.outputs, root)),
  );
  // The forward pass is everything behind loss, metrics and summaries; the rest computes the gradients.
  const results = graph.outputs.filter((value) => !grads.has(value));
  const forward = eliminateDeadCode({ ...graph, outputs: results }).nodes;
  const made = producers({ ...graph, nodes: forward });
  const viewed = viewedValues(graph);
  const isForward = new Set(forward);
  const kept = new Set<Value>();
  for (const node of graph.nodes) {
    if (!isForward.has(node)) for (const input of node.inputs) kept.add(viewed.get(input) ?? input);
  }
  const saved = new Map<string, number>();
  for (const value of kept) {
    const node = made.get(value);
    if (node) add(saved, node.scope, byteSize(value) / parts.ofScope(node.scope));
  }
  return { saved, memory, gradientRows, stepFlops };
}

/**
 * Traces a step on batches of these specs. Nothing is computed, and no memory is taken for a tensor.
 *
 * @param products instructions by which products of bfloat16 are made, where that is known.
 */
export function traceStep(
  task: SingleTask,
  batch: BatchSpecs,
  held: Held,
  products?: Bfloat16Products,
): TracedStep {
  return {
    ...traceForward(task, stepSpecs(task, batch)),
    ...traceTraining(task, stepSpecs(task, held.batch), held, products),
  };
}
