/** @file Mesh of a job: where its ranks lie, and which rows of a batch each reads. */
import { build, type Config, copyWith } from '../../hparams/index.js';
import type { JobOptions } from '../../runs/index.js';
import { UsageError } from '../../system/text/index.js';
import { Mesh, meshShapes, type SingleTask } from '../../tasks/index.js';

/** Meshes that a message shows. */
const SHOWN = 3;

/**
 * The mesh whose devices the ranks are: the task's, or, where that is of one device, one along whose first axis of rows they
 * lie.
 *
 * @throws UsageError where the task's has another number of devices, with meshes that fit
 */
export function meshOfJob({ mesh: config }: Pick<Config<SingleTask>, 'mesh'>, count: number): Mesh {
  const given = config ?? Mesh.config();
  const mesh = build(given);
  if (mesh.ways() === count) return mesh;
  const { iciMeshShape, dcnMeshShape, meshAxisNames, inputsSplitMapping } = mesh.hp;
  if (mesh.ways() === 1 && inputsSplitMapping.length > 0)
    return build(
      copyWith(given, {
        iciMeshShape: meshAxisNames.map((name) => (name === inputsSplitMapping[0] ? count : 1)),
      }),
    );
  const slices = (dcnMeshShape ?? []).reduce((product, size) => product * size, 1);
  const keepsSlices = count % slices === 0;
  const fitting = nearestShapes(keepsSlices ? count / slices : count, iciMeshShape)
    .slice(0, SHOWN)
    .map((shape) => `--set task.mesh.iciMeshShape=[${shape}]`);
  const found = dcnMeshShape === null ? '' : `, dcnMeshShape [${dcnMeshShape}]`;
  throw new UsageError(
    `task.mesh is of ${mesh.ways()} devices (${meshAxisNames.join(', ')}: iciMeshShape [${iciMeshShape}]${found}), and ` +
      `there are ${count} ranks. Start ${mesh.ways()}, or set a mesh of ${count}: ${fitting.join(', or ')}` +
      `${keepsSlices ? '' : ', with --set task.mesh.dcnMeshShape=null'}.`,
  );
}

/** Shapes with so many axes as a given one and this product, those first that are nearest to it. */
function nearestShapes(product: number, given: readonly number[]): number[][] {
  const distance = (shape: readonly number[]) =>
    shape.reduce((sum, size, i) => sum + Math.abs(Math.log2(size / given[i]!)), 0);
  return meshShapes(product, given.length).sort((a, b) => distance(a) - distance(b));
}

/** A line about a mesh that a process alone does not use; undefined where there is none. */
export function unusedMesh({ ranks }: Pick<JobOptions, 'ranks'>, { hp }: SingleTask): string | undefined {
  const devices = hp.mesh?.ways() ?? 1;
  if (ranks !== undefined || devices === 1) return undefined;
  return `task.mesh is of ${devices} devices, and this process alone trains the whole model: mpirun -np ${devices} starts a rank for each.`;
}

/** The share of a batch's rows that this process reads. */
export function rowShare({ ranks, mesh }: Pick<JobOptions, 'ranks' | 'mesh'>): {
  readonly index: number;
  readonly count: number;
} {
  if (ranks === undefined) return { index: 0, count: 1 };
  return mesh?.shareOf(ranks.rank) ?? { index: ranks.rank, count: ranks.count };
}
