/** @file Caches of keys and values: every way of taking tokens gives what the whole sequence gives. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  DotProductAttention,
  decodeStateSpecs,
  FullCache,
  MemoryCache,
  positionsOf,
  type StepArgs,
  type Theta,
  type Visibility,
  WindowCache,
} from '../../../src/layers/index.js';
import { expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [B, T, D, W] = [2, 11, 8, 4];
type Values = Record<string, Tensor>;

const dims = { inputDim: D, hiddenDim: D, numHeads: 2 };

/** A bias by distance, to see that positions are true ones. */
class RelativeAttention extends DotProductAttention {
  declare readonly theta: Theta<'rel_bias'>;

  protected override setup(): void {
    super.setup();
    this.createVariable('rel_bias', { shape: [T, this.hp.numHeads] });
  }

  protected override dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    const { queries, keys } = positionsOf(seen, query.shape[1]!, key.shape[1]!);
    const distance = tf.abs(tf.sub(tf.expandDims(queries, 2), tf.expandDims(keys, 1)));
    const near = tf.minimum(distance, tf.scalar(T - 1, 'int32')) as Tensor;
    const bias = tf.transpose(tf.gather(this.theta.rel_bias, near), [0, 3, 1, 2]);
    return super.dotAtten(query, key, value, { ...seen, bias });
  }
}

const layers: [string, Config<DotProductAttention>][] = [
  ['full', DotProductAttention.config(dims)],
  ['full, rotary', DotProductAttention.config({ ...dims, useRotaryPositionEmb: true })],
  ['full, in a window', DotProductAttention.config({ ...dims, windowSize: W })],
  ['window', DotProductAttention.config({ ...dims, windowSize: W, cacheTpl: WindowCache.config() })],
  [
    'window, rotary',
    DotProductAttention.config({
      ...dims,
      windowSize: W,
      useRotaryPositionEmb: true,
      cacheTpl: WindowCache.config(),
    }),
  ],
  ['bias', RelativeAttention.config(dims)],
  ['bias, window', RelativeAttention.config({ ...dims, windowSize: W, cacheTpl: WindowCache.config() })],
  [
    'a window longer than the sequence',
    DotProductAttention.config({ ...dims, windowSize: 2 * T, cacheTpl: WindowCache.config() }),
  ],
];

/** A state that is full of numbers of another sequence. */
const usedState = (layer: DotProductAttention): Values => stateOf(decodeStateSpecs(layer, B, T), 7);

for (const [name, config] of layers) {
  const layer = build(config);
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  const step = (decodeState: Values, tokens: Tensor, args: StepArgs): Tensor =>
    run(theta, () => layer.extendStep(tokens, args), { decodeState, doEval: true });
  const part = (of: Tensor, begin: number, steps: number): Tensor =>
    tf.slice(of, [0, begin, 0], [B, steps, D]);

  test.each([[new Array<number>(T).fill(1)], [[1, 3, 1, 6]], [[7, 1, 1, 2]], [[T]]])(
    `${name}: tokens in parts of %j`,
    (parts) => {
      const state = usedState(layer);
      let begin = 0;
      for (const steps of parts) {
        const out = step(state, part(x, begin, steps), { timeStep: tf.scalar(begin, 'int32') });
        expectClose(out, part(whole, begin, steps).dataSync());
        begin += steps;
      }
    },
  );

  test(`${name}: rows at positions of their own, from prompts in blocks that are filled up`, () => {
    const lengths = [2, 7];
    const state = usedState(layer);
    const noise = tensor([B, T + 1, D], 99);
    for (const [begin, steps] of [
      [0, 5],
      [5, 5],
    ] as const) {
      const present = lengths.map((length) => Math.min(Math.max(0, length - begin), steps));
      const rows = present.map((count, row) =>
        tf.concat(
          [tf.slice(x, [row, begin, 0], [1, count, D]), tf.slice(noise, [row, 0, 0], [1, steps - count, D])],
          1,
        ),
      );
      step(state, tf.concat(rows, 0) as Tensor, {
        timeStep: tf.scalar(begin, 'int32'),
        length: ints(present, [B]),
      });
    }
    for (let i = 0; i < T - 7; i++) {
      const at = lengths.map((length) => length + i);
      const tokens = tf.concat(at.map((t, row) => tf.slice(x, [row, t, 0], [1, 1, D]))) as Tensor;
      const out = step(state, tokens, { timeStep: ints(at, [B]) });
      const expected = tf.concat(at.map((t, row) => tf.slice(whole, [row, t, 0], [1, 1, D])));
      expectClose(out, expected.dataSync());
    }
  });

  test(`${name}: several tokens of rows at positions of their own`, () => {
    const state = usedState(layer);
    const begins = [0, 3];
    for (let t = 0; t < 3; t++) step(state, part(x, t, 1), { timeStep: tf.scalar(t, 'int32') });
    const tokens = tf.concat(begins.map((t, row) => tf.slice(x, [row, t, 0], [1, 3, D]))) as Tensor;
    const out = step(state, tokens, { timeStep: ints(begins, [B]) });
    const expected = tf.concat(begins.map((t, row) => tf.slice(whole, [row, t, 0], [1, 3, D])));
    // The first row begins anew: a ring still has its tokens 1 and 2, which are of later positions than it sees.
    const rows = config.cacheTpl && layer.hp.cacheTpl instanceof WindowCache ? 1 : 0;
    expectClose(
      tf.slice(out, [rows, 0, 0], [-1, -1, -1]),
      tf.slice(expected, [rows, 0, 0], [-1, -1, -1]).dataSync(),
    );
  });
}

test('a window cache has the tokens of the window alone, however long the sequence is', () => {
  const cacheTpl = WindowCache.config();
  const layer = build(DotProductAttention.config({ ...dims, windowSize: W, cacheTpl }));
  const specs = decodeStateSpecs(layer, 3, 100_000);
  expect(Object.entries(specs).map(([path, { shape }]) => `${path} ${shape}`)).toEqual([
    'kv_cache/key_state 3,2,4,4',
    'kv_cache/value_state 3,2,4,4',
  ]);
  expect(() => build(DotProductAttention.config({ ...dims, cacheTpl }))).toThrow(
    'kv_cache (WindowCache): keeps the tokens of a window: set windowSize of the attention.',
  );
});

test('attention to a memory, whose keys and values are computed once', () => {
  const layer = build(DotProductAttention.config({ ...dims, cacheTpl: MemoryCache.config() }));
  const theta = randomTheta(layer);
  const [x, memory] = [tensor([B, T, D]), tensor([B, 5, D], 3)];
  const seen = { paddings: tf.tensor2d([0, 0, 0, 1, 1, 0, 0, 0, 0, 0], [B, 5]) };
  const whole = run(theta, () => layer.fprop(x, { seen, keyVec: memory }));
  const state: Values = {};
  run(theta, () => layer.begin(memory), { decodeState: state });
  expect(Object.values(state).map(({ shape }) => shape)).toEqual([
    [B, 2, 5, 4],
    [B, 2, 5, 4],
  ]);
  expect(
    Object.fromEntries(
      Object.entries(decodeStateSpecs(layer, B, T, 5)).map(([path, { shape }]) => [path, [...shape]]),
    ),
  ).toEqual(Object.fromEntries(Object.entries(state).map(([path, { shape }]) => [path, shape])));
  for (const [begin, steps] of [
    [0, 1],
    [1, T - 1],
  ] as const) {
    const tokens = tf.slice(x, [0, begin, 0], [B, steps, D]);
    const args = { timeStep: tf.scalar(begin, 'int32'), memorySeen: seen };
    const out = run(theta, () => layer.extendStep(tokens, args), { decodeState: state });
    expectClose(out, tf.slice(whole, [0, begin, 0], [B, steps, D]).dataSync());
  }
  expect(() => decodeStateSpecs(layer, B, T)).toThrow(
    'kv_cache (MemoryCache): keeps keys and values of a memory: give its length, decodeStateSpecs(layer, rows, seqLen, memoryLen).',
  );
  const self = build(DotProductAttention.config({ ...dims, cacheTpl: FullCache.config() }));
  expect(() => run(randomTheta(self), () => self.begin(memory), { decodeState: {} })).toThrow(
    'model (DotProductAttention): attends to its own tokens in a decode: cacheTpl is FullCache, not MemoryCache.',
  );
});
