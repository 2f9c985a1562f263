/** @file Cases of the compiler's own operations; eagerly their decompositions run, and tfjs differentiates those. */
import { type HostTensor, ops, type Tensor, tf } from '../../../src/compiler/index.js';
import { callComposite } from '../../../src/compiler/ops/composite.js';
import { floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

/** Random numbers have the same bits everywhere. */
const same = { ...constant, tolerance: { relative: 0, absolute: 0 } };

const key = host([2], [12345, -678], 'int32');

/** x with scale and bias, x with scale, and x alone, for several ranks. */
const norms = (f: (x: any, scale: any, bias: any) => any, hasBias: boolean): Case[] =>
  [[6], [3, 8], [2, 3, 5], [1, 1]].flatMap((shape) => {
    const [x, scale, bias] = [
      floats(shape),
      floats([shape.at(-1)!], 0.5, 2, 5),
      floats([shape.at(-1)!], -1, 1, 6),
    ];
    return [
      ...over((a) => f(a, null, null), [[x]]),
      ...over((a, s) => f(a, s, null), [[x, scale]]),
      ...(hasBias
        ? [
            ...over((a, s, b) => f(a, s, b), [[x, scale, bias]]),
            ...over((a, b) => f(a, null, b), [[x, bias]]),
          ]
        : []),
    ];
  });

const qkv = (b: number, t: number, s: number, n: number, h: number, dv = h): HostTensor[] => [
  floats([b, t, n, h], -1, 1, 11),
  floats([b, s, n, h], -1, 1, 12),
  floats([b, s, n, dv], -1, 1, 13),
];

/** Hides the last key of every row. */
const mask = (t: number, s: number): HostTensor =>
  host(
    [1, 1, t, s],
    Array.from({ length: t * s }, (_, i) => (i % s === s - 1 ? -1e9 : 0)),
  );

/** Hides the first key of every row by one value, and every key of the second row by another. */
const hiding = (t: number, s: number, first: number, row: number): HostTensor =>
  host(
    [1, 1, t, s],
    Array.from({ length: t * s }, (_, i) => (Math.floor(i / s) === 1 ? row : i % s === 0 ? first : 0)),
  );

const attention =
  (options: object): CaseFunction =>
  (q, k, v, m) =>
    ops.attention(q, k, v, m === undefined ? options : { ...options, mask: m });

const attentionCases: Case[] = [
  ...over(attention({}), [qkv(2, 3, 3, 2, 4), qkv(1, 1, 5, 1, 2), qkv(2, 3, 4, 2, 4, 3)]),
  ...over(attention({ causal: true }), [qkv(2, 4, 4, 2, 3), qkv(1, 2, 5, 2, 3), qkv(1, 1, 1, 1, 1)]),
  ...over(attention({ scale: 0.7 }), [qkv(1, 3, 3, 2, 2)]),
  ...over(attention({ causal: true }), [[...qkv(2, 4, 4, 2, 3), mask(4, 4)]], { differentiable: 3 }),
  ...over(
    attention({}),
    [
      [...qkv(2, 2, 4, 2, 3), mask(2, 4)],
      [...qkv(2, 2, 4, 2, 3), floats([2, 2, 2, 4])],
    ],
    { differentiable: 3 },
  ),
  // A causal query whose only key is hidden by a number sees it still, by -Infinity none; few queries and many.
  ...[true, false].flatMap((causal) =>
    over(
      attention({ causal }),
      [
        [...qkv(1, 3, 3, 2, 2), hiding(3, 3, -1e9, 0)],
        [...qkv(1, 3, 3, 2, 2), hiding(3, 3, -Infinity, -Infinity)],
        [...qkv(1, 20, 20, 1, 2), hiding(20, 20, -1e9, -Infinity)],
        [...qkv(1, 20, 20, 1, 2), hiding(20, 20, -Infinity, 0)],
      ],
      { differentiable: 3 },
    ),
  ),
];

/** Sinks among the logits and far above them, with all else that hides keys; queries that see none; few and many. */
const sinkCases: Case[] = [
  ...over(
    (q, k, v, sinks) => ops.attention(q, k, v, { causal: true, logitCap: 2, sinks }),
    [
      [...qkv(2, 3, 5, 2, 3), host([2], [0.3, -2])],
      [...qkv(1, 20, 20, 2, 4, 3), host([2], [1, 300])],
    ],
  ),
  ...over(
    (q, k, v, sinks, mask) => ops.attention(q, k, v, { window: { after: 1 }, sinks, mask }),
    [[...qkv(1, 20, 6, 2, 3), host([2], [0.5, -1]), floats([1, 2, 20, 6])]],
  ),
  ...over(
    (q, k, v, sinks, mask) => ops.attention(q, k, v, { sinks, mask }),
    [[...qkv(1, 3, 3, 1, 2), host([1], [0.5]), hiding(3, 3, -1e9, -Infinity)]],
    { differentiable: 4 },
  ),
];

const ids = (rows: number[][]): HostTensor => host([rows.length, rows[0]!.length], rows.flat(), 'int32');

const segmented =
  (options: object): CaseFunction =>
  (q, k, v, queries, keys) =>
    ops.attention(q, k, v, { ...options, segments: { queries, keys } });

/** Windows on either side, few queries and many; segments in order and not, also of queries that see no key. */
const windowCases: Case[] = [
  ...[{ before: 2 }, { before: 0, after: 1 }, { after: 3 }, { before: 40, after: 0 }].flatMap((window) => [
    ...over(attention({ window }), [qkv(1, 3, 5, 2, 3), qkv(2, 20, 20, 1, 4), qkv(1, 6, 3, 1, 2)]),
    ...over(attention({ window, causal: true }), [qkv(1, 20, 70, 1, 2)]),
  ]),
  ...over(
    segmented({}),
    [
      [
        ...qkv(2, 2, 4, 1, 3),
        ids([
          [1, 2],
          [0, 5],
        ]),
        ids([
          [1, 1, 2, 0],
          [0, 5, 5, 5],
        ]),
      ],
      [...qkv(2, 3, 3, 2, 2), ids([[4, 0, 1]]), ids([[1, 1, -1]])],
    ],
    { differentiable: 3 },
  ),
  ...over(
    segmented({ causal: true, window: { before: 5 }, logitCap: 2 }),
    [
      [
        ...qkv(1, 40, 40, 2, 3),
        ids([Array.from({ length: 40 }, (_, i) => Math.floor(i / 15))]),
        ids([Array.from({ length: 40 }, (_, i) => (i === 3 ? -1 : Math.floor(i / 15)))]),
      ],
    ],
    { differentiable: 3 },
  ),
  ...over(attention({ causal: true, logitCap: 1.5 }), [qkv(2, 5, 5, 2, 3), qkv(1, 2, 20, 1, 4)]),
  ...over(attention({ logitCap: 2 }), [[...qkv(1, 4, 4, 2, 2), hiding(4, 4, -1e9, -Infinity)]], {
    differentiable: 3,
  }),
];

/** Trained masks of all shapes that broadcast, few queries and many, within windows too. */
const maskCases: Case[] = [
  [20],
  [1, 2, 20, 20],
  [2, 1, 1, 20],
  [20, 20],
  [2, 1, 20, 20],
  [2, 2, 20, 20],
].flatMap((shape) =>
  [{}, { causal: true, logitCap: 2, window: { before: 7 } }].flatMap((options) =>
    over(attention(options), [[...qkv(2, 20, 20, 2, 3), floats(shape, -1, 1, 14)]]),
  ),
);

/** Dropped weights, few queries and many, some of them hidden. */
const dropped =
  (options: object, keepProb: number): CaseFunction =>
  (q, k, v, key) =>
    ops.attention(q, k, v, { ...options, dropout: { key, keepProb } });
const dropKey = host([2], [5, -9], 'int32');
const dropCases: Case[] = [
  ...over(dropped({}, 0.6), [[...qkv(2, 3, 4, 2, 3), dropKey]], { differentiable: 3 }),
  ...over(dropped({ causal: true, logitCap: 2 }, 0.8), [[...qkv(1, 20, 21, 2, 3), dropKey]], {
    differentiable: 3,
  }),
];

const scalar = (value: number): HostTensor => host([], [value], 'int32');
const counts = (...values: number[]): HostTensor => host([values.length], values, 'int32');

/** Over the first keys of a cache alone: one query, a few, many; with a cap and a mask too. */
const visibleCases: Case[] = [
  { causal: false, shape: [2, 1, 5, 2, 4], visible: [1, 3, 5] },
  { causal: true, shape: [1, 3, 9, 2, 4], visible: [3, 5, 9] },
  { causal: true, shape: [2, 7, 20, 1, 8], visible: [7, 13, 20] },
  { causal: true, shape: [1, 40, 70, 2, 4], visible: [40, 61] },
].flatMap(({ causal, shape, visible }) => {
  const [b, t, s, n, h] = shape as [number, number, number, number, number];
  return visible.flatMap((count) => [
    ...over(
      (q, k, v, m) => ops.attention(q, k, v, { causal, visible: m }),
      [[...qkv(b, t, s, n, h), scalar(count)]],
      constant,
    ),
    ...over(
      (q, k, v, m, w) => ops.attention(q, k, v, { causal, logitCap: 2, mask: m, visible: w }),
      [[...qkv(b, t, s, n, h), floats([b, n, t, s]), scalar(count)]],
      constant,
    ),
    ...over(
      (q, k, v, own, ids, w) =>
        ops.attention(q, k, v, {
          causal,
          window: { before: 4 },
          segments: { queries: own, keys: ids },
          visible: w,
        }),
      [[...qkv(b, t, s, n, h), ints([b, t], 0, 2), ints([1, s], 0, 2, 3), scalar(count)]],
      constant,
    ),
  ]);
});

/** Prefixes and numbers of valid keys of each batch item, few queries and many, within windows and segments too. */
const countCases: Case[] = [
  ...over(
    (q, k, v, prefix) => ops.attention(q, k, v, { causal: true, prefix }),
    [
      [...qkv(2, 3, 5, 2, 3), counts(5, 1)],
      [...qkv(2, 20, 20, 1, 4), counts(17, 0)],
      [...qkv(1, 20, 24, 1, 2), scalar(30)],
    ],
    { differentiable: 3 },
  ),
  ...over(
    (q, k, v, prefix, visible, queries, keys) =>
      ops.attention(q, k, v, {
        causal: true,
        window: { before: 9, after: 4 },
        logitCap: 2,
        segments: { queries, keys },
        prefix,
        visible,
      }),
    [
      [...qkv(2, 3, 8, 1, 3), counts(8, 4), counts(5, 8), ints([1, 3], 0, 2), ints([2, 8], 0, 2, 3)],
      [...qkv(2, 20, 40, 1, 3), counts(25, 3), counts(33, 19), ints([2, 20], 0, 2), ints([2, 40], 0, 2, 3)],
    ],
    { differentiable: 3 },
  ),
];

const updateSliceCases: Case[] = [
  { shape: [2, 5, 3, 4], count: 1, axis: 1, index: [0, 4, 9, -2] },
  { shape: [6, 4], count: 3, axis: 0, index: [1, 3, 4] },
  { shape: [3, 7], count: 2, axis: 1, index: [0, 5] },
  // An index for each item of the first axis.
  { shape: [3, 2, 5, 2], count: 1, axis: 2, index: [[4, 0, 9]] },
  { shape: [3, 5, 2], count: 2, axis: 1, index: [[3, 0, -2]] },
  { shape: [2, 4], count: 3, axis: 1, index: [[0, 1]] },
].flatMap(({ shape, count, axis, index }) => {
  const part = shape.map((dim, i) => (i === axis ? count : dim));
  return index.flatMap((given) => {
    const at = typeof given === 'number' ? scalar(given) : host([given.length], given, 'int32');
    return [
      ...over((x, rows, i) => ops.updateSlice(x, rows, i, axis), [[floats(shape), floats(part, 3, 4), at]], {
        differentiable: 2,
      }),
      ...over(
        (x, rows, i) => ops.updateSlice(x, rows, i, axis),
        [[ints(shape, 0, 9), ints(part, 10, 19), at]],
        constant,
      ),
    ];
  });
});

/** A row that comes again, in columns of two threads; a table of one row. */
const updateRowsCases: Case[] = [
  { shape: [7, 20], at: [2, 6, 2, 2] },
  { shape: [1, 1], at: [0, 0] },
].flatMap(({ shape, at }) => {
  const part = [at.length, shape[1]!];
  const indices = host([at.length], at, 'int32');
  return [
    ...over((x, rows, i) => ops.updateRows(x, rows, i), [[floats(shape), floats(part, 3, 4), indices]], {
      differentiable: 2,
    }),
    ...over(
      (x, rows, i) => ops.updateRows(x, rows, i),
      [[ints(shape, 0, 9), ints(part, 10, 19), indices]],
      constant,
    ),
  ];
});

/** Groups of several rows, none, and one; rows behind them; sizes that are too large or negative; one group of one row. */
const groupCases: Case[] = [
  { shape: [7, 5, 3], sizes: [3, 0, 1, 2] },
  { shape: [4, 1, 17], sizes: [2, -1, 9] },
  { shape: [1, 3, 2], sizes: [1] },
  { shape: [40, 10, 24], sizes: [0, 33, 5] },
].flatMap(({ shape: [rows, k, n], sizes }) =>
  over(
    (x, w, counts) => ops.groupedMatMul(x, w, counts),
    [
      [
        floats([rows!, k!], -1, 1, 3),
        floats([sizes.length, k!, n!], -1, 1, 4),
        host([sizes.length], sizes, 'int32'),
      ],
    ],
    { differentiable: 2 },
  ),
);

/** Codes of 8 bits with a scale for each channel and for groups; of 4 bits with groups of one block and of two. */
const codeCases: { readonly codes: HostTensor; readonly scales: HostTensor; readonly bits: 8 | 4 }[] = [
  { codes: ints([3, 5], -128, 128), scales: floats([3, 1], 0, 1, 4), bits: 8 },
  { codes: ints([2, 64], -128, 128), scales: floats([2, 2], 0, 1, 4), bits: 8 },
  { codes: ints([3, 32], 0, 256), scales: floats([3, 2], 0, 1, 4), bits: 4 },
  { codes: ints([2, 64], 0, 256), scales: floats([2, 2], 0, 1, 4), bits: 4 },
];

const dequantized: Case[] = codeCases.flatMap(({ codes, scales, bits }) =>
  over((c, s) => ops.dequantize(c, s, bits), [[codes, scales]], constant),
);

/** Rows by some of the channels; then rounded ones, whose gradient is not that of what is computed. */
const quantizedProducts: Case[] = [{}, { rowBits: 8 }].flatMap((rounding) =>
  codeCases.flatMap(({ codes, scales, bits }) =>
    over(
      (x, c, s) =>
        callComposite('QuantizedMatMul', [x, c, s], { bits, first: 1, channels: 1, ...rounding }, 1),
      [[floats([5, codes.shape[1]! * (8 / bits)], -1, 1, 3), codes, scales]],
      { differentiable: 'rowBits' in rounding ? 0 : 1 },
    ),
  ),
);

/** One group and several; groups that are all 0, too small, and not finite. */
const roundedRows: Case[] = [
  ...over((x) => ops.roundRows(x, 8, 1), [[floats([7])], [floats([2, 3, 10], -4, 1)]], constant),
  ...over(
    (x) => ops.roundRows(x, 8, 4),
    [[floats([3, 8])], [host([1, 8], [0, 0, 1e-32, -1e-31, Infinity, 1, Number.NaN, -1])]],
    constant,
  ),
];

const crossEntropy: Case[] = over(
  (logits, labels) => ops.softmaxCrossEntropy(logits, labels),
  [
    [floats([4, 7], -6, 6), ints([4], 0, 7)],
    [floats([2, 3, 5], -6, 6), ints([2, 3], 0, 5)],
    [floats([1, 2]), ints([1], 0, 2)],
  ],
  { differentiable: 1 },
);

/** tfjs's erf is an approximation with errors up to 1.5e-7, relative to 1. */
const gelu: Case[] = [true, false].flatMap((approximate) =>
  over(
    (x) => ops.gelu(x, { approximate }),
    [[floats([7], -4, 4)], [floats([2, 3, 5], -8, 8)], [floats([])]],
    {
      tolerance: { absolute: 4e-6 },
    },
  ),
);

const lines = [
  { slope: -2, at0: 1 },
  { slope: 0.5, at0: 0.25 },
  { slope: 3, at0: -4 },
];
/** Some of them beyond the lines' joints. */
const alongLines = [[floats([7], -4, 4)], [floats([2, 3, 5], -8, 8)], [floats([])]];

const layerNorm = norms((x, scale, bias) => ops.layerNorm(x, scale, bias, { epsilon: 1e-3 }), true);
const rmsNorm = norms((x, scale) => ops.rmsNorm(x, scale, { epsilon: 1e-3 }), false);

/** Attention to heads that queries share, and to codes with factors. */
const heldCases: Case[] = [
  ...over(
    (q, k, v) => callComposite('HeldAttention', [q, k, v], { scale: 0.5, causal: true, logitCap: 0 }, 0),
    [
      qkv(2, 2, 5, 3, 4),
      [floats([2, 2, 6, 4], -1, 1, 11), floats([2, 5, 2, 4], -1, 1, 12), floats([2, 5, 2, 3], -1, 1, 13)],
    ],
    constant,
  ),
  ...over(
    (q, k, v, ks, vs) =>
      callComposite(
        'HeldAttention',
        [q, k, v, ks, vs],
        { scale: 0.5, causal: false, logitCap: 0, coded: true },
        0,
      ),
    [
      [
        floats([2, 1, 4, 4], -1, 1, 11),
        ...[ints([2, 5, 2, 4], -127, 127, 12), ints([2, 5, 2, 3], -127, 127, 13)],
        ...[floats([2, 5, 2, 1], 0.001, 0.01, 14), floats([2, 5, 2, 1], 0.001, 0.01, 15)],
      ],
    ],
    constant,
  ),
];

export const compositeCases: CaseTable = {
  HeldAttention: heldCases,
  Attention: [...sinkCases, ...attentionCases, ...windowCases, ...visibleCases, ...countCases],
  AttentionGrad: [...sinkCases, ...attentionCases, ...windowCases, ...dropCases, ...countCases],
  AttentionMaskGrad: maskCases,
  AttentionSinkGrad: sinkCases,
  PowerOfTwo: over(
    (x) => ops.powerOfTwo(x),
    [
      [floats([40], -3, 3)],
      [floats([2, 3, 5], 1e-3, 2e3)],
      [floats([])],
      [host([4], [0, -0, Infinity, NaN])],
    ],
    constant,
  ),
  MaxAffine: over((x) => ops.maxAffine(x, lines), alongLines),
  MinAffine: over((x) => ops.minAffine(x, lines), alongLines),
  NearestInteger: over(
    (x) => ops.nearestInteger(x, [-3, 4]),
    [[floats([7], -6, 6)], [host([10], [0.5, 1.5, 2.5, -0.5, -2.5, 4.5, -9, Infinity, -Infinity, NaN])]],
    constant,
  ),
  Gelu: gelu,
  GeluGrad: gelu,
  Dequantize: dequantized,
  GroupedMatMul: groupCases,
  GroupedMatMulGrad: groupCases,
  QuantizedMatMul: quantizedProducts,
  RoundRows: roundedRows,
  LayerNorm: layerNorm,
  RmsNorm: rmsNorm,
  SoftmaxCrossEntropy: crossEntropy,
  SoftmaxCrossEntropyGrad: crossEntropy,
  UpdateRows: updateRowsCases,
  UpdateSlice: updateSliceCases,
  // In the gradient of a checkpointed function.
  Barrier: over(
    (x, w) => ops.checkpoint((a: Tensor, b: Tensor) => tf.tanh(tf.mul(tf.sin(a), tf.exp(b))))(x, w),
    [
      [floats([3, 4]), floats([4], -1, 1, 7)],
      [floats([]), floats([], -1, 1, 7)],
    ],
  ),
  RandomUniform: [
    ...over((k) => ops.randomUniform(k, [3, 7]), [[key]], constant),
    ...over((x, k) => ops.dropout(x, k, 0.75), [[floats([5, 4]), key]], { differentiable: 1 }),
  ],
  RandomNormal: over((k) => ops.randomNormal(k, [3, 7]), [[key]], same),
  TruncatedNormal: over((k) => ops.truncatedNormal(k, [3, 7]), [[key]], same),
  Gumbel: over((k) => ops.gumbel(k, [3, 7]), [[key]], same),
  RandomInt: over((k) => ops.randomInt(k, [3, 7], -4, 5), [[key]], same),
  MatMulAdd: [
    {
      transposeA: false,
      transposeB: false,
      alpha: 1,
      shapes: [
        [3, 4],
        [4, 5],
      ],
    },
    {
      transposeA: false,
      transposeB: true,
      alpha: -0.5,
      shapes: [
        [3, 4],
        [5, 4],
      ],
    },
    {
      transposeA: true,
      transposeB: true,
      alpha: 2,
      shapes: [
        [4, 3],
        [5, 4],
      ],
    },
  ].flatMap(({ shapes, ...attrs }) =>
    over(
      (a, b, c) => callComposite('MatMulAdd', [a, b, c], attrs),
      [[floats(shapes[0]!), floats(shapes[1]!, -2, 2, 3), floats([3, 5], -2, 2, 4)]],
      constant,
    ),
  ),
  FoldIn: over((k) => [ops.foldIn(k, 7), ops.foldIn(ops.foldIn(k, -1), 2 ** 31 + 5)], [[key]], constant),
};
