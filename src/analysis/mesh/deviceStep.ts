/** @file A training step as one device of a mesh runs it: its program, with collectives, and its costs. */
import {
  type Collective,
  collectivesOf,
  executions,
  membersOf,
  nodeFlops,
  type Precision,
  type Program,
  type ProgramMemory,
  productPrecision,
  programMemory,
  readScope,
  type TensorSpec,
  type Tree,
  traceProgram,
} from '../../compiler/index.js';
import { optimize } from '../../compiler/passes/index.js';
import type { BatchSpecs } from '../../inputs/index.js';
import { deviceTurns, iterationsOf, LayerwiseShardablePipelined, listLayers } from '../../layers/index.js';
import { partitionedStep, variablesInParts } from '../../programs/index.js';
import { type Mesh, partsOfRank, type SingleTask, stepNumberSpec } from '../../tasks/index.js';
import { rowsOf } from '../batchSpecs.js';

/** Costs of a step of a device's rows: of its gradients, with the sums over all rows, and the memory of its update, too. */
export interface DeviceStep {
  /** As the device computes them: of its parts, recomputed ones included. */
  readonly flops: number;
  /** That it could compute while it waits for other stages of pipelines. */
  readonly idleFlops: number;
  /** In which most of the products multiply. */
  readonly precision: Precision;
  readonly collectives: readonly Collective[];
  readonly memory: ProgramMemory;
}

/**
 * The gradients of a device's rows, by its parts of the variables. Nothing is computed.
 *
 * @param batch specs of the rows that the device reads.
 * @throws ConfigError where the mesh cannot hold the variables evenly, and CompilerError for a program that it cannot split.
 */
export function deviceStep(
  task: SingleTask,
  batch: BatchSpecs,
  mesh: Mesh,
  layout = task.layout(undefined, variablesInParts(task, mesh.shards(task.variables, 0))),
): DeviceStep {
  const { numSubBatches } = task.hp.train.hp;
  // A job gives each of its ranks one where the task says none.
  const count = numSubBatches === 1 ? 1 : partsOfRank(numSubBatches, mesh.shareOf(0).count);
  const specs = {
    params: Object.fromEntries(task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }])),
    batch,
    prngKeys: { shape: [count, 2], dtype: 'int32' },
    ...stepNumberSpec(task),
  } as Readonly<Record<string, Tree<TensorSpec>>>;
  const graph = optimize(partitionedStep(task, specs, mesh, 'train_step', { abstract: true }).graph);
  const { f, inputs } = task.hp.train.hp.learner.update(layout);
  const update = optimize(traceProgram(f, inputs, { abstract: true }).graph);
  const work = workOf(graph, pipelinesOf(task, mesh, rowsOf(batch) / count));
  return {
    ...work,
    precision: productPrecision(graph),
    collectives: collectivesOf(graph).filter(({ group }) => membersOf(group) > 1),
    memory: programMemory(graph, update),
  };
}

/** A pipeline's stages on a device. */
interface Pipeline {
  /** Prefix of the scopes of its stages. */
  readonly scope: string;
  /** Of the turns that the device's program counts: those in which it works, and those in which it waits. */
  readonly worked: number;
  readonly waited: number;
}

/** The pipelines of a model. @param rows of a device that pass at once */
function pipelinesOf(task: SingleTask, mesh: Mesh, rows: number): Pipeline[] {
  const shards = mesh.shards(task.variables, 0);
  return listLayers(task.model).flatMap((layer) => {
    if (!(layer instanceof LayerwiseShardablePipelined)) return [];
    const scope = `${layer.path}/body`;
    const stacked = shards.find(({ path }) => path.startsWith(`${scope}/`));
    const sizes = layer.sizes(rows);
    const devices = membersOf({ mesh: mesh.sizes, axes: stacked?.axes[layer.stageDim] ?? [] });
    const { worked, elapsed } = deviceTurns(sizes, devices);
    // A program counts all stages of a device in each iteration, as its branches may be taken.
    const counted = (iterationsOf(sizes) * sizes.numStages) / devices;
    return [{ scope, worked: worked / counted, waited: (elapsed - worked) / counted }];
  });
}

/** FLOPs of a program. Stages that wait compute nothing. */
function workOf(
  graph: Program['graph'],
  pipelines: readonly Pipeline[],
): Pick<DeviceStep, 'flops' | 'idleFlops'> {
  let [flops, idleFlops] = [0, 0];
  for (const { node, times } of executions(graph)) {
    const own = times * nodeFlops(node);
    const { layer } = readScope(node.scope);
    const pipeline = pipelines.find(({ scope }) => layer === scope || layer.startsWith(`${scope}/`));
    flops += own * (pipeline?.worked ?? 1);
    idleFlops += own * (pipeline?.waited ?? 0);
  }
  return { flops, idleFlops };
}
