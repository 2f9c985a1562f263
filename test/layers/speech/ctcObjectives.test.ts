/** @file Connectionist temporal classification against sums over all paths. */
import '@tensorflow/tfjs-backend-cpu';
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { ctcLoss, ctcLossWithAlignments, Identity } from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats, given } from '../engineComparison.js';
import { ints, numbers, tensor } from '../helpers.js';

/** Paths of symbols over `time` frames. */
function* pathsOver(time: number, symbols: number): Generator<number[]> {
  if (time === 0) yield [];
  else
    for (const path of pathsOver(time - 1, symbols))
      for (let symbol = 0; symbol < symbols; symbol++) yield [...path, symbol];
}

/** The symbols that a path emits, and how many of them have begun at each frame. */
function collapsed(path: readonly number[], blank: number) {
  const emitted: number[] = [];
  const begun = path.map((symbol, t) => {
    if (symbol !== blank && symbol !== path[t - 1]) emitted.push(symbol);
    return emitted.length;
  });
  return { emitted, begun };
}

/** Loss, the most probable path's alignment and probabilities of labels over time, by definition. */
function byAllPaths(logits: readonly number[][], labels: readonly number[], blank = 0) {
  const probs = logits.map((frame) => {
    const exps = frame.map(Math.exp);
    const sum = exps.reduce((a, b) => a + b);
    return exps.map((x) => x / sum);
  });
  let [total, best, alignment] = [0, 0, [] as number[]];
  const states = logits.map(() => new Array(labels.length + 1).fill(0));
  for (const path of pathsOver(logits.length, logits[0]!.length)) {
    const { emitted, begun } = collapsed(path, blank);
    if (emitted.join() !== labels.join()) continue;
    const p = path.reduce((product, symbol, t) => product * probs[t]![symbol]!, 1);
    total += p;
    begun.forEach((label, t) => {
      states[t]![label] += p;
    });
    if (p > best) [best, alignment] = [p, begun];
  }
  return { loss: -Math.log(total), alignment, states: states.map((row) => row.map((p) => p / total)) };
}

const frames = (time: number, symbols: number, seed: number): number[][] =>
  Array.from({ length: time }, (_, t) => [...numbers(symbols, seed * 100 + t)].map((x) => 3 * x));

interface Row {
  readonly logits: number[][];
  readonly labels: number[];
}

/** Rows of one batch; padded frames and labels hold junk, and frames of `padding` stand in front. */
function batchOf(rows: readonly Row[], time: number, count: number, padding = 0) {
  const symbols = rows[0]!.logits[0]!.length;
  const junk = (size: number): number[][] => Array.from({ length: size }, () => new Array(symbols).fill(NaN));
  const placed = rows.map(({ logits }) => [
    ...junk(padding),
    ...logits,
    ...junk(time - padding - logits.length),
  ]);
  const isPadding = (logits: number[][], t: number) => (t < padding || t >= padding + logits.length ? 1 : 0);
  return {
    logits: tf.tensor3d(placed),
    logitPaddings: tf.tensor2d(
      rows.map(({ logits }) => Array.from({ length: time }, (_, t) => isPadding(logits, t))),
    ),
    labels: ints(
      rows.flatMap(({ labels }) => [...labels, ...new Array(count - labels.length).fill(-1)]),
      [rows.length, count],
    ),
    labelPaddings: tf.tensor2d(
      rows.map(({ labels }) => Array.from({ length: count }, (_, n) => (n < labels.length ? 0 : 1))),
    ),
  };
}

const rows: readonly Row[] = [
  { logits: frames(5, 3, 1), labels: [1, 2] },
  { logits: frames(4, 3, 2), labels: [2, 2] },
  { logits: frames(5, 3, 3), labels: [] },
  { logits: frames(3, 3, 4), labels: [2, 1, 2] },
  { logits: frames(5, 3, 5), labels: [1] },
];

describe('ctcLoss', () => {
  test('is ln 3 for zero logits of 2 frames and 3 symbols, and one label', () => {
    const loss = ctcLoss({ logits: tf.zeros([1, 2, 3]), labels: ints([1], [1, 1]) });
    expect(loss.dataSync()[0]).toBeCloseTo(Math.log(3), 6);
  });

  test.each([0, 2])('sums over all paths, with %i frames of padding in front', (padding) => {
    const losses = ctcLoss(batchOf(rows, 7, 3, padding)).dataSync();
    rows.forEach(({ logits, labels }, i) => {
      expect(losses[i], `row ${i}`).toBeCloseTo(byAllPaths(logits, labels).loss, 5);
    });
  });

  test('has a blank of any id', () => {
    const logits = frames(4, 3, 6);
    const loss = ctcLoss({ logits: tf.tensor3d([logits]), labels: ints([0, 1], [1, 2]) }, { blankId: 2 });
    expect(loss.dataSync()[0]).toBeCloseTo(byAllPaths(logits, [0, 1], 2).loss, 5);
  });

  test('keeps long sequences, far below what float32 holds', () => {
    const [time, count] = [45, 3];
    const labels = Array.from({ length: count }, (_, n) => 1 + (n % 2));
    const place = (t: number) => (t % 15 === 7 ? labels[Math.floor(t / 15)]! : 0);
    // One path has nearly all of the labels' probability, e^-100 for each frame; symbol 3 has the rest.
    const logitOf = (t: number, k: number) => (k === 3 ? 200 : k === place(t) ? 100 : 80);
    const logits = Array.from({ length: time }, (_, t) => [0, 1, 2, 3].map((k) => logitOf(t, k)));
    const input = tf.tensor3d([logits]);
    const lossOf = (x: Tensor): Tensor => ctcLoss({ logits: x, labels: ints(labels, [1, count]) });
    const loss = lossOf(input).dataSync()[0]!;
    expect(loss / time).toBeCloseTo(100, 4);
    const gradient = tf
      .grad((x: Tensor) => tf.sum(lossOf(x)))(input)
      .dataSync();
    // Softmax minus the probability of each symbol on the paths.
    for (const t of [0, 7, 30, 44]) {
      expect(gradient[4 * t + 3], `frame ${t}`).toBeCloseTo(1, 3);
      expect(gradient[4 * t + place(t)], `frame ${t}`).toBeCloseTo(-1, 3);
    }
  });

  test('has a finite gradient where no path is long enough', () => {
    const lossOf = (x: Tensor): Tensor => ctcLoss({ logits: x, labels: ints([1, 1], [1, 2]) });
    const input = tensor([1, 2, 3]);
    expect(lossOf(input).dataSync()[0]).toBeGreaterThan(9e4);
    expect(
      [
        ...tf
          .grad((x: Tensor) => tf.sum(lossOf(x)))(input)
          .dataSync(),
      ].every(Number.isFinite),
    ).toBe(true);
  });

  test('refuses tensors that do not fit', () => {
    const logits = tf.zeros([2, 4, 3]);
    const labels = ints([1, 2], [2, 1]);
    const message = (call: () => Tensor) => {
      try {
        return `none, ${call().shape}`;
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(message(() => ctcLoss({ logits: tf.zeros([4, 3]), labels }))).toBe(
      'ctcLoss: expected logits [B, T, K], got [4, 3].',
    );
    expect(message(() => ctcLoss({ logits, labels: ints([1], [1, 1]) }))).toBe(
      'ctcLoss: expected labels [2, N] for logits [2, 4, 3], got [1, 1].',
    );
    expect(message(() => ctcLoss({ logits, labels, logitPaddings: tf.zeros([2, 3]) }))).toBe(
      'ctcLoss: expected logitPaddings [2, 4], got [2, 3].',
    );
    expect(message(() => ctcLoss({ logits, labels, labelPaddings: tf.zeros([2, 4]) }))).toBe(
      'ctcLoss: expected labelPaddings [2, 1], got [2, 4].',
    );
    expect(message(() => ctcLoss({ logits, labels }, { blankId: 3 }))).toBe(
      'ctcLoss: expected a blankId from 0 to 2, got 3.',
    );
  });
});

describe('ctcLossWithAlignments', () => {
  test('has the most probable path and the probabilities of all paths', () => {
    const { perSequenceLoss, alignment, stateLogProbs } = ctcLossWithAlignments(batchOf(rows, 6, 3));
    expect(stateLogProbs.shape).toEqual([5, 6, 4]);
    const aligned = alignment.arraySync() as number[][];
    const probs = tf.exp(stateLogProbs).arraySync() as number[][][];
    rows.forEach(({ logits, labels }, i) => {
      const expected = byAllPaths(logits, labels);
      expect(perSequenceLoss.dataSync()[i], `row ${i}`).toBeCloseTo(expected.loss, 5);
      expect(aligned[i]!.slice(0, logits.length), `row ${i}`).toEqual(expected.alignment);
      expected.states.forEach((row, t) => {
        row.forEach((p, n) => {
          expect(probs[i]![t]![n], `row ${i}, frame ${t}, label ${n}`).toBeCloseTo(p, 5);
        });
      });
    });
  });
});

const inputs = {
  logits: floats([3, 5, 4], 3, 2),
  labels: given('int32', [1, 2, 2, 2, 3, 0], [3, 2]),
  isLast: given('int32', [0, 0, 0, 1, 0, 1], [3, 2]),
};
const argsOf = ({ logits, labels, isLast }: Readonly<Record<string, Tensor>>) => ({
  ...{ logits: logits!, labels: labels! },
  ...{ labelPaddings: tf.cast(isLast!, 'float32') as Tensor },
});
checkLayers('CTC', [
  layerCase({
    title: 'loss',
    config: Identity.config(),
    inputs,
    call: (_, tensors) => ctcLoss(argsOf(tensors)),
  }),
  layerCase({
    title: 'alignments',
    config: Identity.config(),
    inputs,
    probes: 0,
    call: (_, tensors) => {
      const { alignment, stateLogProbs } = ctcLossWithAlignments(argsOf(tensors));
      return tf.concat([tf.expandDims(tf.cast(alignment, 'float32'), -1), tf.exp(stateLogProbs)], -1);
    },
  }),
]);
