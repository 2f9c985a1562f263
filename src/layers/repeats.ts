/** @file Repeat: a layer called several times, each with weights of its own (praxis/layers/repeats.py). */
import { z } from 'zod';
import { ops, type Tensor, type Tree, tf } from '../compiler/index.js';
import type { Config, ConfigBuilding } from '../hparams/index.js';
import { CHECKPOINT_POLICIES, checkpointPolicyField } from './checkpointPolicy.js';
import { BaseLayer } from './core/base.js';
import { type AuxLoss, type DecodeStateSpec, runInContext } from './core/context.js';
import type { SplitDims } from './core/layerFields.js';
import { repetitionsApart } from './core/layerSummaries.js';
import { listVariables } from './core/variables.js';
import type { Variable } from './core/weights.js';
import { layerField } from './sequential.js';

type Values = Record<string, Tensor>;

/** A layer that may be repeated. */
type Repeatable = BaseLayer & {
  fprop(inputs: unknown, ...args: unknown[]): unknown;
  begin?(memory: unknown): void;
  extendStep?(inputs: unknown, ...args: unknown[]): unknown;
};

/** What goes from one repetition to the next: activations, and the key to draw further keys from. */
type Carry<X> = { readonly x: X; readonly key: Tensor | readonly [] };

/** Inputs of one repetition alone. */
type Slices = Readonly<Record<'theta' | 'updated' | 'states' | 'prompts', Values>>;

/** Results of one repetition besides its output. */
type Told = {
  readonly updated: Values;
  readonly states: Values;
  readonly summaries: Values;
  readonly media: Values;
  readonly losses: readonly Tensor[];
};

/** `values` over those of `rest`, which are not copied. */
const over = (rest: Readonly<Values>, values: Readonly<Values>): Values =>
  Object.assign(Object.create(rest) as Values, values);

const pick = (values: Readonly<Values>, paths: Iterable<string>): Values =>
  Object.fromEntries([...paths].flatMap((path) => (values[path] ? [[path, values[path]]] : [])));

/**
 * `xTimes` calls of one layer, each on the output of the one before, and each with weights, random numbers, state and
 * summaries of its own. A variable of the layer, at `sub`, stacks those of all repetitions along a first axis.
 * It is one `ops.scan`: a compiled program has the layer once, however many repetitions there are. Its gradient computes
 * the activations of a repetition again from its input, unless `checkpointPolicy` keeps more.
 *
 * The initial values of each repetition are drawn as those of a layer alone, with keys of their own: fans are those of one
 * repetition. Losses that the layer adds are summed; summaries stand under `sub_0`, `sub_1` and so on, which are the
 * repetitions. A layer that is shared with layers outside is not stacked.
 */
export class Repeat extends BaseLayer.with({
  subTpl: layerField.describe('The layer; what it returns for an input may be its next input.'),
  xTimes: z.int().positive().describe('How often it is called.'),
  checkpointPolicy: checkpointPolicyField.describe(
    'What each repetition keeps for the gradient beside its input: as in StackedTransformer.',
  ),
  unrollInDecode: z
    .boolean()
    .default(false)
    .describe(
      'Whether decoding compiles the layer for each repetition, with separate states: steps copy no stacks of states, and compiling takes longer.',
    ),
}) {
  protected sub!: Repeatable;
  #stacked: readonly Variable[] = [];

  protected override setup(): void {
    this.sub = this.createChild('sub', this.hp.subTpl as ConfigBuilding<unknown> as Config<Repeatable>);
    this.#stacked = listVariables(this.sub).filter(({ path }) => this.#isBelow(path));
  }

  protected override get childRepeatPrefix(): readonly number[] {
    return [...this.repeatPrefix, this.hp.xTimes];
  }

  protected override get childPrefixSplit(): SplitDims {
    return [...this.prefixSplit, null];
  }

  /** As the layer's own `fprop`. @param args are the same for all repetitions. */
  fprop<X extends Tree<Tensor>>(inputs: X, ...args: unknown[]): X {
    const call = (x: X): X => this.sub.fprop(x, ...args) as X;
    return this.repeat(inputs, ops.checkpoint(call, CHECKPOINT_POLICIES[this.hp.checkpointPolicy]));
  }

  /** As the layer's own `extendStep`. @param args are the same for all repetitions. */
  extendStep<X extends Tree<Tensor>>(inputs: X, ...args: unknown[]): X {
    const { sub } = this;
    if (!sub.extendStep) throw this.error(`repeats a ${sub.constructor.name}, which has no extendStep.`);
    return this.repeat(inputs, (x) => sub.extendStep!(x, ...args) as X);
  }

  /** As the layer's own `begin`, where it has one. */
  begin(memory: Tree<Tensor>): void {
    const { sub } = this;
    this.repeat(memory, (x) => {
      sub.begin?.(x);
      return x;
    });
  }

  override repeatDecodeState(
    specs: Readonly<Record<string, DecodeStateSpec>>,
  ): Readonly<Record<string, DecodeStateSpec>> {
    const { xTimes, unrollInDecode } = this.hp;
    return Object.fromEntries(
      Object.entries(specs).flatMap(([path, spec]): [string, DecodeStateSpec][] => {
        if (!this.#isBelow(path)) return [[path, spec]];
        if (!unrollInDecode) {
          const { shape, dtype, rowAxis = 0, isPerToken } = spec;
          const stacked = { shape: [xTimes, ...shape], dtype, rowAxis: rowAxis + 1 };
          return [[path, { ...stacked, ...(isPerToken && { isPerToken }) }]];
        }
        return Array.from({ length: xTimes }, (_, i) => [`${path}#${i}`, spec]);
      }),
    );
  }

  /** Calls `turn`, which calls the layer, once for each repetition. @returns the last result */
  protected repeat<X extends Tree<Tensor>>(inputs: X, turn: (x: X) => X): X {
    const { context } = this;
    const { xTimes, unrollInDecode } = this.hp;
    const { decodeState, promptState, prngKey } = context;
    const isApart = decodeState !== undefined && unrollInDecode;
    const paths = this.#stacked.map(({ path }) => path);
    const slices: Slices = {
      theta: this.#checked(pick(context.theta, paths)),
      updated: this.#checked(pick(context.updatedVars, paths)),
      states: decodeState && !isApart ? pick(decodeState, this.#below(decodeState)) : {},
      prompts: promptState && !isApart ? pick(promptState, this.#below(promptState)) : {},
    };
    let losses: readonly AuxLoss[] = [];
    let repetition = 0;
    const body = ({ x, key }: Carry<X>, given: Slices): [Carry<X>, Told] => {
      const states = isApart ? this.#statesOf(decodeState, repetition) : given.states;
      const updatedVars = over(context.updatedVars, given.updated);
      const [summaries, media, auxLosses]: [Values, Values, AuxLoss[]] = [{}, {}, []];
      const isKey = key instanceof tf.Tensor;
      const next = runInContext(
        {
          theta: over(context.theta, given.theta),
          doEval: context.doEval,
          prngKey: isKey ? ops.foldIn(key, 0) : undefined,
          rowWeights: context.rowWeights,
          summaries: context.summaries && summaries,
          media: context.media && media,
          summaryVerbosity: context.summaryVerbosity,
          decodeState: decodeState && states,
          promptState: promptState && (isApart ? this.#statesOf(promptState, repetition) : given.prompts),
          ...{ auxLosses, updatedVars, taps: context.taps },
        },
        () => turn(x),
      );
      if (isApart)
        for (const [path, state] of Object.entries(states)) decodeState[`${path}#${repetition}`] = state;
      repetition++;
      losses = auxLosses;
      const told = {
        updated: this.#ownUpdates(updatedVars),
        states: isApart ? {} : states,
        ...{ summaries, media, losses: auxLosses.map(({ value }) => value) },
      };
      return [{ x: next, key: isKey ? ops.foldIn(key, 1) : [] }, told];
    };
    const start: Carry<X> = { x: inputs, key: prngKey ? this.nextPrngKey() : [] };
    const [{ x }, told] = ops.scan<Carry<X>, Slices, Told>(body, start, slices, {
      length: xTimes,
      // Taps read the tensors of every repetition.
      unroll: isApart || context.taps !== undefined,
    });
    Object.assign(context.updatedVars, told.updated);
    Object.assign(decodeState ?? {}, told.states);
    Object.assign(context.summaries ?? {}, repetitionsApart(told.summaries, this.sub.path));
    Object.assign(context.media ?? {}, repetitionsApart(told.media, this.sub.path));
    for (const [i, { name, weight }] of losses.entries())
      context.auxLosses.push({ name, weight, value: tf.sum(told.losses[i]!) });
    return x;
  }

  #isBelow(path: string): boolean {
    return path.startsWith(this.path === '' ? 'sub/' : `${this.path}/sub/`);
  }

  #below(values: Readonly<Values>): string[] {
    return Object.keys(values).filter((path) => this.#isBelow(path));
  }

  #checked(stacks: Values): Values {
    for (const { path, shape, repeatPrefix } of this.#stacked) {
      const declared = shape.slice(this.repeatPrefix.length);
      const given = stacks[path]?.shape ?? declared;
      if (given.join() !== declared.join())
        throw this.error(
          `the context has shape [${given.join(', ')}] for '${path}', declared as [${declared.join(', ')}], of which ` +
            `the first ${repeatPrefix.length - this.repeatPrefix.length === 1 ? 'axis is' : 'axes are'} of repetitions.`,
        );
    }
    return stacks;
  }

  /** The states of one repetition, by their paths within it. */
  #statesOf(states: Readonly<Values>, repetition: number): Values {
    const suffix = `#${repetition}`;
    const own = this.#below(states).filter((path) => path.endsWith(suffix));
    return Object.fromEntries(own.map((path) => [path.slice(0, -suffix.length), states[path]!]));
  }

  /** Values that a repetition gave stacked variables. @throws LayerError for others */
  #ownUpdates(updatedVars: Readonly<Values>): Values {
    const shared = Object.keys(updatedVars).find((path) => !this.#isBelow(path));
    if (shared === undefined) return { ...updatedVars };
    throw this.error(
      `a repetition replaces '${shared}', which it shares with layers outside: only variables that are stacked, one ` +
        'for each repetition, can be replaced.',
    );
  }
}
