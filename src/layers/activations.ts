/** @file Activation functions, each from a tensor of any shape to one of the same shape (praxis/layers/activations.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';

/** Base of the activation functions. */
export abstract class BaseActivation extends BaseLayer {
  static override readonly isAbstract = true;
  abstract fprop(inputs: Tensor): Tensor;
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
/** x sigmoid(x) (Elfwing et al., 2017). */
export class SiLU extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.mul(inputs, tf.sigmoid(inputs));
  }
}
/** x sigmoid(x): the name that Ramachandran et al. (2017) gave to SiLU. */
export class Swish extends SiLU {}
/** log(1 + e^x). */
export class Softplus extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    // log1p(e^-|x|) + max(x, 0) does not overflow.
    return tf.add(tf.relu(inputs), tf.log1p(tf.exp(tf.neg(tf.abs(inputs)))));
  }
}
/** e^x. */
export class Exp extends BaseActivation {
  override fprop(inputs: Tensor): Tensor {
    return tf.exp(inputs);
  }
}
