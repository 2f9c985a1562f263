/** @file Loop of a pipeline: parcels, one for each microbatch, pass from stage to stage, and all stages work at once. */
import { ops, type Tensor, type Tree, tf } from '../compiler/index.js';
import { type PipelineSizes, type Turn, turnsOf } from './pipelineSchedule.js';

export const isTensor = (value: unknown): value is Tensor => value instanceof tf.Tensor;

/** A structure with other tensors; the rest of it stays. */
export function mapTensors<V>(value: V, f: (x: Tensor) => Tensor): V {
  const map = (each: unknown): unknown => {
    if (isTensor(each)) return f(each);
    if (Array.isArray(each)) return each.map(map);
    const isPlain =
      each !== null && typeof each === 'object' && Object.getPrototypeOf(each) === Object.prototype;
    return isPlain ? Object.fromEntries(Object.entries(each).map(([key, inner]) => [key, map(inner)])) : each;
  };
  return map(value) as V;
}

/** Tensors of a structure in its order. */
export function tensorsOf(value: unknown): Tensor[] {
  const found: Tensor[] = [];
  mapTensors(value, (x) => {
    found.push(x);
    return x;
  });
  return found;
}

/** Tensors of structures that are alike, as one. */
function combine<V>(first: V, second: V, f: (x: Tensor, y: Tensor) => Tensor): V {
  const others = tensorsOf(second);
  let next = 0;
  return mapTensors(first, (x) => f(x, others[next++]!));
}

/** `count` elements of [n, …] from `begin` on. */
const span = (x: Tensor, begin: number, count: number): Tensor =>
  tf.slice(x, [begin, ...x.shape.slice(1).map(() => 0)], [count, ...x.shape.slice(1)]);

/** A condition by stage, [..., stages], for elements of a tensor of a higher rank. */
export const forElements = (condition: Tensor, { rank }: Tensor): Tensor =>
  tf.reshape(condition, [...condition.shape, ...new Array<number>(rank - condition.rank).fill(1)]);

/** Zeros of the dtype of `x`. tf.zeros would take memory for them, in a trace of shapes as well. */
export const zeros = (x: { readonly dtype: string }, shape: readonly number[]): Tensor =>
  tf.fill([...shape], 0, x.dtype as 'float32');

/** The turns of stages, [iterations, stages] each. */
export interface Schedule {
  readonly isValid: Tensor;
  readonly microbatch: Tensor;
  readonly repeat: Tensor;
}

/** Inputs of a stage in an iteration. */
interface StageInput<P, W> {
  readonly parcel: P;
  /** Its slice of the weights. */
  readonly weights: W;
  readonly key: Tensor | readonly [];
  readonly turn: Schedule;
}

/** A pipeline. */
interface Pipeline<P, W, T> {
  readonly sizes: PipelineSizes;
  /** Whether stages share inputs and outputs, and hand them on, instead of each having all. */
  readonly streamIo: boolean;
  /** int32 [2]: keys of iterations and stages are drawn from it. */
  readonly key: Tensor | undefined;
  /** Tensors [stages, …], of which each stage is given its slice. */
  readonly weights: W;
  /** Computes a stage: the parcel for the next one, and tensors that the caller wants of each turn. */
  stage(given: StageInput<P, W>): { readonly parcel: P; readonly told: T };
}

type Structure = Tree<Tensor>;

/** A boolean or number of each turn as a constant, [iterations, stages]. */
function tableOf(
  turns: Turn[][],
  of: (turn: Turn, stage: number) => number | boolean,
  dtype: 'int32' | 'bool',
) {
  const rows = turns.map((each) => each.map((turn, stage) => Number(of(turn, stage))));
  return tf.tensor2d(rows, [rows.length, rows[0]!.length], dtype) as Tensor;
}

/** Where parcels come from, and where the last stage's go: as each stage has all of them, or as they stream through the stages. */
interface Border<P> {
  /** Inputs of each iteration, [iterations, stages, …]. */
  readonly given: P | readonly [];
  /** The stream at first, [stages, microbatches / stages, …]. */
  readonly stream: P | readonly [];
  /** New inputs of the first stage in an iteration. */
  fresh(given: P | readonly [], stream: P | readonly []): P;
  /** The stream after an iteration. @param made by the stages. */
  onward(stream: P | readonly [], made: P): P | readonly [];
  /** All outputs, [microbatches, …]. */
  outputs(stream: P | readonly [], made: P | readonly []): P;
}

/** The sum over the stages of [iterations, stages, …]. tfjs's gradient of a sum takes memory for ones, in a trace of shapes as well. */
function sumOfStages(x: Tensor): Tensor {
  const call = tf.customGrad((value: any) => ({
    value: tf.sum(value, 1),
    gradFunc: (dy: Tensor) => tf.broadcastTo(tf.expandDims(dy, 1), x.shape),
  }));
  return call(x) as Tensor;
}

/** The border of stages that each have all inputs and outputs. */
function wholeBorder<P>(
  parcels: P,
  { numStages, numMicrobatches }: PipelineSizes,
  iterations: number,
  isLast: Tensor,
): Border<P> {
  // One for each stage, of which the first takes them: so ranks add up gradients of inputs once, behind the loop.
  const given = mapTensors(parcels, (x) => {
    const rest = x.shape.slice(1);
    const more = iterations - numMicrobatches;
    const padded = more === 0 ? x : tf.concat([x, zeros(x, [more, ...rest])]);
    return tf.broadcastTo(tf.expandDims(padded, 1), [iterations, numStages, ...rest]) as Tensor;
  });
  return {
    given,
    stream: [],
    fresh: (own) => own as P,
    onward: () => [],
    outputs: (_, made) =>
      mapTensors(made as P, (x) => {
        const last = span(x, iterations - numMicrobatches, numMicrobatches);
        const own = forElements(tf.expandDims(isLast, 0) as Tensor, last);
        return sumOfStages(tf.where(own, last, zeros(last, [])) as Tensor);
      }),
  };
}

/**
 * The border of stages that share inputs and outputs. Inputs move to the first stage, and outputs follow them from the last: where
 * the inputs were in the stream at first, the outputs are in the end.
 */
function streamingBorder<P>(
  parcels: P,
  { numStages, numMicrobatches }: PipelineSizes,
  isLast: Tensor,
): Border<P> {
  const length = numMicrobatches / numStages;
  const head = (x: Tensor): Tensor => tf.squeeze(tf.slice(x, [0, 0], [numStages, 1]), [1]);
  return {
    given: [],
    stream: mapTensors(parcels, (x) => tf.reshape(x, [numStages, length, ...x.shape.slice(1)])),
    fresh: (_, stream) => mapTensors(stream as P, head),
    onward: (stream, made) => {
      const moved = mapTensors(stream as P, (x) => ops.roll(head(x), 0, -1));
      const tail = combine(moved, made, (x, out) => tf.where(forElements(isLast, x), out, x));
      return combine(stream as P, tail, (x, last) => {
        const rest = tf.slice(x, [0, 1], [numStages, length - 1]);
        return tf.concat(
          length === 1 ? [tf.expandDims(last, 1)] : [rest, tf.expandDims(last, 1)],
          1,
        ) as Tensor;
      });
    },
    outputs: (stream) =>
      mapTensors(stream as P, (x) => tf.reshape(x, [numMicrobatches, ...x.shape.slice(2)])),
  };
}

/**
 * Sends parcels through all stages.
 *
 * @param parcels tensors [microbatches, …], one microbatch each.
 * @returns outputs of the last stage, and tensors that stages told, [iterations, stages, …], of bubbles too.
 */
export function runPipeline<P extends Structure, W extends Structure, T extends Structure>(
  parcels: P,
  pipeline: Pipeline<P, W, T>,
): { readonly outputs: P; readonly told: T; readonly schedule: Schedule } {
  const { sizes, weights, streamIo, key, stage } = pipeline;
  const { numStages, numMicrobatches, circularRepeat } = sizes;
  const turns = turnsOf(sizes);
  const stageIs = (one: number): Tensor =>
    tf.tensor1d(
      Array.from({ length: numStages }, (_, i) => Number(i === one)),
      'bool',
    );
  const [isFirst, isLast] = [stageIs(0), stageIs(numStages - 1)];
  const schedule: Schedule = {
    isValid: tableOf(turns, ({ isValid }) => isValid, 'bool'),
    microbatch: tableOf(turns, ({ microbatch }) => microbatch, 'int32'),
    repeat: tableOf(turns, ({ repeat }) => repeat, 'int32'),
  };
  const isFresh = tableOf(turns, ({ isValid, repeat }, i) => isValid && repeat === 0 && i === 0, 'bool');
  const border = streamIo
    ? streamingBorder(parcels, sizes, isLast)
    : wholeBorder(parcels, sizes, turns.length, isLast);
  const nothing = mapTensors(parcels, (x) => zeros(x, [numStages, ...x.shape.slice(1)]));
  // Between two repeats, a parcel waits until the first stage has had all the others.
  const waits = circularRepeat > 1 ? numMicrobatches - numStages : 0;

  type Carry = {
    readonly received: P;
    readonly waiting: readonly P[];
    readonly stream: P | readonly [];
    readonly key: Tensor | readonly [];
  };
  type Iteration = { readonly isFresh: Tensor; readonly turn: Schedule; readonly given: P | readonly [] };
  const iteration = (carry: Carry, { isFresh, turn, given }: Iteration) => {
    const { received, waiting, stream, key } = carry;
    const entering = combine(received, border.fresh(given, stream), (old, fresh) =>
      tf.where(forElements(isFresh, old), fresh, old),
    );
    const keys = isTensor(key)
      ? tf.stack(Array.from({ length: numStages }, (_, i) => ops.foldIn(key, i + 1)))
      : [];
    const [, made] = ops.scan(
      (none: readonly [], slices: any) => [none, stage(slices)],
      [],
      { parcel: entering, weights, key: keys, turn } as never,
      { length: numStages },
    ) as [readonly [], { parcel: P; told: T }];
    const moved = mapTensors(made.parcel, (x) => ops.roll(x, 0));
    const [next, ...rest] = waiting;
    const carried: Carry = {
      received: next
        ? combine(moved, next, (x, waited) => tf.where(forElements(isFirst, x), waited, x))
        : moved,
      waiting: next ? [...rest, moved] : [],
      stream: border.onward(stream, made.parcel),
      key: isTensor(key) ? ops.foldIn(key, 0) : [],
    };
    return [carried, { parcel: streamIo ? [] : made.parcel, told: made.told }] as const;
  };
  const start: Carry = {
    ...{ received: nothing, stream: border.stream, key: key ?? [] },
    waiting: Array.from({ length: waits }, () => nothing),
  };
  const [{ stream }, made] = ops.scan(
    iteration as never,
    start as never,
    { isFresh, turn: schedule, given: border.given } as never,
    { length: turns.length },
  ) as unknown as [Carry, { parcel: P | readonly []; told: T }];
  return { outputs: border.outputs(stream, made.parcel), told: made.told, schedule };
}
