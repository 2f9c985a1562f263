/** @file Times of steps on meshes, by formulas worked out by hand. */
import { expect, test } from 'vitest';
import {
  collectiveSeconds,
  type PlannedDevice,
  plannedDevice,
  stepTime,
} from '../../../src/analysis/mesh/stepTime.js';

const mesh = [2, 4];
const links = {
  ici: { bytesPerSecond: 100, latencySeconds: 1 },
  dcn: { bytesPerSecond: 10, latencySeconds: 5 },
};
const along = (axes: readonly number[], op = 'AllReduce', bytes = 800) => ({
  ...{ op, bytes, times: 1 },
  group: { mesh, axes },
});

test.each([
  // 2 · 3/4 of the bytes, in 6 messages.
  ['AllReduce', 12 + 6],
  // What the three others have.
  ['AllGather', 24 + 3],
  ['ReduceScatter', 6 + 3],
  ['AllToAll', 6 + 3],
  ['CollectivePermute', 8 + 1],
])('%s over four devices of a slice', (op, seconds) => {
  expect(collectiveSeconds(along([1], op), links, [0])).toEqual({ ici: seconds, dcn: 0 });
});

test.each([
  // The slice reduces 800 bytes and gathers them again; a fourth of them goes to the other slice.
  ['AllReduce', 12 + 6, 20 + 10],
  // 800 bytes come from the other slice, and 1600 from each of three devices of the own one.
  ['AllGather', 48 + 3, 80 + 5],
  ['ReduceScatter', 6 + 3, 10 + 5],
])('%s across two slices', (op, ici, dcn) => {
  expect(collectiveSeconds(along([0, 1], op), links, [0])).toEqual({ ici, dcn });
});

test('a permutation across slices takes the slow link, and one device sends nothing', () => {
  expect(collectiveSeconds(along([0, 1], 'CollectivePermute'), links, [0])).toEqual({ ici: 0, dcn: 85 });
  expect(collectiveSeconds(along([]), links, [])).toEqual({ ici: 0, dcn: 0 });
});

test('without slow links, slices are as near as devices', () => {
  expect(collectiveSeconds(along([0]), { ici: links.ici }, [0])).toEqual({ ici: 0, dcn: 8 + 2 });
});

const device: PlannedDevice = {
  ...{ file: 'toy.yaml', name: 'Toy', assumedMfu: 0.5, memoryBytes: 1e9, count: 1 },
  peakFlops: { float32: 100, bfloat16: 400 },
  mesh: { efficiency: 0.5, memoryBytesPerSecond: 50, links, overlap: 0.25 },
};

test('parts of a step: collectives of weights hide behind a share of the computation, others do not', () => {
  const collectives = [along([0], 'AllGather', 80), { ...along([1], 'AllReduce'), times: 2 }];
  const at = { slices: [], rows: [0] };
  const step = { flops: 2000, idleFlops: 500, precision: 'bfloat16' as const, collectives };
  const time = stepTime(step, 75, device, at);
  // 1.8 s of weights hide behind 2.5 s; 36 s of activations do not.
  expect(time).toEqual({
    ...{ compute: 10, bubble: 2.5, update: 3, exposed: 36, total: 51.5 },
    collectives: { 'AllGather over ici': 1.8, 'AllReduce over ici': 36 },
  });
  const slow = { ...device, mesh: { ...device.mesh, overlap: 0.1 } };
  const { exposed } = stepTime(step, 75, slow, at);
  expect(exposed).toBeCloseTo(36.8, 10);
});

test('a file without what plans need', () => {
  const { mesh: _, ...rest } = device;
  expect(() => plannedDevice(rest)).toThrow(
    'toy.yaml: device.mesh: expected efficiency, memoryBytesPerSecond, links and overlap, got none. devices/ has examples.',
  );
});
