/** @file Plans of trainings on meshes. */
import { beforeAll, expect, test } from 'vitest';
import { LmCloudSpmdPipeline, LmCloudSpmdTest } from '../../../experiments/lmCloud.js';
import { deviceStep } from '../../../src/analysis/mesh/deviceStep.js';
import { type MeshPlans, paretoFront, planMeshes } from '../../../src/analysis/mesh/planMeshes.js';
import type { PlannedDevice } from '../../../src/analysis/mesh/stepTime.js';
import { sizeOf } from '../../../src/compiler/index.js';
import { build, copyWith } from '../../../src/hparams/index.js';
import { Mesh } from '../../../src/tasks/index.js';

const device: PlannedDevice = {
  ...{ file: 'toy.yaml', name: 'Toy', assumedMfu: 0.5, memoryBytes: 1e9, count: 1 },
  peakFlops: { float32: 1e12, bfloat16: 4e12 },
  mesh: {
    ...{ efficiency: 0.5, memoryBytesPerSecond: 1e11, overlap: 0 },
    links: { ici: { bytesPerSecond: 1e10, latencySeconds: 1e-6 } },
  },
};
class Small extends LmCloudSpmdTest.preset({ numLayers: 1, maxSeqLen: 64, vocabSize: 512 }) {}
const experiment = new Small();
const configured = { name: 'LmCloudSpmdTest', task: experiment.task(), datasets: experiment.datasets() };
let plans: MeshPlans;

beforeAll(() => {
  plans = planMeshes(configured, { device, devices: 4 });
});

test('all meshes of so many devices, the fastest first', () => {
  expect(plans.plans.map(({ iciMeshShape }) => String(iciMeshShape)).sort()).toEqual(
    ['1,1,4', '1,2,2', '1,4,1', '2,1,2', '2,2,1', '4,1,1'].sort(),
  );
  const times = plans.plans.map(({ time }) => time.total);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  for (const { time, mfu, rows } of plans.plans) {
    expect(time.total).toBeCloseTo(time.compute + time.bubble + time.update + time.exposed, 12);
    expect(mfu).toBeCloseTo((rows * plans.flopsPerRow) / (4 * 4e12 * time.total), 12);
  }
});

test('the front: each plan is slower and smaller than the one before', () => {
  const front = paretoFront(plans.plans);
  expect(front[0]).toBe(plans.plans[0]);
  for (const [i, { memory }] of front.slice(1).entries()) expect(memory).toBeLessThan(front[i]!.memory);
  for (const plan of plans.plans)
    expect(front.some(({ memory, time }) => memory <= plan.memory && time.total <= plan.time.total)).toBe(
      true,
    );
  const least = front.at(-1)!;
  const tight = plans.plans.map((plan) => ({ ...plan, fits: plan.memory <= least.memory }));
  expect(paretoFront(tight)).toEqual([{ ...least, fits: true }]);
});

test('what divides nothing, and what is too large, is told once with its shapes', () => {
  const { refused, plans: none } = planMeshes(configured, { device, devices: 3 });
  expect(none).toEqual([]);
  expect([...refused]).toEqual([
    [
      'task.mesh.weightSplitDimsMapping does not fit the model: dimension 3 of ' +
        "lm/transformer/repeat/sub/x_layers_0/self_attention/combined_qkv/w [1,3,64,8,8] can't be split evenly over 3 devices " +
        '(mdl 3).',
      [[1, 1, 3]],
    ],
    [
      "A batch of 4 rows can't be split evenly over 3 devices (replica 1, data 3): change the batch size or the mesh.",
      [[1, 3, 1]],
    ],
    [
      "A batch of 4 rows can't be split evenly over 3 devices (replica 3, data 1): change the batch size or the mesh.",
      [[3, 1, 1]],
    ],
  ]);
  const tiny = planMeshes(configured, { device: { ...device, memoryBytes: 1000 }, devices: 2 });
  expect([...tiny.refused]).toEqual([
    [
      'variables, gradients and slots alone are more than Toy has.',
      [
        [1, 1, 2],
        [1, 2, 1],
        [2, 1, 1],
      ],
    ],
  ]);
});

test('policies and numbers of rows', () => {
  const tried = planMeshes(configured, { device, shape: [1, 2, 1], rows: [4, 8], policies: true });
  expect(new Set(tried.plans.map(({ rows, policy }) => `${rows} ${policy}`))).toEqual(
    new Set(
      [4, 8].flatMap((rows) =>
        ['SAVE_NOTHING', 'SAVE_OUT_PROJ', 'SAVE_DOT_EXCEPT_LOGITS_FFN1', 'SAVE_DOT_ONLY'].map(
          (policy) => `${rows} ${policy}`,
        ),
      ),
    ),
  );
  const compute = (policy: string) =>
    tried.plans.find((plan) => plan.rows === 8 && plan.policy === policy)!.time.compute;
  expect(compute('SAVE_DOT_ONLY')).toBeLessThan(compute('SAVE_NOTHING'));
});

test.each([
  [
    { shape: [1, 2] },
    '--shape=[1,2]: expected devices along each of the axes replica, data, mdl, such as [1,1,1].',
  ],
])('%o is refused', (request, message) => {
  expect(() => planMeshes(configured, { device, ...request })).toThrow(message);
});

test('slices that do not divide the devices, and a precision that the device lacks', () => {
  const task = experiment.task();
  task.mesh = Mesh.config({ dcnMeshShape: [2, 1, 1] });
  expect(() => planMeshes({ ...configured, task }, { device, devices: 3 })).toThrow(
    "--devices=3: task.mesh.dcnMeshShape [2,1,1] has 2 slices, which don't divide 3 devices: expected a multiple of 2, or " +
      '--set task.mesh.dcnMeshShape=null.',
  );
  expect(() => planMeshes(configured, { device: { ...device, peakFlops: { float32: 1e12 } } })).toThrow(
    'toy.yaml: peakFlops lacks bfloat16, in which most products multiply.',
  );
});

test('gradients that no axis of rows splits are summed whole', () => {
  const task = build(configured.task);
  const batch = (build(configured.datasets[0]!) as any).paddedBatchSpecs();
  const { collectives } = deviceStep(task, batch, build(Mesh.config({ iciMeshShape: [2, 1, 1] })));
  const sent = collectives
    // Sums of losses and weights are scalars.
    .filter(({ op, bytes }) => op === 'AllReduce' && bytes > 8)
    .reduce((sum, { bytes, times }) => sum + bytes * times, 0);
  const variables = task.variables.reduce((sum, { shape }) => sum + 4 * sizeOf(shape), 0);
  expect(sent).toBe(variables);
  const alone = deviceStep(task, batch, build(Mesh.config()));
  expect(alone.collectives).toEqual([]);
});

/** FLOPs of one of so many devices that share four stages. */
function staged(numMicrobatches: number, devices: number) {
  class Staged extends LmCloudSpmdPipeline.preset({
    ...{ numLayers: 4, modelDims: 64, dimsPerHead: 16, maxSeqLen: 16, vocabSize: 64, percoreBatchSize: 4 },
    ...{ numStages: 4, numMicrobatches, microbatchSize: null, iciMeshShape: [4, 1, 1, 1] },
  }) {}
  const own = new Staged();
  const config = own.task();
  const mesh = build(copyWith(config.mesh!, { iciMeshShape: [devices, 1, 1, 1] }));
  return deviceStep(build(config), (build(own.datasets()[0]!) as any).paddedBatchSpecs(), mesh);
}

test('stages wait for others: as long as the bubble of the schedule says, and not at all on one device', () => {
  const [four, eight, alone] = [staged(4, 4), staged(8, 4), staged(8, 1)];
  // As many rows in more microbatches: half the work in each iteration that a stage waits.
  expect(four.idleFlops / eight.idleFlops).toBeCloseTo(2, 1);
  expect(alone.idleFlops).toBe(0);
  // Three of eleven iterations.
  expect(eight.idleFlops / (eight.flops + eight.idleFlops)).toBeGreaterThan(0.2);
  expect(eight.idleFlops / (eight.flops + eight.idleFlops)).toBeLessThan(3 / 11);
});
