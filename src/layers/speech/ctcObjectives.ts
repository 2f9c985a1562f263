/** @file Connectionist temporal classification: loss, probabilities of labels over time, and alignments (praxis/layers/ctc_objectives.py). */
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { selected } from '../core/masks.js';

/** Logits of frames, and the labels to emit. */
export interface CtcInputs {
  /** [B, T, K]: of K symbols, the blank among them. */
  readonly logits: Tensor;
  /** [B, T], 1 for frames that are padding, at any place; none where absent. */
  readonly logitPaddings?: Tensor | undefined;
  /** int32 [B, N]. */
  readonly labels: Tensor;
  /** [B, N], 1 for padding, which stands behind all labels of a row; none where absent. */
  readonly labelPaddings?: Tensor | undefined;
}

/** Options of the loss. */
export interface CtcOptions {
  /** The symbol of frames that emit nothing; 0 by default. */
  readonly blankId?: number;
  /** Finite stand-in for log 0; -1e5 by default. */
  readonly logEpsilon?: number;
}

/** Losses, and where labels stand in time. Labels count from 1; 0 is the time before the first one. */
export interface CtcAlignments {
  /** [B]. */
  readonly perSequenceLoss: Tensor;
  /** int32 [B, T]: the last label begun by each frame, on the most probable path. */
  readonly alignment: Tensor;
  /** [B, T, N + 1]: logarithm of the probability, given the labels, that a label is the last one begun. */
  readonly stateLogProbs: Tensor;
}

/**
 * States of a path: 2 N + 1 of them, each label between two blanks. A frame stays, goes on by one state, or by two from a
 * label to a different one.
 */
interface Lattice {
  /** [T, B, S]: logarithms of the probabilities that states emit the frames. */
  readonly emissions: Tensor;
  /** bool [T, B, 1]: frames that are no padding. */
  readonly frames: Tensor;
  /** [B, S]: 0 where a path may come from two states before, else log 0. */
  readonly skips: Tensor;
  /** [B, S]: 0 for the last label and the blank behind it, else log 0. */
  readonly ends: Tensor;
  /** [B, S]: 0 for the first state, else log 0: before the first frame. */
  readonly starts: Tensor;
  readonly logEpsilon: number;
}

const shape = (x: Tensor): string => `[${x.shape.join(', ')}]`;

/** @throws Error for tensors that do not fit each other. */
function checkInputs({ logits, logitPaddings, labels, labelPaddings }: CtcInputs): void {
  if (logits.rank !== 3) throw new Error(`ctcLoss: expected logits [B, T, K], got ${shape(logits)}.`);
  const [batch, time] = logits.shape as [number, number];
  if (labels.rank !== 2 || labels.shape[0] !== batch)
    throw new Error(
      `ctcLoss: expected labels [${batch}, N] for logits ${shape(logits)}, got ${shape(labels)}.`,
    );
  const check = (name: string, x: Tensor | undefined, expected: readonly number[]): void => {
    if (x && x.shape.join() !== expected.join())
      throw new Error(`ctcLoss: expected ${name} [${expected.join(', ')}], got ${shape(x)}.`);
  };
  check('logitPaddings', logitPaddings, [batch, time]);
  check('labelPaddings', labelPaddings, labels.shape);
}

function latticeOf(inputs: CtcInputs, { blankId = 0, logEpsilon = -1e5 }: CtcOptions): Lattice {
  checkInputs(inputs);
  const { logits, labels } = inputs;
  const [batch, time, symbols] = logits.shape as [number, number, number];
  if (!(Number.isInteger(blankId) && blankId >= 0 && blankId < symbols))
    throw new Error(`ctcLoss: expected a blankId from 0 to ${symbols - 1}, got ${blankId}.`);
  const count = labels.shape[1]!;
  const states = 2 * count + 1;
  const isFrame = tf.less(inputs.logitPaddings ?? tf.zeros([batch, time]), 0.5) as Tensor;
  const isLabel = tf.less(inputs.labelPaddings ?? tf.zeros([batch, count]), 0.5);
  const blank = tf.scalar(blankId, 'int32');
  // The gather checks labels: one that is out of range would read another row's symbols.
  const symbolIds = tf.range(0, symbols, 1, 'int32') as Tensor;
  const own = tf.gather(symbolIds, tf.where(isLabel, labels, blank) as tf.Tensor1D) as Tensor;
  const blanks = (size: number): Tensor => tf.fill([batch, size], blankId, 'int32');
  const pairs = tf.reshape(tf.stack([blanks(count), own], 2), [batch, 2 * count]);
  const ids = tf.concat([pairs, blanks(1)], 1) as Tensor;

  const logProbs = tf.logSoftmax(selected(logits, tf.expandDims(isFrame, -1)));
  const table = tf.reshape(tf.transpose(logProbs, [0, 2, 1]), [batch * symbols, time]);
  const firstRows = tf.mul(tf.range(0, batch, 1, 'int32'), tf.scalar(symbols, 'int32'));
  const rows = tf.add(ids, tf.reshape(firstRows, [batch, 1])) as Tensor;

  const logOf = (isAllowed: Tensor): Tensor =>
    tf.where(isAllowed, tf.scalar(0), tf.scalar(logEpsilon)) as Tensor;
  const earlier = tf.slice(tf.concat([blanks(2), ids], 1), [0, 0], [batch, states]);
  const last = tf.mul(tf.sum(tf.cast(isLabel, 'int32'), 1, true), tf.scalar(2, 'int32'));
  const places = tf.add(tf.zeros([batch, 1], 'int32'), tf.range(0, states, 1, 'int32'));
  return {
    emissions: tf.transpose(ops.embeddingLookup(table, rows), [2, 0, 1]),
    frames: tf.expandDims(tf.transpose(isFrame, [1, 0]), -1),
    skips: logOf(tf.logicalAnd(tf.notEqual(ids, blank), tf.notEqual(ids, earlier)) as Tensor),
    ends: logOf(
      tf.logicalOr(tf.equal(places, last), tf.equal(places, tf.sub(last, tf.scalar(1, 'int32')))) as Tensor,
    ),
    starts: logOf(tf.equal(places, tf.scalar(0, 'int32')) as Tensor),
    logEpsilon,
  };
}

/** States [B, S], of which each is the one `by` places before it, or after it where `by` is negative. */
function shifted(x: Tensor, by: number, fill: number): Tensor {
  const [batch, states] = x.shape as [number, number];
  const size = Math.min(Math.abs(by), states);
  const filled = tf.fill([batch, size], fill);
  const kept = tf.slice(x, [0, by > 0 ? 0 : size], [batch, states - size]);
  return tf.concat(by > 0 ? [filled, kept] : [kept, filled], 1);
}

/** Paths into each state [B, S]: from itself, from the state before, and from two before, [3, B, S]. */
const arrivals = (paths: Tensor, { skips, logEpsilon }: Lattice): Tensor =>
  tf.stack([paths, shifted(paths, 1, logEpsilon), tf.add(shifted(paths, 2, logEpsilon), skips)]);

/** One frame in a scan: emissions [B, S], and whether it is no padding, bool [B, 1]. */
interface Frame {
  readonly emitted: Tensor;
  readonly isFrame: Tensor;
}

/** Paths after the last frame, [B, S], as parts of a probability, and the logarithm of that, [B, 1]. */
type Forward = Readonly<Record<'paths' | 'total', Tensor>>;

/** Sums over all paths up to each frame, [T, B, S], and after the last frame. */
function forward(lattice: Lattice): { readonly last: Forward; readonly paths: Tensor } {
  const { emissions, frames, starts } = lattice;
  const [last, paths] = ops.scan(
    ({ paths, total }: Forward, at: Frame) => {
      const next = tf.add(tf.logSumExp(arrivals(paths, lattice), 0), at.emitted);
      // The largest is 0 after each frame: float32 keeps the differences however long the sequence is.
      const largest = ops.stopGradient(tf.max(next, 1, true));
      const scaled = tf.where(at.isFrame, tf.sub(next, largest), paths) as Tensor;
      const added = tf.add(total, selected(largest, at.isFrame)) as Tensor;
      return [{ paths: scaled, total: added }, scaled] as [Forward, Tensor];
    },
    { paths: starts, total: tf.zeros([starts.shape[0]!, 1]) as Tensor },
    { emitted: emissions, isFrame: frames },
  );
  return { last, paths };
}

/** Sums over all paths from each frame, its own emission left out, to the end: [T, B, S]. */
function backward(lattice: Lattice): Tensor {
  const { emissions, frames, skips, ends, logEpsilon } = lattice;
  const [, paths] = ops.scan(
    (after: Tensor, at: Frame) => {
      const emitting = tf.add(after, at.emitted) as Tensor;
      const departures = tf.stack([
        emitting,
        shifted(emitting, -1, logEpsilon),
        shifted(tf.add(emitting, skips), -2, logEpsilon),
      ]);
      const next = tf.logSumExp(departures, 0);
      const scaled = tf.sub(next, tf.max(next, 1, true));
      return [tf.where(at.isFrame, scaled, after) as Tensor, after] as [Tensor, Tensor];
    },
    ends,
    { emitted: emissions, isFrame: frames },
    { reverse: true },
  );
  return paths;
}

/** The state of each frame on the most probable path, int32 [T, B] (Viterbi). */
function bestPath(lattice: Lattice): Tensor {
  const { emissions, frames, starts, ends } = lattice;
  const states = starts.shape[1]!;
  const [last, steps] = ops.scan(
    (paths: Tensor, at: Frame) => {
      const from = arrivals(paths, lattice);
      const next = tf.add(tf.max(from, 0), at.emitted);
      const scaled = tf.sub(next, tf.max(next, 1, true));
      const step = tf.cast(tf.argMax(from, 0), 'int32');
      const taken = tf.where(at.isFrame, step, tf.scalar(0, 'int32')) as Tensor;
      return [tf.where(at.isFrame, scaled, paths) as Tensor, taken] as [Tensor, Tensor];
    },
    starts,
    { emitted: emissions, isFrame: frames },
  );
  const places = tf.range(0, states, 1, 'int32');
  const [, path] = ops.scan(
    (state: Tensor, taken: Tensor) => {
      const isOwn = tf.equal(places, tf.expandDims(state, -1));
      const step = tf.sum(tf.where(isOwn, taken, tf.scalar(0, 'int32')), 1);
      return [tf.cast(tf.sub(state, step), 'int32'), state] as [Tensor, Tensor];
    },
    tf.cast(tf.argMax(tf.add(last, ends), 1), 'int32') as Tensor,
    steps,
    { reverse: true },
  );
  return path;
}

const lossOf = ({ paths, total }: Forward, { ends }: Lattice): Tensor =>
  tf.neg(tf.add(tf.squeeze(total, [1]), tf.logSumExp(tf.add(paths, ends), 1)));

/**
 * -log of the probability that frames emit the labels, [B], over all paths: labels in order, each over one frame or more, and
 * blanks between, of which there is one at least between equal labels (Graves et al., 2006).
 *
 * A row whose labels need more frames than it has gets about -logEpsilon, and a gradient that is finite and says nothing.
 *
 * @throws Error for tensors that do not fit each other.
 */
export function ctcLoss(inputs: CtcInputs, options: CtcOptions = {}): Tensor {
  const lattice = latticeOf(inputs, options);
  return lossOf(forward(lattice).last, lattice);
}

/**
 * The same losses with alignments, which have no gradient. Padded frames have those of a neighbour.
 *
 * @throws Error for tensors that do not fit each other.
 */
export function ctcLossWithAlignments(inputs: CtcInputs, options: CtcOptions = {}): CtcAlignments {
  const lattice = latticeOf(inputs, options);
  const { last, paths } = forward(lattice);
  const fixed = { ...lattice, emissions: ops.stopGradient(lattice.emissions) };
  const of = tf.logSoftmax(tf.add(ops.stopGradient(paths), backward(fixed)));
  const [time, batch, states] = of.shape as [number, number, number];
  // The label's own state, and the blank behind it.
  const pairs = tf.reshape(tf.concat([tf.fill([time, batch, 1], lattice.logEpsilon), of], 2), [
    time,
    batch,
    (states + 1) / 2,
    2,
  ]);
  const path = tf.transpose(bestPath(fixed), [1, 0]);
  return {
    perSequenceLoss: lossOf(last, lattice),
    alignment: tf.floorDiv(tf.add(path, tf.scalar(1, 'int32')), tf.scalar(2, 'int32')) as Tensor,
    stateLogProbs: tf.transpose(tf.logSumExp(pairs, -1), [1, 0, 2]),
  };
}
