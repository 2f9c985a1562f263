/** @file The analysis of experiments against figures counted by hand and by the published formulas. */
import { expect, test } from 'vitest';
import type { Analysis } from '../../src/analysis/analyze.js';
import { analyze } from '../../src/analysis/analyze.js';
import type { LayerSummary } from '../../src/analysis/layerTable.js';
import type { Config } from '../../src/hparams/index.js';
import { Embedding } from '../../src/layers/index.js';
import { Adafactor, AdamW } from '../../src/learners/index.js';
import type { LanguageModel } from '../../src/models/index.js';
import { longTest } from '../longTest.js';
import { configured, Gpt, LeastSquares } from './models.js';

const layerAt = ({ layers }: Analysis, path: string): LayerSummary =>
  layers.find((layer) => layer.path === path)!;

const [L, D, V, T, B] = [2, 32, 64, 16, 8];
const gpt = analyze(configured(Gpt));

test('parameters of a GPT: tables, and 12 D^2 with 13 D of biases and norms in each block', () => {
  const block = 12 * D * D + 13 * D;
  const total = V * D + T * D + L * block + 2 * D;
  expect(gpt.parameters).toBe(total);
  expect(gpt.trainableParameters).toBe(total);
  expect(layerAt(gpt, '').parameters).toBe(total);
  expect(layerAt(gpt, 'lm/transformer/x_layers_1')).toMatchObject({ parameters: block, ownParameters: 0 });
  expect(layerAt(gpt, 'lm/transformer/x_layers_1/self_attention/key')).toMatchObject({
    parameters: D * D + D,
    ownParameters: D * D + D,
  });
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  expect(sum(gpt.layers.map(({ ownParameters }) => ownParameters))).toBe(total);
  expect(sum(gpt.variables.map(({ shape }) => shape.reduce((a, b) => a * b, 1)))).toBe(total);
  expect(gpt.variables[0]).toEqual({
    name: 'lm/position_emb/emb_var',
    shape: [T, D],
    dtype: 'float32',
    trainable: true,
    rules: ['trained', 'decayed', 'initialized by Gaussian {"scale":0.02}'],
  });
});

test('FLOPs of layers, exactly: 2 M N K a product, 4 B T^2 D in attention', () => {
  const flops = (path: string) => layerAt(gpt, `lm/transformer/x_layers_0/${path}`).flops;
  expect(flops('ff_layer/ffn_layer1/linear')).toBe(2 * B * T * D * 4 * D);
  expect(flops('ff_layer/ffn_layer2/linear')).toBe(2 * B * T * 4 * D * D);
  const projections = ['query', 'key', 'value', 'post'].map((name) => flops(`self_attention/${name}`));
  // A product and its bias.
  expect(projections).toEqual(new Array(4).fill(2 * B * T * D * D + B * T * D));
  expect(flops('self_attention')).toBe(4 * projections[0]! + 4 * B * T * T * D);
  expect(flops('residual_dropout')).toBe(0);
});

/** The FLOPs of a GPT's matrix products for each token, forward. */
const products = (l: number, d: number, v: number, t: number): number =>
  l * (24 * d * d + 4 * t * d) + 2 * v * d;

longTest('FLOPs of the large: 24 D^2 + 4 T D a layer, 2 V D for the logits, and very little besides', () => {
  const large = { layers: 96, dims: 12288, heads: 96, vocab: 50257, time: 2048, batch: 1536 };
  const { forwardFlopsPerToken, flopsPerStep, parameters, tokensPerStep, memory } = analyze(
    configured(Gpt, large),
  );
  const formula = products(large.layers, large.dims, large.vocab, large.time);
  expect(forwardFlopsPerToken / formula).toBeGreaterThan(1);
  expect(forwardFlopsPerToken / formula).toBeLessThan(1.0005);
  expect(tokensPerStep).toBe(1536 * 2048);
  // PaLM's 6 N + 12 L D T, to the last parts in a thousand: tables are not multiplied.
  expect(flopsPerStep / tokensPerStep / (6 * parameters + 12 * 96 * 12288 * 2048)).toBeCloseTo(1, 2);
  expect(parameters).toBe(50257 * 12288 + 2048 * 12288 + 96 * (12 * 12288 ** 2 + 13 * 12288) + 2 * 12288);
  expect(memory.variables / (4 * parameters)).toBeCloseTo(1, 4);
});

test('FLOPs as computed: of a single product, those forward and of its weights', () => {
  const [dims, rows, outputs] = [512, 64, 32];
  const { flopsPerStep, computedFlopsPerStep } = analyze(
    configured(LeastSquares, { dims, batch: rows, outputs }),
  );
  const product = 2 * rows * dims * outputs;
  expect(flopsPerStep / product).toBeCloseTo(3, 1);
  expect(computedFlopsPerStep / product).toBeCloseTo(2, 1);
});

test('FLOPs as computed: what a layer does not keep is computed again', () => {
  const task = 'task.model.lmTpl.stackedTransformerTpl.remat';
  const [kept, again] = ['false', 'true'].map(
    (remat) => analyze(configured(Gpt, { layers: 4, dims: 64, [task]: remat })).computedFlopsPerStep,
  );
  expect(again! / kept!).toBeGreaterThan(1.2);
  expect(again! / kept!).toBeLessThan(4 / 3);
});

longTest('what is done in the layers is all that is done', () => {
  const own = (pick: (layer: LayerSummary) => number): number => {
    const children = (layer: LayerSummary) =>
      gpt.layers.filter(
        ({ path, depth }) =>
          depth === layer.depth + 1 && (layer.path === '' || path.startsWith(`${layer.path}/`)),
      );
    const each = gpt.layers.map(
      (layer) => pick(layer) - children(layer).reduce((sum, child) => sum + pick(child), 0),
    );
    expect(Math.min(...each)).toBeGreaterThanOrEqual(0);
    return each.reduce((a, b) => a + b, 0);
  };
  expect(own(({ flops }) => flops)).toBe(layerAt(gpt, '').flops);
  expect(gpt.forwardFlopsPerToken * gpt.tokensPerStep).toBe(layerAt(gpt, '').flops);
  expect(gpt.flopsPerStep).toBe(3 * layerAt(gpt, '').flops);
  expect(own(({ activationBytes }) => activationBytes)).toBe(layerAt(gpt, '').activationBytes);
});

test('output shapes are those of the first tensor that fprop returned', () => {
  const shape = (path: string) => layerAt(gpt, path).outputShape;
  expect(shape('')).toEqual([]);
  expect(shape('lm')).toEqual([B, T, V]);
  expect(shape('lm/position_emb')).toEqual([T, D]);
  expect(shape('lm/transformer/x_layers_0/ff_layer/ffn_layer1')).toEqual([B, T, 4 * D]);
  // As the softmax that it is, not as the embedding that it is, too.
  expect(shape('lm/softmax')).toEqual([B, T, V]);
  // Attention without dropout never calls it.
  expect(shape('lm/transformer/x_layers_0/self_attention/atten_dropout')).toBeUndefined();
});

test('what a block keeps for the backward pass, counted by hand', () => {
  const bytes = (path: string) => layerAt(gpt, `lm/transformer/x_layers_0/${path}`).activationBytes;
  const row = 4 * B * T * D;
  // The norm's result and two statistics for each position.
  expect(bytes('layer_norm')).toBe(row + 2 * 4 * B * T);
  // Query, key and value, the weights, and the result.
  expect(bytes('self_attention')).toBe(3 * row + 4 * B * 4 * T * T + row);
  // Before and after GELU.
  expect(bytes('ff_layer/ffn_layer1')).toBe(2 * 4 * row);
  expect(bytes('ff_layer/ffn_layer2')).toBe(0);
});

test('memory of a step: AdamW has two slots; a call has 16 batches; weights of attention are not stored', () => {
  const { variables, gradients, optimizer, batches, activations, working, total } = gpt.memory;
  // Buffers are padded to whole cache lines.
  expect(variables - 4 * gpt.parameters).toBeGreaterThanOrEqual(0);
  expect(variables - 4 * gpt.parameters).toBeLessThan(2 * 64);
  expect([gradients, optimizer]).toEqual([variables, 2 * variables]);
  expect(batches).toBe(16 * 4 * 4 * B * T);
  expect(total).toBe(4 * variables + batches + activations + working);
  const averaged = analyze(configured(Gpt, { 'task.train.learner.optimizer.emaDecay': 0.99 }));
  expect(averaged.memory.optimizer).toBe(3 * variables);
  const factored = configured(Gpt);
  factored.task.train.learner.optimizer = Adafactor.config({ learningRate: 1, minDimSizeToFactor: 2 });
  // Rows and columns of matrices; vectors have one slot.
  expect(analyze(factored).memory.optimizer).toBeLessThan(0.2 * variables);
});

test('the gradient of a table that is looked up counts as the rows that a step looks up', () => {
  const [vocab, rows] = [1024, 2 * T];
  const memoryOf = (lazyUpdate: boolean) => {
    const experiment = configured(Gpt, { vocab, batch: 2 });
    (experiment.task.model as Config<LanguageModel>).lmTpl.separateEmbeddingTpl = Embedding.config();
    experiment.task.train.learner.optimizer = AdamW.config({ learningRate: 1e-3, lazyUpdate });
    return analyze(experiment).memory;
  };
  const [all, lazy] = [memoryOf(false), memoryOf(true)];
  expect(all.gradients).toBe(all.variables);
  const { total: _, gradients, ...others } = lazy;
  // Each row comes with its index.
  expect(all.gradients - gradients).toBe(4 * (vocab * D - rows * (D + 1)));
  expect(all).toMatchObject(others);
});

test('least squares, to the last FLOP and byte', () => {
  const [batch, dims] = [32, 64];
  const analysis = analyze(configured(LeastSquares));
  const product = 2 * batch * dims;
  // The difference, its squares, and their mean.
  const loss = 3 * batch;
  expect(analysis.layers).toEqual([
    {
      ...{ path: '', type: 'Regression', depth: 0, outputShape: [], ownParameters: 0, parameters: dims },
      // The gradient of the squares reads the differences.
      ...{ flops: product + loss, activationBytes: 4 * batch },
    },
    {
      ...{
        path: 'first',
        type: 'Linear',
        depth: 1,
        outputShape: [batch, 1],
        ownParameters: dims,
        parameters: dims,
      },
      ...{ flops: product, activationBytes: 0 },
    },
  ]);
  expect(analysis).toMatchObject({
    tokensPerStep: batch,
    unit: 'examples',
    flopsPerStep: 3 * (product + loss),
  });
  const buffer = 4 * dims;
  expect(analysis.memory).toMatchObject({ variables: buffer, gradients: buffer, optimizer: 0 });
  const pairs = 4 * batch * (dims + 1);
  expect(analysis.memory.batches).toBe(16 * pairs);
});

test('a layer that two share is listed once, and counted once at their parent', () => {
  const { layers, parameters } = analyze(configured(LeastSquares, { again: 'true', outputs: 64 }));
  expect(layers.map(({ path }) => path)).toEqual(['', 'first']);
  expect(parameters).toBe(64 * 64);
  expect(layers[1]!.flops).toBe(2 * (2 * 32 * 64 * 64));
});

test('several hosts: a step trains on all of their batches, each holds its own', () => {
  const four = analyze(configured(Gpt, { hosts: 4 }));
  expect(four.tokensPerStep).toBe(4 * gpt.tokensPerStep);
  expect(four.flopsPerStep).toBe(4 * gpt.flopsPerStep);
  expect(four.forwardFlopsPerToken).toBe(gpt.forwardFlopsPerToken);
  expect(four.memory).toEqual(gpt.memory);
});

test('frozen variables have neither gradients nor slots', () => {
  const frozen = analyze(
    configured(Gpt, { 'task.train.learner.bpropVariableInclusion': 'lm/transformer/.*' }),
  );
  const tables = V * D + T * D + 2 * D;
  expect(frozen.trainableParameters).toBe(gpt.parameters - tables);
  expect(frozen.variables.filter(({ trainable }) => !trainable).map(({ name }) => name)).toEqual([
    'lm/position_emb/emb_var',
    'lm/final_ln/scale',
    'lm/final_ln/bias',
    'lm/softmax/w',
  ]);
  const trained = frozen.trainableParameters / gpt.parameters;
  expect(frozen.memory.gradients / gpt.memory.gradients).toBeCloseTo(trained, 2);
  expect(frozen.memory.optimizer / gpt.memory.optimizer).toBeCloseTo(trained, 2);
  expect(frozen.memory.variables).toBe(gpt.memory.variables);
  expect(frozen.flopsPerStep).toBe(gpt.flopsPerStep);
});

test('what is wrong with an experiment is told as training tells it', () => {
  expect(() => analyze(configured(Gpt, { 'datasets[0].isTraining': 'false' }))).toThrow(
    'tests.Gpt: datasets() must have one dataset with isTraining true, it has none.',
  );
  expect(() => analyze(configured(Gpt, { 'datasets[0].seqLen': 17 }))).toThrow(
    'lm/position_emb (TrainablePositionalEmbedding): a sequence of 17 tokens is longer than maxSeqLength 16.',
  );
  expect(() => analyze(configured(LeastSquares, { 'task.train.learner.lossName': 'total_los' }))).toThrow(
    "The learner's lossName is 'total_los', and Regression has no such metric. Did you mean 'total_loss'?",
  );
});
