/** @file A training step as one device of a mesh runs it: its program, with collectives, and its costs. */
import {
  type Collective,
  collectivesOf,
  executions,
  membersOf,
  nodeFlops,
  type Precision,
  type ProgramMemory,
  productPrecision,
  programMemory,
  sizeOf,
  type TensorSpec,
  type Tree,
} from '../../compiler/index.js';
import type { BatchSpecs } from '../../inputs/index.js';
import { partitionedGradients } from '../../programs/index.js';
import { type Mesh, partsOfRank, type SingleTask, stepNumberSpec } from '../../tasks/index.js';

/** Costs of the gradients of a device's rows, with the sums over all rows. */
export interface DeviceStep {
  /** As the device computes them: of its parts, recomputed ones included. */
  readonly flops: number;
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
export function deviceStep(task: SingleTask, batch: BatchSpecs, mesh: Mesh): DeviceStep {
  const { numSubBatches } = task.hp.train.hp;
  // A job gives each of its ranks one where the task says none.
  const count = numSubBatches === 1 ? 1 : partsOfRank(numSubBatches, mesh.shareOf(0).count);
  const specs = {
    params: Object.fromEntries(task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }])),
    batch,
    prngKeys: { shape: [count, 2], dtype: 'int32' },
    ...stepNumberSpec(task),
  } as Readonly<Record<string, Tree<TensorSpec>>>;
  const { graph } = partitionedGradients(task, specs, mesh, 'gradient_step', { abstract: true });
  const { axes: rowAxes } = mesh.groupOf(mesh.hp.inputsSplitMapping);
  // A gradient is summed whole over the axes of rows that do not split it.
  const trained = new Set(task.trainablePaths());
  const sums = mesh.shards(task.variables, 0).flatMap(({ path, shape, axes }): Collective[] => {
    const group = { mesh: mesh.sizes, axes: rowAxes.filter((axis) => !axes.flat().includes(axis)) };
    if (!trained.has(path) || membersOf(group) === 1) return [];
    return [{ op: 'AllReduce', bytes: FLOAT_BYTES * sizeOf(shape), group, times: 1 }];
  });
  return {
    flops: executions(graph).reduce((sum, { node, times }) => sum + times * nodeFlops(node), 0),
    precision: productPrecision(graph),
    collectives: [...collectivesOf(graph), ...sums],
    memory: programMemory(graph),
  };
}

/** Bytes of a float32, the type of gradients. */
const FLOAT_BYTES = 4;
