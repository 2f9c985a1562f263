/** @file Label smoothing as a field of a model, which its softmax takes (praxis/layers/models.py). */
import { z } from 'zod';
import { type Config, copyWith } from '../hparams/index.js';
import type { BaseSoftmax } from '../layers/index.js';

/** The field. @param network the field of the network that has the softmax */
export const labelSmoothingField = (network: string) =>
  z
    .number()
    .min(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe(`The softmax's labelSmoothingProb; null: as ${network} has it.`);

/** A softmax with the smoothing of a model, where the model sets one. */
export const smoothed = (softmaxTpl: Config<BaseSoftmax>, labelSmoothingProb: number | null) =>
  labelSmoothingProb === null ? softmaxTpl : copyWith(softmaxTpl, { labelSmoothingProb });
