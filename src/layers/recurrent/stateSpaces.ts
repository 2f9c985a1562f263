/** @file State spaces whose decays stay as they began: S4D and S5 (praxis/layers/ssm.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { build } from '../../hparams/index.js';
import { constantInit, Gaussian, type WeightInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { HIPPO_TYPES, hippoFrequencies } from './hippo.js';
import { BaseRecurrence, type State, type Steps, scanTime, type Unrolled } from './recurrence.js';

const fields = {
  nheads: z
    .int()
    .positive()
    .describe('Depth of the state: eigenvalues of a channel, or of all together in S5.'),
  stepSize: z.number().positive().default(0.01).describe('Step of the discretisation; it is not trained.'),
  hippoType: z
    .enum(HIPPO_TYPES)
    .default('ss4d-1d')
    .describe('What the eigenvalues, which are not trained, are.'),
};

/** A complex number for each eigenvalue a of the state, as real and imaginary parts [nheads]. */
interface Discrete {
  /** e^(step a). */
  readonly decay: readonly [Tensor, Tensor];
  /** (e^(step a) - 1) / a: what an input adds to the state. */
  readonly input: readonly [Tensor, Tensor];
}

function discretized(nheads: number, stepSize: number, hippoType: (typeof HIPPO_TYPES)[number]): Discrete {
  const all = [...hippoFrequencies(nheads, hippoType)].map((frequency) => {
    const magnitude = Math.exp(-stepSize / 2);
    const [re, im] = [magnitude * Math.cos(stepSize * frequency), magnitude * Math.sin(stepSize * frequency)];
    const square = 0.25 + frequency ** 2;
    // (decay - 1) times the conjugate of a = -1/2 + i frequency, over its square.
    const input = [
      (-(re - 1) / 2 + im * frequency) / square,
      (-im / 2 - (re - 1) * frequency) / square,
    ] as const;
    return { re, im, input };
  });
  const vector = (values: number[]): Tensor => tf.tensor1d(values, 'float32');
  return {
    decay: [vector(all.map(({ re }) => re)), vector(all.map(({ im }) => im))],
    input: [vector(all.map(({ input }) => input[0])), vector(all.map(({ input }) => input[1]))],
  };
}

const normal = (variance: number): WeightInit => build(Gaussian.config({ scale: Math.sqrt(variance) }));

/** `x' = decay x + u` in complex numbers. */
function nextState(
  [re, im]: Discrete['decay'],
  state: State,
  u: readonly [Tensor, Tensor],
): { re: Tensor; im: Tensor } {
  return {
    re: tf.add(tf.sub(tf.mul(re, state.re!), tf.mul(im, state.im!)), u[0]),
    im: tf.add(tf.add(tf.mul(re, state.im!), tf.mul(im, state.re!)), u[1]),
  };
}

/**
 * S4D (Gu et al., 2022): for each channel, `x' = e^(Δ a) x + (e^(Δ a) - 1) / a u` with `nheads` complex eigenvalues a, and
 * `y = Re(C x') + D u`. C and D are trained. Pax computes whole sequences by a Fourier transform, without packing.
 */
export class SSM extends BaseRecurrence.with(fields) {
  declare readonly theta: Theta<'C_re' | 'C_im' | 'D'>;

  protected override setup(): void {
    const { inputDim, nheads } = this.hp;
    this.createVariable('D', { shape: [1, inputDim], init: constantInit(1) });
    for (const name of ['C_re', 'C_im'])
      this.createVariable(name, { shape: [nheads, inputDim], init: normal(0.5) });
  }

  protected override stateShapes() {
    const shape = [this.hp.nheads, this.hp.inputDim];
    return { re: shape, im: shape };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const { nheads, stepSize, hippoType } = this.hp;
    const { C_re, C_im, D } = this.theta;
    const columns = (pair: Discrete['decay']) =>
      pair.map((x) => tf.reshape(x, [nheads, 1])) as unknown as Discrete['decay'];
    const discrete = discretized(nheads, stepSize, hippoType);
    const [decay, input] = [columns(discrete.decay), columns(discrete.input)];
    const turn = (before: State, { u }: State): [State, Tensor] => {
      const row = tf.expandDims(u!, 1);
      const next = nextState(decay, before, [tf.mul(input[0], row), tf.mul(input[1], row)]);
      return [next, tf.sum(tf.sub(tf.mul(C_re, next.re), tf.mul(C_im, next.im)), 1)];
    };
    const scanned = scanTime(turn, state, { u: inputs }, steps);
    return { ...scanned, outputs: tf.add(scanned.outputs, tf.mul(inputs, D)) };
  }
}

/**
 * S5 (Smith et al., 2023): one state for all channels, `x' = e^(Δ a) x + (e^(Δ a) - 1) / a (B u)`, `y = Re(C x') + D u`; the
 * products with B and C are of all tokens at once. Pax declares B and computes with ones in its place.
 */
export class S5 extends BaseRecurrence.with(fields) {
  declare readonly theta: Theta<'B_re' | 'B_im' | 'C_re' | 'C_im' | 'D'>;

  protected override setup(): void {
    const { inputDim, nheads } = this.hp;
    this.createVariable('D', { shape: [inputDim], init: constantInit(1) });
    for (const name of ['B_re', 'B_im'])
      this.createVariable(name, { shape: [nheads, inputDim], init: normal(1 / inputDim) });
    for (const name of ['C_re', 'C_im'])
      this.createVariable(name, { shape: [inputDim, nheads], init: normal(1 / nheads) });
  }

  protected override stateShapes() {
    return { re: [this.hp.nheads], im: [this.hp.nheads] };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const { nheads, stepSize, hippoType } = this.hp;
    const { B_re, B_im, C_re, C_im, D } = this.theta;
    const { decay, input } = discretized(nheads, stepSize, hippoType);
    const [re, im] = [tf.matMul(inputs, B_re, false, true), tf.matMul(inputs, B_im, false, true)];
    const entering = {
      re: tf.sub(tf.mul(input[0], re), tf.mul(input[1], im)),
      im: tf.add(tf.mul(input[0], im), tf.mul(input[1], re)),
    };
    const turn = (before: State, at: State): [State, Tensor] => {
      const next = nextState(decay, before, [at.re!, at.im!]);
      return [next, tf.concat([next.re, next.im], -1)];
    };
    const scanned = scanTime(turn, state, entering, steps);
    const C = tf.concat([C_re, tf.neg(C_im)], -1);
    return { ...scanned, outputs: tf.add(tf.matMul(scanned.outputs, C, false, true), tf.mul(inputs, D)) };
  }
}
