/** @file Memory of a device under a mesh, by hand and beside that of one device. */
import { expect, test } from 'vitest';
import { LmCloudSpmd } from '../../experiments/lmCloud.js';
import { type Analysis, analyze } from '../../src/analysis/analyze.js';
import { configure } from '../../src/cli/index.js';
import { longTest } from '../longTest.js';
import { configured, Gpt } from './models.js';

/** Two layers of depth 64, four heads of 16, a vocabulary of 250, 8 rows of 32 tokens in all, on a mesh. */
class Small extends LmCloudSpmd.preset({
  ...{ numLayers: 2, modelDims: 64, dimsPerHead: 16, vocabSize: 250, maxSeqLen: 32, percoreBatchSize: 8 },
  ...{ useRepeatedLayer: false, useBias: true, trainablePositionEmb: true, trainablePeMaxSeqLen: 128 },
}) {}

const [L, D, F, V, P, B] = [2, 64, 256, 250, 128, 8];

function analysisOf(ici: number[], dcn: number[] = [1, 1, 1], more: Record<string, unknown> = {}): Analysis {
  const devices = [...ici, ...dcn].reduce((a, b) => a * b, 1);
  const values = { iciMeshShape: ici, dcnMeshShape: dcn, percoreBatchSize: B / devices, ...more };
  const resolved = { name: 'tests.Small', cls: Small.preset(values) };
  return analyze(configure(resolved as unknown as Parameters<typeof configure>[0]));
}

const one = analysisOf([1, 1, 1]);

test('a mesh of ones, and no mesh, are one device', () => {
  const without = configure({ name: 'tests.Small', cls: Small } as unknown as Parameters<
    typeof configure
  >[0]);
  without.task.mesh = null;
  const plain = analyze(without);
  expect(one.memory).toEqual(plain.memory);
  expect(one.layers).toEqual(plain.layers);
  expect(one.mesh).toEqual({ devices: 1, axes: { replica: 1, data: 1, mdl: 1 }, padded: [] });
});

test('variables, gradients and slots are divided by the axes of their dimensions', () => {
  const { memory, mesh } = analysisOf([1, 4, 2]);
  expect(mesh.devices).toBe(8);
  // Depth by 4, heads, hidden depth and classes by 2; norms, and factors of queries, are whole.
  const attention = (3 + 1) * (D / 4) * (D / 2) + 3 * (D / 2) + D / 4;
  const feedForward = 2 * (D / 4) * (F / 2) + F / 2 + D / 2;
  const whole = 2 * 2 * D + 16;
  const ends = (P / 4) * (D / 2) + (D / 4) * (V / 2) + V / 2 + 2 * D;
  const elements = L * (attention + feedForward + whole) + ends;
  // Each variable is padded to a cache line of 16 elements.
  const padding = 16 * Math.ceil(V / 2 / 16) - V / 2;
  expect(memory.variables).toBe(4 * (elements + padding));
  expect(memory.gradients).toBe(memory.variables);
  expect(memory.optimizer).toBe(2 * memory.variables);
  // Ids, labels, weights, paddings, segment ids and positions of two rows, for sixteen steps.
  expect(memory.batches).toBe(one.memory.batches / 4);
});

test('a layer of GPT-3, on the mesh of its published run', () => {
  // 96 heads of depth 128: 12288 by 64, 49152 and heads by 24.
  const gpt3 = {
    modelDims: 12_288,
    dimsPerHead: 128,
    numLayers: 1,
    trainablePositionEmb: false,
    vocabSize: 24,
  };
  const { memory, mesh } = analysisOf([1, 64, 24], [1, 1, 1], { ...gpt3, percoreBatchSize: 1 / 24 });
  const [d, f, n] = [12_288 / 64, 49_152 / 24, 96 / 24];
  const attention = 4 * d * n * 128 + 3 * n * 128 + d;
  const feedForward = 2 * d * f + f + 12_288 / 24;
  const rest = 2 * 2 * 12_288 + 128 + (d * 24) / 24 + 1 + 2 * 12_288;
  expect(mesh.devices).toBe(1536);
  // The softmax's one bias lies in a cache line.
  expect(memory.variables).toBe(4 * (attention + feedForward + rest + 15));
});

test('rows are split over replicas and data, over slices too; weights over data', () => {
  const [data, replica] = [analysisOf([1, 4, 1]), analysisOf([2, 1, 1], [2, 1, 1])];
  expect(replica.memory).toMatchObject({
    variables: one.memory.variables,
    batches: one.memory.batches / 4,
  });
  expect(data.memory.variables).toBeLessThan(0.3 * one.memory.variables);
  // What a layer keeps belongs to its rows.
  const kept = ({ layers }: Analysis) =>
    layers
      .filter(({ path }) => path.endsWith('/ffn_layer1/activation'))
      .map(({ activationBytes }) => activationBytes);
  expect(kept(data).map((bytes) => 4 * bytes)).toEqual(kept(one));
  expect(kept(one).some((bytes) => bytes > 0)).toBe(true);
  expect(data.layers.map(({ flops }) => flops)).toEqual(one.layers.map(({ flops }) => flops));
});

test('activations of attention, feed-forward layers, norms and sums are split over mdl', () => {
  const mdl = analysisOf([1, 1, 2]);
  const kept = ({ layers }: Analysis, path: string) =>
    layers.find((layer) => layer.path === `lm/transformer/x_layers_0/${path}`)!.activationBytes;
  for (const path of ['self_attention', 'ff_layer/ffn_layer1', 'ff_layer/ffn_layer2', 'layer_norm'])
    expect(kept(mdl, path)).toBe(kept(one, path) / 2);
  expect(mdl.memory.activations).toBeLessThan(one.memory.activations);
  expect(mdl.memory.activations).toBeGreaterThan(one.memory.activations / 2);
});

test('a dimension that does not divide is padded, and told; too few elements are an error, and too few rows', () => {
  const { mesh, memory } = analysisOf([1, 1, 4]);
  expect(mesh.padded).toEqual(['lm/softmax/logits_ffn/linear/w', 'lm/softmax/logits_ffn/bias/b']);
  expect(memory.variables).toBeGreaterThan(one.memory.variables / 4);
  expect(() => analysisOf([1, 1, 8])).toThrow(
    'task.mesh.weightSplitDimsMapping does not fit the model: dimension 2 of ' +
      "lm/transformer/x_layers_0/self_attention/combined_qkv/w [3,64,4,16] can't be split over 8 devices (mdl 8).",
  );
  expect(() => analysisOf([1, 16, 1])).toThrow(
    "A batch of 8 rows can't be split evenly over 16 devices (replica 1, data 16)",
  );
});

longTest(
  'a repeated layer that keeps nothing has as many variables, split alike, and takes less memory',
  () => {
    const [apart, repeated] = [false, true].map((useRepeatedLayer) =>
      analysisOf([1, 2, 2], [1, 1, 1], { useRepeatedLayer, numLayers: 12, maxSeqLen: 128 }),
    );
    expect(repeated!.memory.variables).toBe(apart!.memory.variables);
    expect(repeated!.memory.activations).toBeLessThan(apart!.memory.activations / 2);
  },
);

test('what a repeated layer keeps of all turns is split as a turn is', () => {
  const more = { useRepeatedLayer: true, numLayers: 16, maxSeqLen: 128, dimsPerHead: 32 };
  const rows = 128;
  const kept = (mdl: number) => {
    const [all, nothing] = ['SAVE_CONTEXT_AND_OUT_PROJ', 'SAVE_NOTHING'].map(
      (checkpointPolicy) =>
        analysisOf([1, 1, mdl], [1, 1, 1], { ...more, checkpointPolicy, percoreBatchSize: rows / mdl })
          .memory,
    );
    return all!.activations - nothing!.activations;
  };
  expect(kept(1)).toBeGreaterThan(more.numLayers * rows * more.maxSeqLen * D * 4);
  expect(kept(2) / kept(1)).toBeCloseTo(1 / 2, 1);
});

test('every annotation of the models that Pax ships fits a variable', () => {
  for (const combineQkv of [true, false])
    for (const useGatedActivation of [true, false])
      for (const separateEmbedding of [true, false]) {
        const options = { combineQkv, useGatedActivation, separateEmbedding, useBias: !combineQkv };
        const { memory } = analysisOf([1, 2, 2], [1, 1, 1], options);
        expect(memory.variables).toBeLessThan(0.4 * one.memory.variables);
      }
});

test('several hosts are devices with rows of their own and all variables', () => {
  const { mesh, memory } = analyze(configured(Gpt, { hosts: 4 }));
  expect(mesh).toEqual({ devices: 4, axes: { replica: 4, data: 1, mdl: 1 }, padded: [] });
  expect(memory).toEqual(analyze(configured(Gpt)).memory);
});
