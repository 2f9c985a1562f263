/** @file Activation functions by the names that a config.json gives them. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import { type BaseActivation, GELU, QuickGELU, ReLU, SiLU } from '../../layers/index.js';

const activations = {
  gelu: () => GELU.config({ approximate: false }),
  gelu_new: () => GELU.config(),
  gelu_pytorch_tanh: () => GELU.config(),
  quick_gelu: () => QuickGELU.config(),
  relu: () => ReLU.config(),
  silu: () => SiLU.config(),
  swish: () => SiLU.config(),
} satisfies Record<string, () => Config<BaseActivation>>;

type ActivationName = keyof typeof activations;

/** A field that names an activation function. */
export const activationSetting = (otherwise: ActivationName) =>
  z.enum(Object.keys(activations) as [ActivationName, ...ActivationName[]]).default(otherwise);

/** The activation function of a name. */
export const activationOf = (name: ActivationName): Config<BaseActivation> => activations[name]();
