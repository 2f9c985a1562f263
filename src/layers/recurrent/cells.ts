/** @file Base of the cells of recurrent layers, and what they share (praxis/layers/rnn_cell.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import type { State } from './recurrence.js';

export type Tensors = Readonly<Record<string, Tensor>>;

/**
 * One step of a recurrent layer. What a step reads of its input alone, `projectInput`, is computed for all times at once.
 */
export abstract class BaseRnnCell extends BaseLayer.with({
  numInputNodes: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Depth of the input; 0: that of the layer around.'),
  numOutputNodes: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Depth of the output; 0: that of the input, as a mixer has it.'),
  zoProb: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      'Probability that an element of the state stays as it is in a step (zoneout, Krueger et al., 2017).',
    ),
}) {
  static override readonly isAbstract = true;

  /** Depth of the output. */
  get outputSize(): number {
    return this.hp.numOutputNodes || this.hp.numInputNodes;
  }

  /** Shape of each state of one row. */
  abstract stateShapes(): Readonly<Record<string, readonly number[]>>;

  /** What steps read of inputs [..., numInputNodes], by name: [..., n]. */
  abstract projectInput(inputs: Tensor): Tensors;

  /** The next state, before zoneout, from the state and a time's projected inputs. */
  abstract fpropWithProjectedInputs(state: State, projected: Tensors): State;

  /** Output [B, outputSize] of a state. */
  abstract getOutput(state: State): Tensor;

  /** Random numbers [B, T, …] of zoneout by the names of the states that it holds; none in evaluation. */
  drawZoneout(batch: number, time: number): Tensors {
    const { zoProb } = this.hp;
    if (zoProb === 0 || this.doEval) return {};
    return Object.fromEntries(
      Object.entries(this.stateShapes()).map(([name, shape]) => [
        name,
        ops.randomUniform(this.nextPrngKey(), [batch, time, ...shape]),
      ]),
    );
  }

  /** `after`, of which zoneout holds some elements as they were; in evaluation, the expectation of that. */
  zoneout(before: State, after: State, drawn: Tensors): State {
    const { zoProb } = this.hp;
    if (zoProb === 0) return after;
    return Object.fromEntries(
      Object.entries(after).map(([name, x]) => {
        const old = before[name]!;
        if (drawn[name]) return [name, tf.where(tf.less(drawn[name], zoProb), old, x)];
        return [name, tf.add(tf.mul(old, zoProb), tf.mul(x, 1 - zoProb))];
      }),
    );
  }
}
