/** @file Attention to a prompt that rows share and to their own tokens: two parts, joined to the attention of whole rows. */
import { expect, test } from 'vitest';
import { ops, type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  Alibi,
  DotProductAttention,
  DotProductAttentionXL,
  decodeStateSpecs,
  GroupedQueryAttention,
  KeyValuePrefix,
} from '../../../src/layers/index.js';
import { expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [SAMPLES, T, D] = [3, 8, 4];
/** Tokens of the prompts; one has none. */
const LENGTHS = [0, 5];
const ROWS = SAMPLES * LENGTHS.length;
const dims = { inputDim: D, hiddenDim: D, numHeads: 2 };

const cases: [string, Config<DotProductAttention>][] = [
  ['plain', DotProductAttention.config(dims)],
  [
    'grouped queries, rotated, in a window, with sinks',
    GroupedQueryAttention.config({
      ...dims,
      numKvHeads: 1,
      useRotaryPositionEmb: true,
      windowSize: 3,
      useSinks: true,
    }),
  ],
  [
    'biases below a cap, trained keys, an extra logit',
    DotProductAttention.config({
      ...{ ...dims, relativeBiasTpl: Alibi.config(), attenLogitCap: 2, attentionExtraLogit: 0.5 },
      prefixTpl: KeyValuePrefix.config({ prefixLength: 2 }),
    }),
  ],
];

/** The prompts' state, the rows' inputs [ROWS, T, D], alike within prompts, and a step of these. */
function begun(layer: DotProductAttention, theta: Record<string, Tensor>) {
  const own = tensor([ROWS, T, D]);
  const rows = Array.from({ length: ROWS }, (_, row) => {
    const prompt = Math.floor(row / SAMPLES);
    const length = LENGTHS[prompt]!;
    const first = tf.slice(own, [prompt * SAMPLES, 0, 0], [1, length, D]);
    return tf.concat([first, tf.slice(own, [row, length, 0], [1, T - length, D])], 1);
  });
  const x = tf.concat(rows, 0) as Tensor;
  const promptState = stateOf(decodeStateSpecs(layer, LENGTHS.length, 6));
  const heads = tf.concat(
    LENGTHS.map((_, prompt) => tf.slice(x, [prompt * SAMPLES, 0, 0], [1, 6, D])),
  ) as Tensor;
  const promptLength = ints(LENGTHS, [LENGTHS.length]);
  run(theta, () => layer.extendStep(heads, { timeStep: tf.scalar(0, 'int32'), length: promptLength }), {
    decodeState: promptState,
    doEval: true,
  });
  const decodeState = stateOf(decodeStateSpecs(layer, ROWS, 3));
  const positions = Array.from({ length: ROWS }, (_, row) => LENGTHS[Math.floor(row / SAMPLES)]!);
  const at = (of: Tensor, step: number, steps: number): Tensor =>
    tf.concat(positions.map((begin, row) => tf.slice(of, [row, begin + step, 0], [1, steps, D])));
  const extend = (step: number, steps: number): Tensor =>
    run(
      theta,
      () =>
        layer.extendStep(at(x, step, steps), {
          timeStep: ints(
            positions.map((begin) => begin + step),
            [ROWS],
          ),
          promptLength,
        }),
      { decodeState, promptState, doEval: true },
    );
  return { x, at, extend };
}

test.each(cases)('%s: blocks and single tokens behind prompts are those of whole rows', (_, config) => {
  const layer = build(config);
  const theta = randomTheta(layer);
  const { x, at, extend } = begun(layer, theta);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }), { doEval: true });
  expectClose(extend(0, 2), at(whole, 0, 2).dataSync());
  expectClose(extend(2, 1), at(whole, 2, 1).dataSync());
});

test('attention by distances in one sequence has no parts', () => {
  const layer = build(DotProductAttentionXL.config({ ...dims, relPosEmbDim: 4 }));
  const { extend } = begun(layer, randomTheta(layer));
  expect(() => extend(0, 1)).toThrow(
    'model (DotProductAttentionXL): attends to one sequence: expected a decoder without lazyPrefixBroadcast, whose rows ' +
      'share prompts.',
  );
});

test('parts of an attention join to the whole, and drop nothing', () => {
  const [q, k, v] = [tensor([2, 3, 2, 4]), tensor([2, 6, 2, 4], 1), tensor([2, 6, 2, 4], 2)] as const;
  const of = (x: Tensor, begin: number, size: number): Tensor =>
    tf.slice(x, [0, begin, 0, 0], [-1, size, -1, -1]);
  const sinks = tf.tensor1d([0.5, 2]) as Tensor;
  const hidden = { visible: ints([0, 2], [2]) };
  const whole = ops.attention(q, k, v, {
    sinks,
    mask: tf.tensor([[[[-Infinity, -Infinity, 0, 0, 0, 0]]], [[[0, 0, 0, 0, 0, 0]]]], [2, 1, 1, 6]),
  });
  const parts = [
    ops.attentionPart(q, of(k, 0, 2), of(v, 0, 2), hidden),
    ops.attentionPart(q, of(k, 2, 4), of(v, 2, 4), { sinks }),
  ];
  expectClose(ops.joinParts(parts), whole.dataSync());
  expect(() => ops.attentionPart(q, k, v, { dropout: (weights) => weights })).toThrow(
    'attentionPart: expected no dropout, got options.dropout.',
  );
});
