/** @file LSTM cells (praxis/layers/rnn_cell.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { instance } from '../../hparams/index.js';
import { Constant, constantInit, WeightInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { BaseRnnCell, type Tensors } from './cells.js';
import type { State } from './recurrence.js';

/** A cell, and the gate of its output. */
interface NextCell {
  readonly cell: Tensor;
  readonly outputGate: Tensor;
}

/**
 * An LSTM (Hochreiter and Schmidhuber, 1997), with a projection of its output where `numHiddenNodes` is set (Sak et al.,
 * 2014): `[i g f o] = [x m] wm + b`, `c' = σ(f) c + σ(g) tanh(i)`, `m' = σ(o) tanh(c')`.
 */
export class LstmCellSimple extends BaseRnnCell.with({
  numHiddenNodes: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Depth of the cell where its output is projected; 0: numOutputNodes, without a projection.'),
  cellValueCap: z
    .number()
    .positive()
    .nullable()
    .default(10)
    .describe('Largest magnitude of the cell; null: without bound.'),
  forgetGateBias: z.number().default(0).describe("Added to the forget gate's bias."),
  outputNonlinearity: z.boolean().default(true).describe('Whether the output is a tanh of the cell.'),
  biasInit: instance(WeightInit, () => Constant.config({ scale: 0 })).describe(
    'Initial values of the biases.',
  ),
}) {
  declare readonly theta: Theta<'wm' | 'b' | 'w_proj'>;

  /** Gates in one product. */
  protected get numGates(): number {
    return 4;
  }
  /** Depth of the cell. */
  get hiddenSize(): number {
    return this.hp.numHiddenNodes || this.outputSize;
  }

  protected override setup(): void {
    const { numInputNodes, numHiddenNodes, biasInit } = this.hp;
    const gates = this.numGates * this.hiddenSize;
    this.createVariable('wm', { shape: [numInputNodes + this.outputSize, gates] });
    if (numHiddenNodes) this.createVariable('w_proj', { shape: [numHiddenNodes, this.outputSize] });
    this.createVariable('b', { shape: [gates], init: biasInit });
  }

  override stateShapes() {
    return { m: [this.outputSize], c: [this.hiddenSize] };
  }

  override getOutput(state: State): Tensor {
    return state.m!;
  }

  override projectInput(inputs: Tensor): Tensors {
    const { numInputNodes } = this.hp;
    const wm = tf.slice(this.theta.wm, [0, 0], [numInputNodes, -1]);
    return { gates: this.projected(tf.matMul(inputs, wm)) };
  }

  override fpropWithProjectedInputs({ m, c }: State, { gates }: Tensors): State {
    const { numInputNodes, numHiddenNodes, cellValueCap, outputNonlinearity } = this.hp;
    const wm = tf.slice(this.theta.wm, [numInputNodes, 0], [-1, -1]);
    const next = this.nextCell(this.gatesOf(gates!, tf.matMul(m!, wm)), c!);
    const cell = cellValueCap === null ? next.cell : tf.clipByValue(next.cell, -cellValueCap, cellValueCap);
    const output = tf.mul(next.outputGate, outputNonlinearity ? tf.tanh(cell) : cell);
    return { m: numHiddenNodes ? tf.matMul(output, this.theta.w_proj) : output, c: cell };
  }

  /** The part of the gates that does not depend on the state: products of inputs [..., numGates · hiddenSize], and biases. */
  protected projected(products: Tensor): Tensor {
    return this.biased(products);
  }

  /** Each gate [B, hiddenSize], from the products of inputs and of the state. */
  protected gatesOf(projected: Tensor, products: Tensor): Tensor[] {
    // Gate by gate, so that all of a step but its product is one loop.
    const ofState = tf.split(products, this.numGates, -1);
    return tf.split(projected, this.numGates, -1).map((gate, i) => tf.add(gate, ofState[i]!));
  }

  /** Gates [..., numGates · hiddenSize] with their biases. */
  protected biased(gates: Tensor): Tensor {
    const { forgetGateBias } = this.hp;
    const biased = tf.add(gates, this.theta.b);
    if (forgetGateBias === 0) return biased;
    const extra = [0, 0, forgetGateBias, 0].flatMap((bias) =>
      Array.from({ length: this.hiddenSize }, () => bias),
    );
    return tf.add(biased, tf.tensor1d(extra));
  }

  /** The next cell, before its cap, and σ(o), from the gates and the cell. */
  protected nextCell([i, g, f, o]: readonly Tensor[], c: Tensor): NextCell {
    const cell = tf.add(tf.mul(tf.sigmoid(f!), c), tf.mul(tf.sigmoid(g!), tf.tanh(i!)));
    return { cell, outputGate: tf.sigmoid(o!) };
  }
}

/** An LSTM whose gates are normalised, each over its elements, and scaled, before their biases (Ba et al., 2016). */
export class LayerNormalizedLstmCellSimple extends LstmCellSimple.with({
  layerNormEpsilon: z.number().positive().default(1e-8).describe('Added to the variance.'),
}) {
  declare readonly theta: Theta<'wm' | 'b' | 'w_proj' | 'ln_scale'>;

  protected override setup(): void {
    super.setup();
    this.createVariable('ln_scale', { shape: [this.numGates * this.hiddenSize], init: constantInit(1) });
  }

  protected override projected(products: Tensor): Tensor {
    return products;
  }

  protected override gatesOf(projected: Tensor, products: Tensor): Tensor[] {
    const gates = tf.add(projected, products);
    const [batch, size] = gates.shape as [number, number];
    const each = tf.reshape(gates, [batch, this.numGates, this.hiddenSize]);
    const unit = ops.layerNorm(each, null, null, { epsilon: this.hp.layerNormEpsilon });
    const scaled = tf.mul(tf.reshape(unit, [batch, size]), this.theta.ln_scale);
    return tf.split(this.biased(scaled), this.numGates, -1);
  }
}

/**
 * An LSTM whose input and forget gates are coupled (Greff et al., 2017): `[i f o] = [x m] wm + b`,
 * `c' = σ(f) c + (1 - σ(f)) tanh(i)`.
 */
export class CifgLstmCellSimple extends LstmCellSimple {
  protected override get numGates(): number {
    return 3;
  }

  protected override setup(): void {
    const { forgetGateBias } = this.hp;
    if (forgetGateBias !== 0)
      throw this.error(
        `forgetGateBias: expected 0, for the forget gate is the input gate too, got ${forgetGateBias}.`,
      );
    super.setup();
  }

  protected override nextCell([i, f, o]: readonly Tensor[], c: Tensor): NextCell {
    const input = tf.tanh(i!);
    return { cell: tf.add(input, tf.mul(tf.sigmoid(f!), tf.sub(c, input))), outputGate: tf.sigmoid(o!) };
  }
}
