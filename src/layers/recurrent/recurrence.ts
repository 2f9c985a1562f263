/** @file Base of recurrences as mixers: state from token to token, which begins anew with each sequence and rests at padding. */
import { ops, type Tensor, type Tree, tf } from '../../compiler/index.js';
import { type Config, deepCopyWith, sub } from '../../hparams/index.js';
import { stepsFrom } from '../attention/positions.js';
import { positionsOf, type Visibility } from '../attention/visibility.js';
import { unpadded } from '../core/masks.js';
import { BaseMixer, type MixerArgs, type StepArgs } from '../core/mixer.js';
import { Linear } from '../linears.js';

/** State of a recurrence by name, rows first. */
export type State = Readonly<Record<string, Tensor>>;

/** The tokens of a call. */
export interface Steps {
  /** bool [B, T]: tokens that begin a sequence, before which the state is zeros; none where absent. */
  readonly starts?: Tensor | undefined;
  /** bool [B, T]: false for padding, which leaves the state as it is; all are tokens where absent. */
  readonly tokens?: Tensor | undefined;
  /** int32 [B, T] or [1, T]: positions within sequences. */
  readonly positions: Tensor;
}

/** Outputs of a recurrence, and the state after its last token. */
export interface Unrolled {
  readonly outputs: Tensor;
  readonly state: State;
}

/** Arguments of a recurrence over whole sequences. */
export interface UnrollArgs {
  readonly seen?: Visibility | undefined;
  /** The state before the first token; zeros where absent. */
  readonly state?: State | undefined;
}

/** Visibility that a recurrence cannot keep to. */
const UNSEEN = ['window', 'prefix', 'bias', 'visible'] as const;

/**
 * A mixer that goes from token to token. Subclasses declare `stateShapes` and compute `recur`; whole sequences, packed or
 * padded, and the steps of a decode come to it alike. Without `causal` a position sees no more than with it.
 */
export abstract class BaseRecurrence extends BaseMixer {
  static override readonly isAbstract = true;

  /** Shape of each state of one row. */
  protected abstract stateShapes(): Readonly<Record<string, readonly number[]>>;

  /** Outputs for inputs [B, T, inputDim], which go on from `state`. */
  protected abstract recur(inputs: Tensor, state: State, steps: Steps): Unrolled;

  override decodeStateSpecs(batchSize: number) {
    return Object.fromEntries(
      Object.entries(this.stateShapes()).map(([name, shape]) => [
        name,
        { shape: [batchSize, ...shape], dtype: 'float32' as const },
      ]),
    );
  }

  /** The state of `batchSize` rows before their first token: zeros. */
  initStates(batchSize: number): State {
    return Object.fromEntries(
      Object.entries(this.stateShapes()).map(([name, shape]) => [name, tf.zeros([batchSize, ...shape])]),
    );
  }

  fprop(inputs: Tensor, { seen, keyVec, valueVec }: MixerArgs = {}): Tensor {
    if (keyVec ?? valueVec)
      throw this.error('sees its own inputs alone: keyVec and valueVec are for attention.');
    return this.unroll(inputs, { seen }).outputs;
  }

  /**
   * Whole sequences [B, T, inputDim], with the state after them.
   *
   * @throws LayerError where `seen` hides positions in a way that a recurrence cannot keep to.
   */
  unroll(inputs: Tensor, { seen = {}, state }: UnrollArgs = {}): Unrolled {
    const [batch, time] = this.checkInputs(inputs);
    this.#checkSight(UNSEEN.find((name) => seen[name] !== undefined));
    return this.recur(inputs, state ?? this.initStates(batch), {
      starts: seen.segments && startsOf(seen.segments.queries),
      tokens: seen.paddings && tf.broadcastTo(unpadded(this, seen.paddings, [batch, time]), [batch, time]),
      positions: positionsOf(seen, time, time).queries,
    });
  }

  extendStep(inputs: Tensor, { timeStep, length, prefix }: StepArgs): Tensor {
    const [batch, time] = this.checkInputs(inputs);
    this.#checkSight(prefix && 'prefix');
    const names = Object.keys(this.stateShapes());
    const before = Object.fromEntries(names.map((name) => [name, this.getDecodeState(name)]));
    const places = tf.reshape(tf.range(0, time, 1, 'int32'), [1, time]);
    const { outputs, state } = this.recur(inputs, before, {
      positions: stepsFrom(timeStep, time),
      tokens: length && tf.broadcastTo(tf.less(places, tf.reshape(length, [length.size, 1])), [batch, time]),
    });
    for (const name of names) this.updateDecodeState(name, state[name]!);
    return outputs;
  }

  /** @throws LayerError where the visibility has something that a recurrence cannot keep to */
  #checkSight(unseen: (typeof UNSEEN)[number] | undefined): void {
    if (unseen)
      throw this.error(
        `goes from token to token, and cannot keep to '${unseen}' of the visibility: expected an attention in its place.`,
      );
  }

  /** Rows and time of inputs. @throws LayerError for another rank or depth */
  protected checkInputs({ shape }: Tensor): [batch: number, time: number] {
    const [batch, time, depth] = shape as [number, number, number];
    if (shape.length !== 3 || depth !== this.hp.inputDim)
      throw this.error(`expected inputs [B, T, ${this.hp.inputDim}], got [${shape.join(', ')}].`);
    return [batch, time];
  }
}

/** A recurrence between projections. */
export abstract class ProjectedRecurrence extends BaseRecurrence.with({
  linearTpl: sub(Linear).describe('Each projection; depths are those of the layer.'),
}) {
  static override readonly isAbstract = true;

  /** A projection, created from a copy of the template. */
  protected createProjection(
    name: string,
    inputDims: number,
    outputDims: number,
    values: Partial<Config<Linear>> = {},
  ): Linear {
    return this.createChild(name, deepCopyWith(this.hp.linearTpl, { inputDims, outputDims, ...values }));
  }
}

/** Where segments [B, T] begin; the first token of a row goes on from the state that is given. */
function startsOf(segments: Tensor): Tensor {
  const [batch, time] = segments.shape as [number, number];
  const first = tf.slice(segments, [0, 0], [batch, Math.min(time, 1)]);
  const before = time > 1 ? tf.concat([first, tf.slice(segments, [0, 0], [batch, time - 1])], 1) : first;
  return tf.notEqual(segments, before);
}

/** `x` [B, T] with axes of size 1 behind it, for tensors of this rank. */
export const column = (x: Tensor, rank: number): Tensor =>
  tf.reshape(x, [...x.shape, ...Array.from({ length: rank - x.rank }, () => 1)]);

/** `x` [B, T, …] where there are tokens, 0 at padding. */
export const ofTokens = (x: Tensor, { tokens }: Steps): Tensor =>
  tokens ? tf.where(column(tokens, x.rank), x, tf.scalar(0)) : x;

const swapped = (x: Tensor): Tensor => {
  const [, , ...rest] = x.shape;
  return tf.transpose(x, [1, 0, ...rest.map((_, i) => i + 2)]);
};

type Tensors = Readonly<Record<string, Tensor>>;

/**
 * A recurrence as one `ops.scan` over time: `step` gives from a state and the slices [B, …] of one time the next state and
 * an output [B, …].
 *
 * @param xs tensors [B, T, …].
 * @returns outputs [B, T, …], and the last state. States begin anew and rest as `steps` says.
 */
export function scanTime<S extends State>(
  step: (state: S, x: Tensors) => readonly [state: S, output: Tensor],
  first: S,
  xs: Tensors,
  { starts, tokens }: Omit<Steps, 'positions'>,
  options: Pick<ops.ScanOptions, 'reverse'> = {},
): { readonly outputs: Tensor; readonly state: S } {
  const slices: Tree<Tensor> = {
    xs: Object.fromEntries(Object.entries(xs).map(([name, x]) => [name, swapped(x)])),
    starts: starts ? swapped(starts) : [],
    tokens: tokens ? swapped(tokens) : [],
  };
  const chosen = (mask: Tensor, a: State, b: State): S =>
    Object.fromEntries(
      Object.entries(a).map(([name, x]) => [name, tf.where(column(mask, x.rank), x, b[name]!)]),
    ) as S;
  const zeros = Object.fromEntries(Object.keys(first).map((name) => [name, tf.scalar(0)]));
  const [state, outputs] = ops.scan(
    (before: any, at: any) => {
      const begun = starts ? chosen(tf.logicalNot(at.starts), before, zeros) : (before as S);
      const [after, output] = step(begun, at.xs);
      return [tokens ? chosen(at.tokens, after, begun) : after, output] as any;
    },
    first as any,
    slices as any,
    options,
  ) as unknown as [S, Tensor];
  return { outputs: swapped(outputs), state };
}
