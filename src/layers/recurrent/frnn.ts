/** @file Recurrent layers over time, their stacks, and stacks that read both ways (praxis/layers/frnn.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, deepCopyWith, sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { BaseMixer, type MixerArgs, type StepArgs } from '../core/mixer.js';
import { BaseRnnCell } from './cells.js';
import { LstmCellSimple } from './lstmCells.js';
import {
  BaseRecurrence,
  type State,
  type Steps,
  scanTime,
  type UnrollArgs,
  type Unrolled,
} from './recurrence.js';

/**
 * A cell over time. Products of inputs are computed for all times at once; the rest is one `ops.scan`.
 *
 * The state rests at padding, where outputs are those of the last token, and begins anew with each segment of a packed row.
 */
export class FRnn extends BaseRecurrence.with({
  cellTpl: sub(BaseRnnCell, () => LstmCellSimple.config()).describe('The cell.'),
  reverse: z.boolean().default(false).describe('Whether time goes from the last token to the first.'),
}) {
  protected cell!: BaseRnnCell;

  protected override setup(): void {
    const { cellTpl, inputDim } = this.hp;
    if (cellTpl.numInputNodes && cellTpl.numInputNodes !== inputDim)
      throw this.error(
        `cellTpl.numInputNodes: expected inputDim ${inputDim}, or 0 for it, got ${cellTpl.numInputNodes}.`,
      );
    this.cell = this.createChild('cell', cellTpl, { numInputNodes: inputDim });
  }

  override get outputDim(): number {
    return this.cell.outputSize;
  }

  protected override stateShapes() {
    return this.cell.stateShapes();
  }

  override unroll(inputs: Tensor, args: UnrollArgs = {}): Unrolled {
    if (this.hp.reverse && args.seen?.causal)
      throw this.error('goes from the last token to the first (reverse), and the visibility is causal.');
    return super.unroll(inputs, args);
  }

  override extendStep(inputs: Tensor, args: StepArgs): Tensor {
    if (this.hp.reverse)
      throw this.error('goes from the last token to the first (reverse), and cannot decode.');
    return super.extendStep(inputs, args);
  }

  protected override recur(inputs: Tensor, state: State, { starts, tokens }: Steps): Unrolled {
    const { cell } = this;
    const { reverse } = this.hp;
    const [batch, time] = inputs.shape as [number, number];
    const projected = cell.projectInput(inputs);
    const names = Object.keys(projected);
    const drawn = Object.entries(cell.drawZoneout(batch, time));
    const step = (before: State, at: State): [State, Tensor] => {
      const ofStep = Object.fromEntries(names.map((name) => [name, at[name]!]));
      const zoneout = Object.fromEntries(drawn.map(([name]) => [name, at[`zoneout ${name}`]!]));
      const after = cell.zoneout(before, cell.fpropWithProjectedInputs(before, ofStep), zoneout);
      return [after, cell.getOutput(after)];
    };
    const xs = { ...projected, ...Object.fromEntries(drawn.map(([name, x]) => [`zoneout ${name}`, x])) };
    const begins = starts && reverse ? endsOf(starts) : starts;
    return scanTime(step, state, xs, { starts: begins, tokens }, { reverse });
  }
}

/** Where sequences end, [B, T], from where they begin: where they begin for those who read backwards. */
function endsOf(starts: Tensor): Tensor {
  const [batch, time] = starts.shape as [number, number];
  const none = tf.cast(tf.zeros([batch, 1]), 'bool');
  return tf.concat([tf.slice(starts, [0, 1], [batch, time - 1]), none], 1);
}

/** The name by which Pax has recurrent layers whose input products are computed for all times at once: those of `FRnn`. */
export class LstmFrnn extends FRnn {}

const stackFields = {
  frnnTpl: sub(FRnn, () => LstmFrnn.config()).describe('Each layer; depths are those of the stack.'),
  numLayers: z.int().positive().default(1).describe('Number of layers.'),
};

/** `numLayers` recurrent layers, each on the outputs of the one before. */
export class StackFrnn extends BaseMixer.with({
  ...stackFields,
  numOutputNodes: z.int().nonnegative().default(0).describe('Depth of each output; 0: inputDim.'),
}) {
  protected layers!: FRnn[];

  protected override setup(): void {
    const { frnnTpl, numLayers, inputDim } = this.hp;
    const depth = this.outputDim;
    const layers = Array.from({ length: numLayers }, (_, i) =>
      layerOf(frnnTpl, i === 0 ? inputDim : depth, depth),
    );
    this.layers = this.createChildren('frnn', layers);
  }

  override get outputDim(): number {
    return this.hp.numOutputNodes || this.hp.inputDim;
  }

  fprop(inputs: Tensor, args?: MixerArgs): Tensor {
    return this.layers.reduce((x, layer) => layer.fprop(x, args), inputs);
  }

  extendStep(inputs: Tensor, args: StepArgs): Tensor {
    return this.layers.reduce((x, layer) => layer.extendStep(x, args), inputs);
  }
}

/** A copy of a layer with these depths. */
const layerOf = (
  frnnTpl: Config<FRnn>,
  inputDim: number,
  numOutputNodes: number,
  reverse = false,
): Config<FRnn> =>
  deepCopyWith(frnnTpl, {
    ...{ inputDim, reverse },
    cellTpl: deepCopyWith(frnnTpl.cellTpl, { numInputNodes: inputDim, numOutputNodes }),
  });

/**
 * `numLayers` pairs of recurrent layers, one in each direction, whose outputs, of half the depth each, are the next pair's
 * inputs. It sees the future, and does not decode.
 */
export class StackBiFrnn extends BaseLayer.with({
  ...stackFields,
  inputDim: z.int().positive().describe('Depth of the input.'),
  numOutputNodes: z.int().positive().multipleOf(2).describe('Depth of both outputs together.'),
}) {
  #forward!: FRnn[];
  #backward!: FRnn[];

  protected override setup(): void {
    const { frnnTpl, numLayers, inputDim, numOutputNodes } = this.hp;
    const layers = (reverse: boolean): Config<FRnn>[] =>
      Array.from({ length: numLayers }, (_, i) =>
        layerOf(frnnTpl, i === 0 ? inputDim : numOutputNodes, numOutputNodes / 2, reverse),
      );
    this.#forward = this.createChildren('fwd_frnn', layers(false));
    this.#backward = this.createChildren('bwd_frnn', layers(true));
  }

  /** [B, T, inputDim] to [B, T, numOutputNodes]. @param args.seen without `causal`. */
  fprop(inputs: Tensor, args: Pick<MixerArgs, 'seen'> = {}): Tensor {
    return this.#forward.reduce(
      (x, forward, i) => tf.concat([forward.fprop(x, args), this.#backward[i]!.fprop(x, args)], -1),
      inputs,
    );
  }
}
