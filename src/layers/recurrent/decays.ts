/** @file Initial values of decays and step sizes of recurrent mixers. */
import { z } from 'zod';
import type { PrngKey } from '../../compiler/index.js';
import { randomBits } from '../../compiler/index.js';
import { WeightInit, type WeightShape } from '../core/weightInit.js';

/** Uniform numbers in (0, 1) for a weight's elements. */
function uniforms(key: PrngKey, { shape }: WeightShape): Float32Array {
  const bits = randomBits(
    key,
    shape.reduce((a, b) => a * b, 1),
  );
  return Float32Array.from(bits, (word) => (word + 0.5) * 2 ** -32);
}

/** log(1), log(2) … log(n) along the last axis, times scale: the decays of S4D-Real (Gu et al., 2022), as in Mamba. */
export class LogArange extends WeightInit {
  override draw(_key: PrngKey, { shape }: WeightShape): Float32Array {
    const size = shape.reduce((a, b) => a * b, 1);
    return Float32Array.from({ length: size }, (_, i) => this.hp.scale * Math.log((i % shape.at(-1)!) + 1));
  }
}

/** log(u) for u uniform between `low` and `high`, times scale. */
export class LogUniform extends WeightInit.with({
  low: z.number().positive().default(1).describe('Least u.'),
  high: z.number().positive().default(16).describe('Largest u.'),
}) {
  override draw(key: PrngKey, weight: WeightShape): Float32Array {
    const { scale, low, high } = this.hp;
    return uniforms(key, weight).map((u) => scale * Math.log(low + (high - low) * u));
  }
}

/** x with softplus(x) log-uniform between `low` and `high`: biases of step sizes (Gu and Dao, 2023), times scale. */
export class InverseSoftplus extends WeightInit.with({
  low: z.number().positive().default(1e-3).describe('Least step.'),
  high: z.number().positive().default(0.1).describe('Largest step.'),
}) {
  override draw(key: PrngKey, weight: WeightShape): Float32Array {
    const { scale, low, high } = this.hp;
    return uniforms(key, weight).map((u) => {
      const step = low * (high / low) ** u;
      return scale * (step + Math.log(-Math.expm1(-step)));
    });
  }
}

/**
 * x with `e^(-softplus(x) power)` squared uniform between `low²` and `high²`: eigenvalues in a ring, of which the logarithm's
 * root is trained (Orvieto et al., 2023; Griffin, De et al., 2024), times scale.
 */
export class RingDecay extends WeightInit.with({
  low: z.number().gt(0).lt(1).default(0.9).describe('Least decay.'),
  high: z.number().gt(0).lt(1).default(0.999).describe('Largest decay.'),
  power: z.number().positive().default(8).describe('Power of the decay at a gate of 1.'),
}) {
  override draw(key: PrngKey, weight: WeightShape): Float32Array {
    const { scale, low, high, power } = this.hp;
    return uniforms(key, weight).map((u) => {
      const rate = (-0.5 * Math.log(low ** 2 + (high ** 2 - low ** 2) * u)) / power;
      return scale * Math.log(Math.expm1(rate));
    });
  }
}
