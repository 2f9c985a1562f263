/** @file Activation functions, each from a tensor of any shape to one of the same shape (praxis/layers/activations.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { builds, type Config, type ConfigBuilding, classOf, template } from '../hparams/index.js';
import { BaseLayer } from './core/base.js';

/** What activates without being a layer; functions have an `apply`, too. */
type ActivationFunction =
  | ((inputs: Tensor) => Tensor)
  | { call(inputs: Tensor): Tensor; readonly apply?: never };

/** What a config of an activation builds. */
type Activation = ActivationFunction | (BaseLayer & { fprop(inputs: Tensor): Tensor });

const isFunction = (made: unknown): boolean =>
  typeof made === 'function' || (hasMethod(made, 'call') && !(made instanceof BaseLayer));

const hasMethod = (owner: unknown, name: string): boolean =>
  typeof (owner as Record<string, unknown> | null | undefined)?.[name] === 'function';

const functions = 'a function of a tensor or an object with call(x)';

/** A field of an activation, which its owner creates as the child that `activationLayer` describes. */
export const activationField = (makeDefault: () => Config<BaseActivation>) =>
  template<Activation>(
    `${functions}, or a layer with fprop(x)`,
    (cls) => {
      if (cls === undefined) return true;
      return hasMethod(cls.prototype, cls.prototype instanceof BaseLayer ? 'fprop' : 'call');
    },
    makeDefault,
  ).describe('The activation function.');

/** The template of a layer that computes what `activation`, the value of an `activationField`, builds. */
export function activationLayer(activation: ConfigBuilding<Activation>): Config<BaseActivation> {
  return classOf(activation).prototype instanceof BaseLayer
    ? (activation as Config<BaseActivation>)
    : FunctionActivation.config({ activation: activation as ConfigBuilding<ActivationFunction> });
}

/** Base of the activation functions. */
export abstract class BaseActivation extends BaseLayer {
  static override readonly isAbstract = true;
  abstract fprop(inputs: Tensor): Tensor;
}

/** A function of one's own as a layer. */
class FunctionActivation extends BaseActivation.with({
  activation: builds<ActivationFunction>(functions, isFunction).describe('The function.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    const { activation } = this.hp;
    return typeof activation === 'function' ? activation(inputs) : activation.call(inputs);
  }
}

/** x. */
export class Identity extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return inputs;
  }
}

/** max(x, 0). */
export class ReLU extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.relu(inputs);
  }
}

/** min(max(x, 0), 6). */
export class ReLU6 extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.minimum(tf.relu(inputs), 6);
  }
}

/** max(x, 0)^2 (Primer, So et al., 2021). */
export class SquaredReLU extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.square(tf.relu(inputs));
  }
}

/** max(x, 0)^3 (praxis/layers/activations.py). */
export class CubedReLU extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    const positive = tf.relu(inputs);
    return tf.mul(positive, tf.square(positive));
  }
}

/** x where positive, epsilon (sin x - cos x) elsewhere (Rodrigues, 2018). */
export class SineReLU extends BaseActivation.with({
  epsilon: z.number().default(0.0025).describe('Size of the waves of negative inputs.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    const waves = tf.mul(tf.sub(tf.sin(inputs), tf.cos(inputs)), this.hp.epsilon);
    return tf.where(tf.greater(inputs, 0), inputs, waves);
  }
}

/** x where positive, negativeSlope x elsewhere. */
export class LeakyReLU extends BaseActivation.with({
  negativeSlope: z.number().default(0.01).describe('Slope for negative inputs.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    const { negativeSlope } = this.hp;
    return tf.sub(tf.relu(inputs), tf.mul(tf.relu(tf.neg(inputs)), negativeSlope));
  }
}

/** x where positive, alpha (e^x - 1) elsewhere (Clevert et al., 2016). */
export class ELU extends BaseActivation.with({
  alpha: z.number().default(1).describe('Minus the limit for very negative inputs.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    const negative = tf.mul(tf.expm1(tf.minimum(inputs, 0)), this.hp.alpha);
    return tf.add(tf.relu(inputs), negative);
  }
}

/** 1 / (1 + e^-x). */
export class Sigmoid extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.sigmoid(inputs);
  }
}

/** The hyperbolic tangent. */
export class Tanh extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.tanh(inputs);
  }
}

/** x times the normal distribution function of x (Hendrycks and Gimpel, 2016). */
export class GELU extends BaseActivation.with({
  approximate: z.boolean().default(true).describe('The tanh formula in place of the error function.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    return ops.gelu(inputs, { approximate: this.hp.approximate });
  }
}

/** x sigmoid(1.702 x), which is near the exact GELU (Hendrycks and Gimpel, 2016). */
export class QuickGELU extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.mul(inputs, tf.sigmoid(tf.mul(inputs, 1.702)));
  }
}

/** x sigmoid(x). */
export const silu = (x: Tensor): Tensor => tf.mul(x, tf.sigmoid(x));

/** log(1 + e^x) as log1p(e^-|x|) + max(x, 0), which does not overflow. */
export const softplus = (x: Tensor): Tensor => tf.add(tf.relu(x), tf.log1p(tf.exp(tf.neg(tf.abs(x)))));

/** x sigmoid(x) (Elfwing et al., 2017). */
export class SiLU extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return silu(inputs);
  }
}

/** x sigmoid(x): the name that Ramachandran et al. (2017) gave to SiLU. */
export class Swish extends SiLU {}
/** x sigmoid(alpha x) of x up to `limit`: the gate of gpt-oss's experts (OpenAI, 2025). */
export class ClampedSwish extends BaseActivation.with({
  alpha: z.number().positive().default(1.702).describe('Slope of the sigmoid.'),
  limit: z.number().positive().default(7).describe('What larger inputs count as.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    const x = tf.minimum(inputs, this.hp.limit);
    return tf.mul(x, tf.sigmoid(tf.mul(x, this.hp.alpha)));
  }
}

/** x between -limit and limit, plus `offset`: what gpt-oss's gates multiply (OpenAI, 2025). */
export class ClampedLinear extends BaseActivation.with({
  limit: z.number().positive().default(7).describe('Largest magnitude of inputs; others count as it.'),
  offset: z.number().default(1).describe('What is added.'),
}) {
  override fprop(inputs: Tensor): Tensor {
    const { limit, offset } = this.hp;
    return tf.add(tf.maximum(tf.minimum(inputs, limit), -limit), offset);
  }
}

/** log(1 + e^x). */
export class Softplus extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return softplus(inputs);
  }
}

/** e^x. */
export class Exp extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.exp(inputs);
  }
}
