/** @file Initial values of weights: Pax's distributions and scaling rules, drawn counter-based on the host. */
import { z } from 'zod';
import { type Distribution, type PrngKey, randomBits } from '../../compiler/index.js';
import { build, Configurable, registerAlias } from '../../hparams/index.js';
import { inverseErf } from './inverseErf.js';

/** Shape of a weight, with its input and output axes. */
export interface WeightShape {
  readonly shape: readonly number[];
  /** Axes whose sizes multiply to the fan-in; negative ones count from the end. */
  readonly fanInAxes?: readonly number[] | undefined;
  /** Axes whose sizes multiply to the fan-out. */
  readonly fanOutAxes?: readonly number[] | undefined;
}

const product = (sizes: readonly number[]): number => sizes.reduce((a, b) => a * b, 1);

/**
 * Fan-in and fan-out of a weight (praxis base_layer.get_fan_in_fan_out): for a vector, its size is both; a tensor of
 * rank 2 or more is [..., in, out] with the leading axes as receptive field, unless the axes are named.
 *
 * @returns null for a scalar.
 */
export function fans(weight: WeightShape): { fanIn: number; fanOut: number } | null {
  const { shape, fanInAxes, fanOutAxes } = weight;
  if (shape.length === 0) return null;
  if (fanInAxes && fanOutAxes) {
    const sizes = (axes: readonly number[]): number => product(axes.map((axis) => shape.at(axis)!));
    return { fanIn: sizes(fanInAxes), fanOut: sizes(fanOutAxes) };
  }
  if (shape.length === 1) return { fanIn: shape[0]!, fanOut: shape[0]! };
  const receptiveField = product(shape.slice(0, -2));
  return { fanIn: shape.at(-2)! * receptiveField, fanOut: shape.at(-1)! * receptiveField };
}

/** Base of the initialisers: a formula for a weight's initial values, times `scale`. */
export abstract class WeightInit extends Configurable.with({
  scale: z.number().default(1).describe('Factor on the values that the formula gives.'),
}) {
  static override readonly isAbstract = true;
  /** Initial values of a weight, row-major, or their distribution; they depend only on the key. */
  abstract draw(key: PrngKey, weight: WeightShape): Float32Array | Distribution;

  /** The width of the distribution: its standard deviation, before truncation, or its limit; null where it has none. */
  scaleOf(_weight: WeightShape): number | null {
    return null;
  }

  /** Shape-dependent factor of the distribution's width: its standard deviation (before truncation) or limit. */
  protected factor(_weight: WeightShape): number {
    return 1;
  }
}

/** All values equal `scale`. */
export class Constant extends WeightInit {
  override draw(): Distribution {
    return { kind: 'constant', scale: this.hp.scale };
  }
}

/** N(0, scale^2). */
export class Gaussian extends WeightInit {
  override draw(_key: PrngKey, weight: WeightShape): Distribution {
    return { kind: 'normal', scale: this.scaleOf(weight) };
  }

  override scaleOf(weight: WeightShape): number {
    return this.hp.scale * this.factor(weight);
  }
}

/** U(-scale, scale). */
export class Uniform extends WeightInit {
  override draw(_key: PrngKey, weight: WeightShape): Distribution {
    return { kind: 'uniform', scale: this.scaleOf(weight) };
  }

  override scaleOf(weight: WeightShape): number {
    return this.hp.scale * this.factor(weight);
  }
}

/** scale times a standard normal number truncated at two standard deviations, by inverse transform sampling. */
export class TruncatedGaussian extends WeightInit {
  override scaleOf(weight: WeightShape): number {
    return this.hp.scale * this.factor(weight);
  }

  override draw(key: PrngKey, weight: WeightShape): Float32Array {
    const scale = this.scaleOf(weight);
    const count = product(weight.shape);
    const bits = randomBits(key, count);
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const u = (bits[i]! + 0.5) * 2 ** -32;
      values[i] = scale * Math.SQRT2 * inverseErf((2 * u - 1) * ERF_SQRT2);
    }
    return values;
  }
}
/** erf(sqrt(2)): the probability that a normal number lies within two standard deviations. */
const ERF_SQRT2 = 0.9544997361036416;

const rsqrtDim = (weight: WeightShape): number => 1 / Math.sqrt(weight.shape[0] ?? 1);
const rsqrtFanIn = (weight: WeightShape): number => 1 / Math.sqrt(fans(weight)?.fanIn ?? 1);
const rsqrtFanOut = (weight: WeightShape): number => 1 / Math.sqrt(fans(weight)?.fanOut ?? 1);
/** sqrt(gain / (fanIn + fanOut)), and 1 for a scalar. */
const rsqrtFanSum = (weight: WeightShape, gain: number): number => {
  const both = fans(weight);
  return both ? Math.sqrt(gain / (both.fanIn + both.fanOut)) : 1;
};

/** N(0, scale^2 / first dimension). */
export class GaussianSqrtDim extends Gaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtDim(weight);
  }
}
/** N(0, scale^2 / fan-in). */
export class GaussianSqrtFanIn extends Gaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanIn(weight);
  }
}
/** N(0, scale^2 / fan-out). */
export class GaussianSqrtFanOut extends Gaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanOut(weight);
  }
}
/** N(0, 2 scale^2 / (fan-in + fan-out)). */
export class GaussianSqrtFanAvg extends Gaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanSum(weight, 2);
  }
}
/** U(-l, l) with l = scale / sqrt(first dimension). */
export class UniformSqrtDim extends Uniform {
  protected override factor(weight: WeightShape): number {
    return rsqrtDim(weight);
  }
}
/** U(-l, l) with l = scale sqrt(6 / (fan-in + fan-out)). */
export class UniformSqrtFanAvg extends Uniform {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanSum(weight, 6);
  }
}
/** U(-l, l) with l = scale sqrt(3 / product of all dimensions but the last). */
export class UniformUnitScaling extends Uniform {
  protected override factor(weight: WeightShape): number {
    return Math.sqrt(3 / Math.max(1, product(weight.shape.slice(0, -1))));
  }
}
/** U(-l, l) with l = scale sqrt(6 / (fan-in + fan-out)) (Glorot and Bengio, 2010). */
export class Xavier extends Uniform {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanSum(weight, 6);
  }
}
/** Xavier, scaled for residual stacks by depth^(-1 / (2 layersPerResidualBlock)) (Fixup, Zhang et al., 2019). */
export class XavierWithFixupParams extends Xavier.with({
  depth: z.number().positive().default(1).describe('Residual blocks in the network.'),
  layersPerResidualBlock: z.number().positive().default(1).describe('Weights in a residual block.'),
}) {
  protected override factor(weight: WeightShape): number {
    return super.factor(weight) * this.hp.depth ** (-1 / (2 * this.hp.layersPerResidualBlock));
  }
}
/** TruncatedGaussian with scale / sqrt(first dimension). */
export class TruncatedGaussianSqrtDim extends TruncatedGaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtDim(weight);
  }
}
/** TruncatedGaussian with scale / sqrt(fan-in). */
export class TruncatedGaussianSqrtFanIn extends TruncatedGaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanIn(weight);
  }
}
/** TruncatedGaussian with scale / sqrt(fan-out). */
export class TruncatedGaussianSqrtFanOut extends TruncatedGaussian {
  protected override factor(weight: WeightShape): number {
    return rsqrtFanOut(weight);
  }
}

const DEFAULT_SCALE = 1.000001;

/** Pax's default: Xavier, with a scale that distinguishes it from an explicit Xavier. */
export const defaultParamsInit = () => Xavier.config({ scale: DEFAULT_SCALE });

/** Whether `init` is the default, so that a parent's choice applies. */
export function isDefaultParamsInit(init: WeightInit): boolean {
  return init instanceof Xavier && Math.abs(init.hp.scale - DEFAULT_SCALE) < 1e-7;
}

/** An initialiser with a constant value. */
export const constantInit = (scale: number): WeightInit => build(Constant.config({ scale }));

// In documents, the short name refers to the initialiser; learners have a schedule with this name.
registerAlias('Constant', Constant);
