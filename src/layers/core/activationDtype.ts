/** @file Tag of the type that layers compute in. */
import { defineTag } from '../../hparams/index.js';

/** Tag of the type in which a layer multiplies, `fpropDtype`. */
export const ActivationDtype = defineTag<'float32' | 'bfloat16'>(
  'ActivationDtype',
  'Types that layers compute in: those of the operands of their matrix products.',
);
