/** @file LayerwiseShardablePipelined: stages of a network that work at once on microbatches of a batch (praxis/layers/pipeline.py). */
import { z } from 'zod';
import { ops, type Tensor, type Tree, tf } from '../compiler/index.js';
import type { Config, ConfigBuilding } from '../hparams/index.js';
import { BaseLayer } from './core/base.js';
import { type AuxLoss, type LayerContext, runInContext } from './core/context.js';
import type { SplitDims } from './core/layerFields.js';
import { repetitionsApart } from './core/layerSummaries.js';
import { splitOf } from './core/splitDims.js';
import { listVariables } from './core/variables.js';
import type { Variable } from './core/weights.js';
import {
  forElements,
  isTensor,
  mapTensors,
  runPipeline,
  type Schedule,
  tensorsOf,
  zeros,
} from './pipelineLoop.js';
import type { PipelineSizes } from './pipelineSchedule.js';
import { layerField } from './sequential.js';

type Values = Record<string, Tensor>;

/** A layer that may be a stage. */
type Stage = BaseLayer & { fprop(inputs: unknown, ...args: unknown[]): unknown };

/** A microbatch on its way: activations, and tensors that move with them. */
type Parcel<X> = { readonly x: X; readonly others: readonly Tensor[] };

/** Values of a stage's variables. */
type Weights = Readonly<Record<'theta' | 'updated', Values>>;

/** Results of a stage besides its output. */
type Told = Readonly<Record<'updated' | 'summaries' | 'media', Values>> & {
  readonly losses: readonly Tensor[];
};

/** Results of a stage. */
type StageOutput<X> = { readonly x: X; readonly told: Told };

/** Fields of pipelines that layers hand on. */
export const pipelineFields = {
  circularRepeat: z
    .int()
    .positive()
    .default(1)
    .describe(
      'How often a microbatch passes all stages, each time by weights of their own: so much shorter is the bubble. More than ' +
        'once takes as many microbatches as stages, or more.',
    ),
  streamIo: z
    .boolean()
    .default(false)
    .describe(
      'Whether stages share the batch and hand microbatches on, instead of each having all inputs and outputs. Takes a ' +
        'number of microbatches that stages divide.',
    ),
  pipelineBroadcastInputs: z
    .boolean()
    .default(false)
    .describe(
      'Whether tensors of rows among the other arguments, such as segments, move from stage to stage with their microbatch, ' +
        'instead of each stage having those of the batch.',
    ),
};

/** [rows, …] as [microbatches, rows of one, …]. Neighbors go to different ones: so a part of the rows is a part of each. */
function apart(x: Tensor, count: number): Tensor {
  const [rows, ...rest] = x.shape as [number, ...number[]];
  const order = [1, 0, ...rest.map((_, i) => i + 2)];
  return tf.transpose(tf.reshape(x, [rows / count, count, ...rest]), order);
}

/** [microbatches, rows of one, …] as [rows, …]. */
function together(x: Tensor): Tensor {
  const [count, rows, ...rest] = x.shape as [number, number, ...number[]];
  return tf.reshape(tf.transpose(x, [1, 0, ...rest.map((_, i) => i + 2)]), [count * rows, ...rest]);
}

/** The element of [count, …] at an int32 scalar. */
const elementAt = (x: Tensor, index: Tensor): Tensor =>
  tf.reshape(tf.gather(x, tf.reshape(index, [1]) as tf.Tensor1D), x.shape.slice(1));

/** `values` over those of `rest`, which are not copied. */
const over = (rest: Readonly<Values>, values: Readonly<Values>): Values =>
  Object.assign(Object.create(rest) as Values, values);

/** @throws what `error` makes of the reason, where neither field, or both, say how a batch is cut, or it can't be */
function microbatchesOf(
  fields: {
    readonly numStages: number;
    readonly circularRepeat: number;
    readonly streamIo: boolean;
    readonly numMicrobatches: number | null;
    readonly microbatchSize: number | null;
  },
  rows: number,
  error: (detail: string) => Error,
): number {
  const { numStages, circularRepeat, streamIo, numMicrobatches, microbatchSize } = fields;
  if ((numMicrobatches === null) === (microbatchSize === null))
    throw error(
      `set numMicrobatches or microbatchSize, one of both; they are ${numMicrobatches} and ${microbatchSize}.`,
    );
  const count = numMicrobatches ?? rows / microbatchSize!;
  if (!Number.isInteger(count) || rows % count > 0)
    throw error(
      microbatchSize === null
        ? `${rows} rows can't be cut into ${count} microbatches: numMicrobatches divides the rows.`
        : `${rows} rows can't be cut into microbatches of ${microbatchSize} rows: microbatchSize divides them.`,
    );
  if (circularRepeat > 1 && count < numStages)
    throw error(
      `${count} microbatches for ${numStages} stages: with circularRepeat ${circularRepeat} there are as many as stages, or more.`,
    );
  if (streamIo && count % numStages > 0)
    throw error(
      `${count} microbatches can't be shared by ${numStages} stages: with streamIo, stages divide them.`,
    );
  return count;
}

/**
 * `numStages` layers in sequence, `circularRepeat` times over, each with weights of its own: a network that is cut into stages
 * for groups of devices. A batch passes as microbatches: in each of microbatches * repeats + stages - 1 iterations, all stages work
 * at once, each on the microbatch that the stage before has had, and what they make moves on by one stage. A variable of the
 * layer, at `body`, stacks those of all stages along a first axis, [stages, …] or [repeats, stages, …], and
 * `weightSplitDimsMapping.stages` names the axis of the mesh that splits it.
 *
 * Outputs, losses and gradients are those of the layers called one after the other with each microbatch. A stage without a
 * microbatch, as there are in the begin and in the end (the bubble), computes nothing, and nothing of it counts anywhere. Losses that
 * a stage adds, summaries and new values of variables are means over microbatches, but pictures, sounds and integers are those
 * of the last one; summaries of stage s stand under `body_s`, those of the second repeat behind those of the last stage. A
 * gradient computes the activations of a stage again from its input. Random numbers differ by iteration and stage.
 */
export class LayerwiseShardablePipelined extends BaseLayer.with({
  singleStageBody: layerField.describe(
    'A stage: what it returns for an input is the input of the next one. Of other arguments, tensors whose first dimension ' +
      'is that of rows are those of the microbatch.',
  ),
  numStages: z.int().positive().default(1).describe('Stages.'),
  numMicrobatches: z.int().positive().nullable().default(null).describe('Microbatches of a batch.'),
  microbatchSize: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Rows of a microbatch, of those that a device has, in place of numMicrobatches.'),
  ...pipelineFields,
}) {
  protected body!: Stage;
  #stacked: readonly Variable[] = [];

  protected override setup(): void {
    this.body = this.createChild('body', this.hp.singleStageBody as ConfigBuilding<unknown> as Config<Stage>);
    this.#stacked = listVariables(this.body).filter(({ path }) => path.startsWith(`${this.body.path}/`));
  }

  protected override get childRepeatPrefix(): readonly number[] {
    const { circularRepeat, numStages } = this.hp;
    return [...this.repeatPrefix, ...(circularRepeat > 1 ? [circularRepeat] : []), numStages];
  }

  protected override get childPrefixSplit(): SplitDims {
    const stages = splitOf(this, 'weightSplitDimsMapping', 'stages', 1) ?? [null];
    return [...this.prefixSplit, ...(this.hp.circularRepeat > 1 ? [null] : []), ...stages];
  }

  /**
   * As the layer's own `fprop`, for each microbatch.
   *
   * @param inputs tensors [rows, …].
   * @throws LayerError for rows that can't be cut into such microbatches.
   */
  fprop<X extends Tree<Tensor>>(inputs: X, ...args: unknown[]): X {
    const { context } = this;
    const { streamIo, pipelineBroadcastInputs: areMoved } = this.hp;
    const rows = tensorsOf(inputs)[0]?.shape[0] ?? 0;
    const sizes = this.sizes(rows);
    const { numMicrobatches } = sizes;
    const cut = (x: Tensor): Tensor => apart(x, numMicrobatches);
    const others = { args, rowWeights: context.rowWeights };
    const isOfRows = ({ shape }: Tensor): boolean => shape[0] === rows;
    const sides = tensorsOf(others).filter(isOfRows).map(cut);
    const withSides = (own: readonly Tensor[]): typeof others => {
      let next = 0;
      return mapTensors(others, (x) => (isOfRows(x) ? own[next++]! : x));
    };
    let losses: readonly AuxLoss[] = [];
    // As the first turn tells it: of a turn in the bubble it is all 0.
    let example: Told | undefined;
    const { outputs, told, schedule } = runPipeline<Parcel<X>, Weights, Told>(
      { x: mapTensors(inputs, cut), others: areMoved ? sides : [] },
      {
        ...{ sizes, streamIo },
        key: context.prngKey && this.nextPrngKey(),
        weights: this.#weights(context),
        stage: ({ parcel, weights, key, turn }) => {
          const work = (): StageOutput<X> => {
            const own = areMoved ? parcel.others : sides.map((side) => elementAt(side, turn.microbatch));
            const { auxLosses, ...output } = this.#call(
              parcel.x,
              withSides(own),
              this.#ofRepeat(weights, turn),
              key,
            );
            losses = auxLosses;
            example ??= output.told;
            return output;
          };
          const wait = (): StageOutput<X> => ({
            x: parcel.x,
            told: mapTensors(example!, (x) => zeros(x, x.shape)),
          });
          const { x, told } = ops.cond<readonly [], StageOutput<X>>(turn.isValid, work, wait, []);
          return { parcel: { ...parcel, x }, told };
        },
      },
    );
    this.#tell(told, schedule, sizes, losses);
    return mapTensors(outputs.x, together);
  }

  /** Sizes for so many rows of a device. @throws LayerError for rows that can't be cut into such microbatches */
  sizes(rows: number): PipelineSizes {
    const { numStages, circularRepeat } = this.hp;
    const numMicrobatches = microbatchesOf(this.hp, rows, (detail) => this.error(detail));
    return { numStages, circularRepeat, numMicrobatches };
  }

  /** The dimension of the stages in variables of the body. */
  get stageDim(): number {
    return this.childRepeatPrefix.length - 1;
  }

  /** Values of variables, [stages, …] or [stages, repeats, …]. */
  #weights({ theta, updatedVars }: LayerContext): Weights {
    const stagesFirst = (x: Tensor): Tensor =>
      this.hp.circularRepeat === 1 ? x : tf.transpose(x, [1, 0, ...x.shape.slice(2).map((_, i) => i + 2)]);
    const own = (values: Readonly<Values>): Values =>
      Object.fromEntries(
        this.#stacked.flatMap(({ path }) => (values[path] ? [[path, stagesFirst(values[path])]] : [])),
      );
    return { theta: own(theta), updated: own(updatedVars) };
  }

  /** The values of a turn's repeat. */
  #ofRepeat(weights: Weights, { repeat }: Schedule): Weights {
    return this.hp.circularRepeat === 1 ? weights : mapTensors(weights, (x) => elementAt(x, repeat));
  }

  /** Calls the stage's layer with values of its variables. */
  #call<X>(
    x: X,
    { args, rowWeights }: { readonly args: readonly unknown[]; readonly rowWeights: Tensor | undefined },
    { theta, updated }: Weights,
    key: Tensor | readonly [],
  ): StageOutput<X> & { readonly auxLosses: readonly AuxLoss[] } {
    const { context } = this;
    const updatedVars = over(context.updatedVars, updated);
    const [summaries, media, auxLosses]: [Values, Values, AuxLoss[]] = [{}, {}, []];
    const made = runInContext(
      {
        theta: over(context.theta, theta),
        doEval: context.doEval,
        prngKey: isTensor(key) ? key : undefined,
        summaries: context.summaries && summaries,
        media: context.media && media,
        summaryVerbosity: context.summaryVerbosity,
        ...{ rowWeights, auxLosses, updatedVars },
      },
      () => this.body.fprop(x, ...args) as X,
    );
    const shared = Object.keys(updatedVars).find((path) => !path.startsWith(`${this.body.path}/`));
    if (shared !== undefined)
      throw this.error(
        `a stage replaces '${shared}', which it shares with layers outside: only variables that are stacked can be replaced.`,
      );
    const told = {
      updated: { ...updatedVars },
      summaries,
      media,
      losses: auxLosses.map(({ value }) => value),
    };
    return { x: made, told, auxLosses };
  }

  /** Passes on the results of all microbatches as one. @param told [iterations, stages, …] */
  #tell(
    told: Told,
    { isValid, microbatch, repeat }: Schedule,
    { numMicrobatches, circularRepeat }: PipelineSizes,
    losses: readonly AuxLoss[],
  ): void {
    const { context } = this;
    const int = (value: number): Tensor => tf.scalar(value, 'int32');
    const isLast = tf.equal(microbatch, int(numMicrobatches - 1));
    const sum = (x: Tensor, counts: Tensor): Tensor =>
      tf.sum(tf.where(forElements(tf.logicalAnd(isValid, counts), x), x, tf.zerosLike(x)), 0);
    /** [stages, …] of a repeat. */
    const ofRepeat = (x: Tensor, index: number, isMean: boolean): Tensor => {
      const counts = tf.equal(repeat, int(index));
      if (isMean && x.dtype === 'float32') return tf.div(sum(x, counts), numMicrobatches);
      return tf.cast(
        sum(tf.cast(x, x.dtype === 'bool' ? 'int32' : x.dtype), tf.logicalAnd(counts, isLast)),
        x.dtype,
      );
    };
    const each = (x: Tensor, isMean = true): Tensor[] =>
      Array.from({ length: circularRepeat }, (_, index) => ofRepeat(x, index, isMean));
    const { path } = this.body;
    const inOrder = (values: Values, isMean: boolean): Values =>
      repetitionsApart(
        mapTensors(values, (x) => tf.concat(each(x, isMean))),
        path,
      );
    Object.assign(
      context.updatedVars,
      mapTensors(told.updated, (x) => (circularRepeat === 1 ? each(x)[0]! : tf.stack(each(x)))),
    );
    Object.assign(context.summaries ?? {}, inOrder(told.summaries, true));
    Object.assign(context.media ?? {}, inOrder(told.media, false));
    for (const [i, { name, weight }] of losses.entries()) {
      const all = told.losses[i]!;
      context.auxLosses.push({ name, weight, value: tf.div(tf.sum(sum(all, isValid)), numMicrobatches) });
    }
  }
}
