/** @file Plans of a training on meshes of devices: memory, time and MFU of each mesh that divides the model. */
import type { ConfiguredExperiment } from '../../cli/index.js';
import { CompilerError } from '../../compiler/index.js';
import {
  build,
  type Config,
  ConfigError,
  copyWith,
  deepCopy,
  getPath,
  listPaths,
  setPath,
} from '../../hparams/index.js';
import type { BatchSpecs } from '../../inputs/index.js';
import { trainingDataset } from '../../programs/index.js';
import { UsageError } from '../../system/text/index.js';
import { Mesh, meshShapes, type SingleTask } from '../../tasks/index.js';
import { analyze } from '../analyze.js';
import { rankCosts, TooLarge } from './rankCosts.js';
import { type PlannedDevice, type StepTime, stepTime } from './stepTime.js';

/** Policies that plans try where layers recompute: Pax's, from the least memory to the most. */
const TRIED_POLICIES = ['SAVE_NOTHING', 'SAVE_OUT_PROJ', 'SAVE_DOT_EXCEPT_LOGITS_FFN1', 'SAVE_DOT_ONLY'];

/** The meshes to plan. */
export interface PlanRequest {
  readonly device: PlannedDevice;
  /** All of them; by default those of the task's mesh. */
  readonly devices?: number | undefined;
  /** One shape of a slice instead of all that there are. */
  readonly shape?: readonly number[] | undefined;
  /** Rows of a global batch, tried one by one; by default those of the training data. */
  readonly rows?: readonly number[] | undefined;
  /** Whether other checkpoint policies than the configured one are tried. */
  readonly policies?: boolean | undefined;
}

/** A training on one mesh. */
export interface MeshPlan {
  readonly iciMeshShape: readonly number[];
  readonly dcnMeshShape: readonly number[] | null;
  /** Of a global batch. */
  readonly rows: number;
  /** Of the layers that recompute; undefined where there are none. */
  readonly policy: string | undefined;
  /** Bytes on a device. */
  readonly memory: number;
  readonly fits: boolean;
  readonly time: StepTime;
  /** Of all devices together. */
  readonly mfu: number;
}

/** Plans, the fastest first, and why other meshes have none. */
export interface MeshPlans {
  readonly axisNames: readonly string[];
  readonly devices: number;
  /** In `unit`. */
  readonly tokensPerRow: number;
  readonly unit: string;
  /** Of the model, PaLM's. */
  readonly flopsPerRow: number;
  /** As configured. */
  readonly rows: number;
  readonly policy: string | undefined;
  readonly plans: readonly MeshPlan[];
  /** Reasons with the shapes that they refuse. */
  readonly refused: ReadonlyMap<string, readonly (readonly number[])[]>;
  /** Paths of the fields that set the policy. */
  readonly policyPaths: readonly string[];
}

/** Meshes that other policies are tried on. */
const RETRIED = 4;

/** Prefix of the names of axes between slices. */
const SLICES = 'slices of ';

type Configured = Pick<ConfiguredExperiment, 'name' | 'task' | 'datasets'>;

/** Paths of the policies of layers that recompute. */
function policyPathsOf(task: Config<SingleTask>): string[] {
  return listPaths(task).flatMap(({ path, value }) =>
    path.endsWith('.remat') && value === true ? [path.replace(/remat$/, 'checkpointPolicy')] : [],
  );
}

function withPolicy(task: Config<SingleTask>, paths: readonly string[], policy: string): Config<SingleTask> {
  const changed = deepCopy(task);
  for (const path of paths) setPath(changed, path, policy);
  return changed;
}

/** Shapes of a slice for so many devices; slices stay as they are configured. @throws UsageError where slices don't divide them */
function shapesFor(mesh: Config<Mesh>, { devices, shape }: PlanRequest): readonly (readonly number[])[] {
  const { dcnMeshShape, meshAxisNames } = mesh;
  const slices = (dcnMeshShape ?? []).reduce((product, size) => product * size, 1);
  if (shape !== undefined && shape.length !== meshAxisNames.length)
    throw new UsageError(
      `--shape=[${shape}]: expected devices along each of the axes ${meshAxisNames.join(', ')}, such as [${mesh.iciMeshShape}].`,
    );
  if (shape !== undefined) return [shape];
  const all = devices ?? build(mesh).ways();
  if (all % slices === 0) return meshShapes(all / slices, meshAxisNames.length);
  throw new UsageError(
    `--devices=${all}: task.mesh.dcnMeshShape [${dcnMeshShape}] has ${slices} slices, which don't divide ${all} devices: expected ` +
      `a multiple of ${slices}, or --set task.mesh.dcnMeshShape=null.`,
  );
}

/** Plans of one task. */
class Planning {
  readonly refused = new Map<string, (readonly number[])[]>();
  readonly plans: MeshPlan[] = [];
  private readonly tasks = new Map<string | undefined, SingleTask>();

  constructor(
    private readonly config: Config<SingleTask>,
    private readonly mesh: Config<Mesh>,
    /** Of any number of rows. */
    private readonly batch: BatchSpecs,
    private readonly flopsPerRow: number,
    private readonly device: PlannedDevice,
    private readonly policyPaths: readonly string[],
  ) {}

  /** Plans one mesh, or notes why it has no plan. */
  plan(shape: readonly number[], rows: number, policy: string | undefined): void {
    try {
      this.plans.push(this.planned(shape, rows, policy));
    } catch (error) {
      if (!(error instanceof ConfigError || error instanceof CompilerError || error instanceof TooLarge))
        throw error;
      const known = this.refused.get(error.message);
      if (known === undefined) this.refused.set(error.message, [shape]);
      else known.push(shape);
    }
  }

  private planned(shape: readonly number[], rows: number, policy: string | undefined): MeshPlan {
    const task = this.taskWith(policy);
    const mesh = build(copyWith(this.mesh, { iciMeshShape: [...shape] }));
    const { memoryBytes, peakFlops } = this.device;
    const { step, memory, state } = rankCosts(task, this.batch, mesh, rows, this.device);
    const slices = mesh.axisNames.flatMap((name, i) => (name.startsWith(SLICES) ? [i] : []));
    const { axes } = mesh.groupOf(mesh.hp.inputsSplitMapping);
    const time = stepTime(step, state, this.device, { slices, rows: axes });
    const peak = mesh.ways() * peakFlops[step.precision]!;
    return {
      ...{ iciMeshShape: shape, dcnMeshShape: slices.length > 0 ? mesh.hp.dcnMeshShape : null },
      ...{ rows, policy, memory: memory.total, time },
      fits: memory.total <= memoryBytes,
      mfu: (rows * this.flopsPerRow) / (peak * time.total),
    };
  }

  private taskWith(policy: string | undefined): SingleTask {
    let task = this.tasks.get(policy);
    if (task === undefined) {
      const config = policy === undefined ? this.config : withPolicy(this.config, this.policyPaths, policy);
      this.tasks.set(policy, (task = build(config)));
    }
    return task;
  }
}

/**
 * Plans a training: all meshes under the configured checkpoint policy, then the fastest ones under others.
 *
 * @throws UsageError for a device file that lacks the precision, and for devices or a shape that the mesh cannot have; ConfigError
 *   and others as `analyze`.
 */
export function planMeshes(configured: Configured, request: PlanRequest): MeshPlans {
  const { device, policies = false } = request;
  const mesh = configured.task.mesh ?? Mesh.config();
  const ones = mesh.meshAxisNames.map(() => 1);
  const single = copyWith(mesh, { iciMeshShape: ones, dcnMeshShape: null });
  const task = copyWith(configured.task, { mesh: single });
  const whole = analyze({ ...configured, task });
  if (device.peakFlops[whole.precision] === undefined)
    throw new UsageError(
      `${device.file}: peakFlops lacks ${whole.precision}, in which most products multiply.`,
    );
  const input = build(trainingDataset(configured));
  const rows = input.getGlobalBatchSize();
  const policyPaths = policyPathsOf(task);
  const [policy] = policyPaths.map((path) => getPath(task, path) as string);
  const flopsPerRow = whole.flopsPerStep / rows;
  const planning = new Planning(task, mesh, input.paddedBatchSpecs(), flopsPerRow, device, policyPaths);
  const shapes = shapesFor(mesh, request);
  for (const count of request.rows ?? [rows]) for (const shape of shapes) planning.plan(shape, count, policy);
  if (policies && policy !== undefined) {
    const best = bySpeed(planning.plans).slice(0, RETRIED);
    const others = TRIED_POLICIES.filter((other) => other !== policy);
    for (const { iciMeshShape, rows: count } of best)
      for (const other of others) planning.plan(iciMeshShape, count, other);
  }
  const { plans, refused } = planning;
  const devices = build(copyWith(mesh, { iciMeshShape: [...shapes[0]!] })).ways();
  return {
    ...{ axisNames: mesh.meshAxisNames, devices, rows, policy, policyPaths, flopsPerRow, refused },
    ...{ tokensPerRow: whole.tokensPerStep / rows, unit: whole.unit },
    plans: bySpeed(plans),
  };
}

const secondsPerRow = ({ time, rows }: MeshPlan): number => time.total / rows;

const bySpeed = (plans: readonly MeshPlan[]): MeshPlan[] =>
  [...plans].sort((a, b) => secondsPerRow(a) - secondsPerRow(b) || a.memory - b.memory);

/** Those of plans that fit that no other beats in speed and in memory, the fastest first. */
export function paretoFront(plans: readonly MeshPlan[]): MeshPlan[] {
  let least = Number.POSITIVE_INFINITY;
  return bySpeed(plans).filter(({ fits, memory }) => {
    if (!fits || memory >= least) return false;
    least = memory;
    return true;
  });
}
