/** @file A training step as one device of a mesh runs it: its program, with collectives, and what that costs. */
import {
  type Collective,
  collectivesOf,
  executions,
  membersOf,
  nodeFlops,
  type Precision,
  type ProgramMemory,
  partitionProgram,
  productPrecision,
  programMemory,
  type Sharding,
  sizeOf,
  type TensorSpec,
  type Tree,
  traceProgram,
} from '../../compiler/index.js';
import type { BatchSpecs } from '../../inputs/index.js';
import { splitActivations } from '../../layers/index.js';
import { gradientStep, type Mesh, type SingleTask, stepNumberSpec } from '../../tasks/index.js';

/** Costs of the gradients of a device's rows, with the sums over all rows. */
export interface DeviceStep {
  /** As the device computes them: of its parts, with what is recomputed. */
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
  const shards = mesh.shards(task.variables, 0);
  const { axes: rowAxes } = mesh.groupOf(mesh.hp.inputsSplitMapping);
  const { numSubBatches } = task.hp.train.hp;
  const specs = {
    params: Object.fromEntries(task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }])),
    batch,
    prngKeys: { shape: [Math.max(1, numSubBatches / mesh.shareOf(0).count), 2], dtype: 'int32' },
    ...stepNumberSpec(task),
  } as Readonly<Record<string, Tree<TensorSpec>>>;
  const step = gradientStep(task);
  const split: Parameters<typeof splitActivations>[0] = (...tensor) => mesh.activationAxes(...tensor);
  const traced = traceProgram((inputs) => splitActivations(split, () => step(inputs as never)), specs, {
    abstract: true,
  });
  const shardings = new Map(shards.map(({ path, axes }) => [path, axes]));
  const under =
    (prefix: string) =>
    (path: string): Sharding | undefined =>
      path.startsWith(prefix) ? shardings.get(path.slice(prefix.length)) : undefined;
  const borders = { inputs: under('params.'), outputs: under('sums.grads.'), rowAxes };
  const { graph } = partitionProgram(traced, { ...borders, axisNames: mesh.axisNames }, mesh.sizes);
  // What of a gradient no axis of rows splits is summed when all of it is there.
  const trained = new Set(task.trainablePaths());
  const sums = shards.flatMap(({ path, shape, axes }): Collective[] => {
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
