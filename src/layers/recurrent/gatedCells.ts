/** @file Cells with gates and without a cell of their own: GRU and SRU. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { BaseRnnCell, type Tensors } from './cells.js';
import type { State } from './recurrence.js';

/**
 * A gated recurrent unit (Cho et al., 2014): `r, z = σ(x W + h U + b)`, `h' = z h + (1 - z) n`. The candidate reads the state
 * either behind its product, `n = tanh(x W + b + r (h U + c))`, as PyTorch and Keras have it, or before,
 * `n = tanh(x W + b + (r h) U)`, as Trax has it. Gates stand in the order r, z, n.
 */
export class GruCell extends BaseRnnCell.with({
  resetAfter: z
    .boolean()
    .default(true)
    .describe(
      "Whether the reset gate is applied behind the state's product, which then is one for all gates.",
    ),
}) {
  declare readonly theta: Theta<'w' | 'u' | 'b' | 'c'>;

  protected override setup(): void {
    const { outputSize } = this;
    this.createVariable('w', { shape: [this.hp.numInputNodes, 3 * outputSize] });
    this.createVariable('u', { shape: [outputSize, 3 * outputSize] });
    this.createVariable('b', { shape: [3 * outputSize], init: constantInit(0) });
    if (this.hp.resetAfter) this.createVariable('c', { shape: [outputSize], init: constantInit(0) });
  }

  override stateShapes() {
    return { h: [this.outputSize] };
  }

  override getOutput(state: State): Tensor {
    return state.h!;
  }

  override projectInput(inputs: Tensor): Tensors {
    return { gates: tf.add(tf.matMul(inputs, this.theta.w), this.theta.b) };
  }

  override fpropWithProjectedInputs({ h }: State, { gates }: Tensors): State {
    const { u } = this.theta;
    const size = this.outputSize;
    const [r, z, n] = tf.split(gates!, 3, -1) as [Tensor, Tensor, Tensor];
    const part = (begin: number, parts: number): Tensor =>
      tf.slice(u, [0, begin * size], [size, parts * size]);
    if (this.hp.resetAfter) {
      const [hr, hz, hn] = tf.split(tf.matMul(h!, u), 3, -1) as [Tensor, Tensor, Tensor];
      const reset = tf.sigmoid(tf.add(r, hr));
      const candidate = tf.tanh(tf.add(n, tf.mul(reset, tf.add(hn, this.theta.c))));
      return { h: mixed(tf.sigmoid(tf.add(z, hz)), h!, candidate) };
    }
    const [hr, hz] = tf.split(tf.matMul(h!, part(0, 2)), 2, -1) as [Tensor, Tensor];
    const reset = tf.sigmoid(tf.add(r, hr));
    const candidate = tf.tanh(tf.add(n, tf.matMul(tf.mul(reset, h!), part(2, 1))));
    return { h: mixed(tf.sigmoid(tf.add(z, hz)), h!, candidate) };
  }
}

/** `share` of `a`, and the rest of `b`. */
const mixed = (share: Tensor, a: Tensor, b: Tensor): Tensor => tf.add(b, tf.mul(share, tf.sub(a, b)));

/**
 * A simple recurrent unit (Lei et al., 2018), whose steps multiply no matrices: `[y f r] = x w`,
 * `f = σ(f + v_f c + b_f)`, `r = σ(r + v_r c + b_r)`, `c' = f c + (1 - f) y`, output `r c' + (1 - r) x`. Where depths differ,
 * a fourth part of the product stands for x.
 */
export class SruCell extends BaseRnnCell {
  declare readonly theta: Theta<'w' | 'v' | 'b'>;

  /** Products of the input. */
  get #parts(): number {
    return this.hp.numInputNodes === this.outputSize ? 3 : 4;
  }

  protected override setup(): void {
    const { outputSize } = this;
    this.createVariable('w', { shape: [this.hp.numInputNodes, this.#parts * outputSize] });
    this.createVariable('v', { shape: [2 * outputSize], init: constantInit(0) });
    this.createVariable('b', { shape: [2 * outputSize], init: constantInit(0) });
  }

  override stateShapes() {
    return { c: [this.outputSize], output: [this.outputSize] };
  }

  override getOutput(state: State): Tensor {
    return state.output!;
  }

  override projectInput(inputs: Tensor): Tensors {
    const [y, f, r, x = inputs] = tf.split(tf.matMul(inputs, this.theta.w), this.#parts, -1);
    const [bf, br] = tf.split(this.theta.b, 2) as [Tensor, Tensor];
    return { y: y!, f: tf.add(f!, bf), r: tf.add(r!, br), x };
  }

  override fpropWithProjectedInputs({ c }: State, { y, f, r, x }: Tensors): State {
    const [vf, vr] = tf.split(this.theta.v, 2) as [Tensor, Tensor];
    const forget = tf.sigmoid(tf.add(f!, tf.mul(vf, c!)));
    const carry = tf.sigmoid(tf.add(r!, tf.mul(vr, c!)));
    const next = mixed(forget, c!, y!);
    return { c: next, output: mixed(carry, next, x!) };
  }
}
