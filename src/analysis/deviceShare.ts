/** @file Share of a training step that one device of a mesh holds: rows, variables, parts of activations. */
import { sizeOf } from '../compiler/index.js';
import { build } from '../hparams/index.js';
import { listLayers } from '../layers/index.js';
import type { TrainedTask } from '../programs/index.js';
import { Mesh, type SingleTask } from '../tasks/index.js';
import { withRows } from './batchSpecs.js';
import type { Held } from './tracedStep.js';

/** The devices that a task is meant for. */
export interface MeshSummary {
  readonly devices: number;
  /** How many there are along each axis. */
  readonly axes: Readonly<Record<string, number>>;
  /** Paths of the variables that the devices hold more elements of than there are, as a dimension does not divide. */
  readonly padded: readonly string[];
}

/**
 * A device's share of the memory when `hosts` hosts train a task on batches of its specs each. Without a mesh, each host
 * holds the whole task.
 *
 * @throws ConfigError if the mesh does not fit the batch or the variables.
 */
export function deviceShare(
  main: SingleTask,
  { part, task, batch }: TrainedTask,
  hosts: number,
): { readonly held: Held; readonly mesh: MeshSummary } {
  const mesh = main.hp.mesh ?? build(Mesh.config({ iciMeshShape: [hosts, 1, 1] }));
  const local = mesh.localVariables(task.variables);
  const parts = new Map(
    local.map(({ shape }, i) => {
      const { path, shape: all } = task.variables[i]!;
      return [`params.${path}`, sizeOf(all) / sizeOf(shape)];
    }),
  );
  const layers = new Map(listLayers(task.model).map((layer) => [layer.path, layer]));
  const partsOf = (path: string): number => mesh.parts(path, layers.get(path)?.activationSplit());
  return {
    held: {
      batch: withRows(batch, (rows) => mesh.localRows(rows * hosts)),
      layout: main.layout(part, local),
      parts: { ofInput: (path) => parts.get(path) ?? 1, ofScope: partsOf },
    },
    mesh: {
      devices: mesh.ways(),
      axes: Object.fromEntries(mesh.hp.meshAxisNames.map((name) => [name, mesh.ways([name])])),
      padded: local.filter(({ isPadded }) => isPadded).map(({ path }) => path),
    },
  };
}
