/** @file Time of a training step on a mesh, by part: latency and bandwidth of links, and the computation that devices reach. */
import { type Collective, membersOf } from '../../compiler/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Device } from '../device.js';
import type { DeviceStep } from './deviceStep.js';

/** A device that plans can be made for. */
export type PlannedDevice = Device & { readonly mesh: NonNullable<Device['mesh']> };

/** @throws UsageError for a file without the figures of a mesh */
export function plannedDevice(device: Device): PlannedDevice {
  const { file, mesh } = device;
  if (mesh !== undefined) return { ...device, mesh };
  throw new UsageError(
    `${file}: device.mesh: expected efficiency, memoryBytesPerSecond, links and overlap, got none. devices/ has examples.`,
  );
}

type Link = PlannedDevice['mesh']['links']['ici'];

/** Kinds of links: those within a slice, and those between slices. */
export type LinkName = 'ici' | 'dcn';

/** Seconds of a step. */
export interface StepTime {
  readonly compute: number;
  /** In which the device waits for other stages of a pipeline. */
  readonly bubble: number;
  /** Reading and writing of variables, gradients and slots. */
  readonly update: number;
  /** Of collectives by `AllGather over ici`, whether computation hides them or not. */
  readonly collectives: Readonly<Record<string, number>>;
  /** Of collectives that no computation hides. */
  readonly exposed: number;
  readonly total: number;
}

/** The mesh as its links see it. */
export interface MeshLinks {
  /** Numbers of the axes between slices. */
  readonly slices: readonly number[];
  /** Numbers of the axes that rows are split over, whose collectives are those of weights and gradients. */
  readonly rows: readonly number[];
}

/** Bytes that a member of a ring of `ways` sends in a collective, of those that it gives, and in how many messages. */
const SENT: Readonly<
  Record<string, (ways: number) => { readonly share: number; readonly messages: number }>
> = {
  AllReduce: (ways) => ({ share: (2 * (ways - 1)) / ways, messages: 2 * (ways - 1) }),
  AllGather: (ways) => ({ share: ways - 1, messages: ways - 1 }),
  ReduceScatter: (ways) => ({ share: (ways - 1) / ways, messages: ways - 1 }),
  AllToAll: (ways) => ({ share: (ways - 1) / ways, messages: ways - 1 }),
  CollectivePermute: () => ({ share: 1, messages: 1 }),
};

function secondsOn({ bytesPerSecond, latencySeconds }: Link, op: string, bytes: number, ways: number) {
  if (ways === 1) return 0;
  const { share, messages } = SENT[op]!(ways);
  return (share * bytes) / bytesPerSecond + messages * latencySeconds;
}

/** Seconds of one execution on each kind of link. Across slices, parts go over the slow links, and the rest over the fast ones. */
export function collectiveSeconds(
  { op, bytes, group }: Collective,
  { ici, dcn = ici }: PlannedDevice['mesh']['links'],
  slices: readonly number[],
): Record<LinkName, number> {
  const waysOf = (isSlow: boolean) =>
    membersOf({ ...group, axes: group.axes.filter((axis) => slices.includes(axis) === isSlow) });
  const [fast, slow] = [waysOf(false), waysOf(true)];
  // Fast links pass on all that a slice gathers; slow ones carry parts of the sums of a slice.
  const [within, between] =
    op === 'AllGather' ? [bytes * slow, bytes] : [bytes, op === 'CollectivePermute' ? bytes : bytes / fast];
  // A permutation takes one link: between slices where its group lies across them.
  if (op === 'CollectivePermute' && slow > 1) return { ici: 0, dcn: secondsOn(dcn, op, bytes, slow) };
  return { ici: secondsOn(ici, op, within, fast), dcn: secondsOn(dcn, op, between, slow) };
}

/**
 * The time of a step.
 *
 * @param step gradients of a device's rows.
 * @param updated bytes of variables, gradients and slots on a device.
 */
export function stepTime(
  { flops, idleFlops, precision, collectives }: Omit<DeviceStep, 'memory'>,
  updated: number,
  { mesh: { efficiency, memoryBytesPerSecond, links, overlap }, peakFlops }: PlannedDevice,
  { slices, rows }: MeshLinks,
): StepTime {
  const flopsPerSecond = peakFlops[precision]! * efficiency;
  const [compute, bubble] = [flops / flopsPerSecond, idleFlops / flopsPerSecond];
  // Each is read, and all but the gradients are written.
  const update = (2 * updated) / memoryBytesPerSecond;
  const byKind: Record<string, number> = {};
  let [weights, activations] = [0, 0];
  for (const collective of collectives) {
    const seconds = collectiveSeconds(collective, links, slices);
    for (const link of ['ici', 'dcn'] as const) {
      const all = collective.times * seconds[link];
      if (all === 0) continue;
      const kind = `${collective.op} over ${link}`;
      byKind[kind] = (byKind[kind] ?? 0) + all;
      if (collective.group.axes.every((axis) => rows.includes(axis))) weights += all;
      else activations += all;
    }
  }
  const exposed = activations + Math.max(0, weights - overlap * compute);
  const total = compute + bubble + update + exposed;
  return { compute, bubble, update, collectives: byKind, exposed, total };
}
