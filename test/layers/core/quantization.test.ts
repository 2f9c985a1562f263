/** @file Weights of layers in few bits: their codes, and layers that read them. */
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  ActQuantization,
  AttentionProjection,
  type BaseLayer,
  type CodeForm,
  CombinedQKVProjectionLayer,
  Conv2D,
  codesOf,
  Einsum,
  Embedding,
  Linear,
  listLayers,
  listVariables,
  notFinite,
  OneHeadedAttentionProjection,
  Quantization,
  SharedEmbeddingSoftmax,
  scaleName,
  WeightQuantization,
} from '../../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';

type Values = Partial<{
  precision: 8 | 4;
  blockSize: number;
  mode: 'training' | 'materialize' | 'inference';
  roundsRows: boolean;
}>;

const quantization = ({
  precision = 8,
  blockSize = 0,
  mode = 'inference',
  roundsRows = false,
}: Values = {}) =>
  Quantization.config({
    ...{ mode, quantizationType: 'FQ' },
    weightParams: WeightQuantization.config({ precision, blockSize }),
    actParams: roundsRows ? ActQuantization.config() : null,
  });

/** Element i is 0.1 sin(i + 1). */
const sines = (size: number): Float32Array =>
  Float32Array.from({ length: size }, (_, i) => 0.1 * Math.sin(i + 1));

/** Values of a layer in codes, of those of the layer with weights. */
function inCodes(
  layer: BaseLayer,
  theta: Readonly<Record<string, Tensor>>,
  clips = false,
): Record<string, Tensor> {
  const given = { ...theta };
  for (const { codeForms, variables } of listLayers(layer))
    for (const [name, form] of codeForms) {
      const [codes, scales] = [variables.get(name)!, variables.get(scaleName(name))!];
      const made = codesOf(theta[codes.path]!.dataSync() as Float32Array, form, clips);
      given[codes.path] = tf.tensor(Int32Array.from(made.codes), [...codes.shape], 'int32');
      const floats =
        made.scales instanceof Float32Array
          ? made.scales
          : new Float32Array(Uint32Array.from(made.scales, (half) => half << 16).buffer);
      given[scales.path] = tf.tensor(floats, [...scales.shape]);
    }
  return given;
}

test("codes and scales of Pax's quantized Linear, to the digit", () => {
  const layer = build(Linear.config({ inputDims: 8, outputDims: 4, quantization: quantization() }));
  expect(listVariables(layer).map(({ path, shape, storage }) => [path, shape, storage])).toEqual([
    ['w', [4, 8], 'int8'],
    ['w_quantized_scale', [4], undefined],
  ]);
  const { codes, scales } = codesOf(sines(32), layer.codeForms.get('w')!, false);
  expect([...scales].map((scale) => scale.toFixed(9))).toEqual([
    '0.000757006',
    '0.000780006',
    '0.000787394',
    '0.000779022',
  ]);
  // Of the first input: Pax has [8, 4].
  expect([0, 1, 2, 3].map((output) => codes[output * 8])).toEqual([111, 117, 18, -97]);
});

const D = 64;
const layers: readonly (readonly [
  string,
  (q: Config<Quantization> | null) => Config<BaseLayer>,
  number[],
])[] = [
  ['Linear', (q) => Linear.config({ inputDims: D, outputDims: 5, quantization: q }), [3, D]],
  [
    'AttentionProjection',
    (q) => AttentionProjection.config({ inputDim: D, numHeads: 2, dimPerHead: 3, quantization: q }),
    [2, 3, D],
  ],
  [
    'AttentionProjection back',
    (q) =>
      AttentionProjection.config({
        ...{ inputDim: 5, numHeads: 2, dimPerHead: D / 2, isOutputProjection: true, quantization: q },
      }),
    [2, 2, D / 2],
  ],
  ['Conv2D', (q) => Conv2D.config({ filterShape: [2, 2, 16, 3], quantization: q }), [1, 4, 4, 16]],
];

describe.each(layers)('%s', (_, config, shape) => {
  test.each([
    [{}, 0.02],
    [{ precision: 4, blockSize: 32 }, 0.14],
  ] as const)('%j: codes give what rounded weights give, near those that are not rounded', (values, most) => {
    const plain = build(config(null)) as Linear;
    const theta = randomTheta(plain);
    const x = tensor(shape);
    const outputs = run(theta, () => plain.fprop(x)) as Tensor;
    const coded = build(config(quantization(values))) as Linear;
    const found = run(inCodes(coded, theta), () => coded.fprop(x)) as Tensor;
    const rounding = build(config(quantization({ ...values, mode: 'materialize' }))) as Linear;
    const rounded = run(theta, () => rounding.fprop(x)) as Tensor;
    const largest = Math.max(...outputs.dataSync().map(Math.abs));
    const farthest = (a: Tensor, b: Tensor): number =>
      Math.max(...[...a.dataSync()].map((value, i) => Math.abs(value - b.dataSync()[i]!))) / largest;
    expect(farthest(found, outputs)).toBeGreaterThan(1e-5);
    expect(farthest(found, outputs)).toBeLessThan(most);
    // Scales of blocks are bfloat16.
    expect(farthest(found, rounded)).toBeLessThan('blockSize' in values ? 8e-2 : 1e-6);
  });
});

const products: readonly (readonly [string, (q: Config<Quantization>) => Config<BaseLayer>, number[]])[] = [
  ...layers.filter(([name]) => name !== 'Conv2D'),
  [
    'OneHeadedAttentionProjection',
    (q) => OneHeadedAttentionProjection.config({ inputDim: D, outputDim: 3, quantization: q }),
    [2, D],
  ],
  // The summed axes are neither last nor in the weight's order.
  [
    'Einsum',
    (q) => Einsum.config({ eqn: '...hbd,dhf->...fb', wShape: [4, D / 4, 3], quantization: q }),
    [2, D / 4, 5, 4],
  ],
];

test.each(products)('%s: with actParams, rows are rounded before they are multiplied', (_, config, shape) => {
  for (const values of [{}, { precision: 4, blockSize: 32 }] as const) {
    const layer = (more: Values) => build(config(quantization({ ...values, ...more }))) as Linear;
    const [plain, rounding] = [layer({}), layer({ roundsRows: true })];
    const theta = inCodes(plain, randomTheta(layer({ mode: 'materialize' })));
    const x = tensor(shape);
    const outputs = [plain, rounding].map((each) => run(theta, () => each.fprop(x)).dataSync());
    const largest = Math.max(...outputs[0]!.map(Math.abs));
    const farthest = Math.max(...outputs[0]!.map((value, i) => Math.abs(value - outputs[1]![i]!)));
    expect(farthest / largest).toBeGreaterThan(1e-5);
    expect(farthest / largest).toBeLessThan(0.02);
  }
});

test('rows are rounded in the groups of the weights, along the axes that are summed, and keep their gradient', () => {
  const values = { mode: 'materialize', blockSize: 32 } as const;
  const plain = build(Linear.config({ inputDims: D, outputDims: 1, quantization: quantization(values) }));
  const rounding = build(
    Linear.config({
      inputDims: D,
      outputDims: 1,
      quantization: quantization({ ...values, roundsRows: true }),
    }),
  );
  // The weight selects an element of the second group, which is far below the largest of the first.
  const theta = {
    w: tf.tensor(
      Float32Array.from({ length: D }, (_, i) => (i === 40 ? 1 : 0)),
      [D, 1],
    ) as Tensor,
  };
  const row = Float32Array.from({ length: D }, (_, i) => (i < 32 ? 1000 : i === 40 ? 0.3 : 1));
  const x = tf.tensor(row, [1, D]) as Tensor;
  expect(run(theta, () => rounding.fprop(x)).dataSync()[0]).toBeCloseTo(38 / 127, 6);
  const gradientOf = (layer: Linear) =>
    run(theta, () => tf.grad((y) => layer.fprop(y as Tensor))(x)).dataSync();
  expect([...gradientOf(rounding)]).toEqual([...gradientOf(plain)]);
});

test('rows of weights that stay as they are, and inputs of convolutions, are not rounded', () => {
  const skipping = (roundsRows: boolean): Config<Quantization> => {
    const chosen = quantization({ roundsRows });
    chosen.skip = ['w'];
    return chosen;
  };
  const linear = [false, true].map((rounds) =>
    build(Linear.config({ inputDims: D, outputDims: 5, quantization: skipping(rounds) })),
  );
  const convolution = [false, true].map((roundsRows) =>
    build(Conv2D.config({ filterShape: [2, 2, 16, 3], quantization: quantization({ roundsRows }) })),
  );
  const conv = randomTheta(build(Conv2D.config({ filterShape: [2, 2, 16, 3] })));
  const outputs = (layers: readonly BaseLayer[], theta: Record<string, Tensor>, shape: number[]) =>
    layers.map((layer) => [...run(theta, () => (layer as Linear).fprop(tensor(shape))).dataSync()]);
  for (const [plain, rounding] of [
    outputs(linear, randomTheta(linear[0]!), [3, D]),
    outputs(convolution, inCodes(convolution[0]!, conv), [1, 4, 4, 16]),
  ])
    expect(rounding).toEqual(plain);
});

test('tables are looked up in codes, and projections of queries, keys and values read theirs', () => {
  const table = build(Embedding.config({ numClasses: 6, inputDims: 32, quantization: quantization() }));
  const theta = randomTheta(table);
  const ids = tf.tensor([5, 0, 5], [3], 'int32') as Tensor;
  const rows = run(inCodes(table, theta), () => table.embLookup(ids));
  const near = [5, 0, 5].flatMap((id) => [...theta.emb_var!.dataSync().subarray(id * 32, (id + 1) * 32)]);
  expect(Math.max(...[...rows.dataSync()].map((value, i) => Math.abs(value - near[i]!)))).toBeLessThan(0.02);

  const shared = build(
    SharedEmbeddingSoftmax.config({ inputDims: 32, numClasses: 6, quantization: quantization() }),
  );
  expect(listVariables(shared).map(({ path, shape }) => [path, shape])).toContainEqual([
    'logits_ffn/linear/w',
    [6, 32],
  ]);
  const combined = (q: Config<Quantization> | null) =>
    build(CombinedQKVProjectionLayer.config({ inputDim: 32, numHeads: 2, dimPerHead: 4, quantization: q }));
  const [plain, coded] = [combined(null), combined(quantization())];
  const weights = randomTheta(plain);
  const x = tensor([2, 32]);
  const outputs = run(weights, () => plain.fprop(x));
  const found = run(inCodes(coded, weights), () => coded.fprop(x));
  found.forEach((part, i) => {
    const largest = Math.max(...outputs[i]!.dataSync().map(Math.abs));
    const errors = [...part.dataSync()].map((value, j) => Math.abs(value - outputs[i]!.dataSync()[j]!));
    expect(Math.max(...errors) / largest).toBeLessThan(1e-2);
  });
});

test('training rounds weights and keeps their gradient; after-training quantization leaves it alone', () => {
  const config = Linear.config({
    inputDims: 8,
    outputDims: 4,
    quantization: quantization({ mode: 'training' }),
  });
  const layer = build(config);
  const theta = randomTheta(layer);
  const x = tensor([3, 8]);
  const loss = (w: Tensor): Tensor => run({ w }, () => tf.sum(layer.fprop(x)) as Tensor);
  const gradient = tf.grad(loss)(theta.w!);
  // Of the sum of x w by w: the sums of x over rows, whatever w is.
  const sums = tf.sum(x, 0).dataSync();
  expectClose(
    gradient,
    [...sums].flatMap((value) => [value, value, value, value]),
  );
  const after = build(
    Linear.config({ ...{ inputDims: 8, outputDims: 4 }, quantization: Quantization.config() }),
  );
  expect(after.codeForms.size).toBe(0);
});

test('weights of 0 have scales of 0; those that are not finite have a place', () => {
  const form = (values: Values): CodeForm =>
    build(Linear.config({ inputDims: 64, outputDims: 2, quantization: quantization(values) })).codeForms.get(
      'w',
    )!;
  for (const values of [{}, { precision: 4, blockSize: 32 }] as const) {
    const { codes, scales } = codesOf(new Float32Array(128), form(values), true);
    expect(new Set(scales)).toEqual(new Set([0]));
    expect(new Set(codes)).toEqual(new Set(['precision' in values ? 0x88 : 0]));
  }
  const weights = sines(128);
  expect(notFinite(weights, form({}))).toBeNull();
  weights[65] = Number.NaN;
  expect(notFinite(weights, form({}))).toEqual([32, 1]);
});

test('clipping takes the scale of least error', () => {
  const form = build(
    Linear.config({
      inputDims: 32,
      outputDims: 1,
      quantization: quantization({ precision: 4, blockSize: 32 }),
    }),
  ).codeForms.get('w')!;
  const weights = sines(32).map((value, i) => (i === 0 ? 0.106 : value));
  const error = (clips: boolean): number => {
    const { codes, scales } = codesOf(weights, form, clips);
    const scale = new Float32Array(Uint32Array.of(scales[0]! << 16).buffer)[0]!;
    return weights.reduce((sum, value, i) => {
      const code = (i < 16 ? codes[i]! & 15 : codes[i - 16]! >> 4) - 8;
      return sum + (value - code * scale) ** 2;
    }, 0);
  };
  expect(error(true)).toBeLessThan(error(false));
});

test('patterns leave variables as they are; groups that do not fit are an error with its place', () => {
  const config = (values: Values, skip: string[] = []) => {
    const chosen = quantization(values);
    chosen.skip = skip;
    return Linear.config({ inputDims: 48, outputDims: 2, quantization: chosen });
  };
  expect(listVariables(build(config({ precision: 4 }, ['w']))).map(({ storage }) => storage)).toEqual([
    undefined,
  ]);
  expect(() => build(config({ precision: 4 }))).toThrow(
    "variable 'w' can't be quantized: 4 bits need a multiple of 32 weights in an output, which has 48. Choose another " +
      'blockSize, or list the variable in quantization.skip.',
  );
  expect(() => build(config({ blockSize: 64 }))).toThrow(
    "variable 'w' can't be quantized: blockSize 64 does not divide the 48 weights of an output.",
  );
  expect(() => config({}, ['('])).toThrow('expected a regular expression');
});

test('operands of products by codes are not rounded, also where the layer computes in bfloat16', () => {
  const layer = build(
    Linear.config({ inputDims: 3, outputDims: 1, fpropDtype: 'bfloat16', quantization: quantization() }),
  );
  const given = { w: tf.tensor([[1, 1, 1]], [1, 3], 'int32'), w_quantized_scale: tf.tensor([1]) };
  const x = tf.tensor([[1 + 2 ** -12, 0, 0]]) as Tensor;
  expect(run(given as Record<string, Tensor>, () => layer.fprop(x)).dataSync()[0]).toBe(1 + 2 ** -12);
});
