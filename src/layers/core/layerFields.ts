/** @file Fields of all layers, and the tag of the type that they compute in. */
import { z } from 'zod';
import { DEFAULT_PRECISION, PRECISION_NAMES, type Precision } from '../../compiler/index.js';
import { defineTag, instance, sub, tagged } from '../../hparams/index.js';
import { Quantization } from './quantization.js';
import { defaultParamsInit, WeightInit } from './weightInit.js';

/** Tag of the type in which a layer multiplies, `fpropDtype`. */
export const ActivationDtype = defineTag<Precision>(
  'ActivationDtype',
  'Types that layers compute in: those of the operands of their matrix products.',
);

/** For each dimension of a tensor the axis, or axes, of the mesh of devices that it is split over; null for none. */
export const splitDims = z.array(z.union([z.string().min(1), z.array(z.string().min(1))]).nullable());
export type SplitDims = z.infer<typeof splitDims>;

const splitDimsByName = z.record(z.string().min(1), splitDims).default({});

/** The fields. */
export const layerFields = {
  name: z.string().default('').describe('A name for people; paths come from the names that parents give.'),
  dtype: z
    .enum(PRECISION_NAMES)
    .default(DEFAULT_PRECISION)
    .describe('Type of the variables in memory; bfloat16 is for those that training leaves alone.'),
  fpropDtype: tagged(
    z
      .enum(PRECISION_NAMES)
      .nullable()
      .default(null)
      .describe(
        "Type that matrix products round their operands to, to nearest even; their sums are float32. null: the parent's, else dtype.",
      ),
    ActivationDtype,
  ),
  paramsInit: instance(WeightInit, defaultParamsInit).describe(
    "Initial values; the default gives way to the parent's.",
  ),
  skipLpRegularization: z
    .boolean()
    .nullable()
    .default(null)
    .describe("Whether weight decay and the like leave all variables alone; null: the parent's, else no."),
  quantization: sub(Quantization, null)
    .nullable()
    .default(null)
    .describe("How weights of products and tables are held in few bits; null: as the parent's, else not."),
  sharedWeightLayerId: z
    .string()
    .regex(/^[A-Za-z]\w*$/)
    .nullable()
    .default(null)
    .describe('Layers of one model with the same id are one layer.'),
  weightSplitDimsMapping: splitDimsByName.describe(
    "Axes of the task's mesh that variables are split over, by their names; `wt` is for those that are not named. What is " +
      'absent is as in the parent, where the rank fits.',
  ),
  activationSplitDimsMapping: splitDimsByName.describe(
    "Axes of the task's mesh that what the layer computes is split over: `out`, and other names that it gives to `shard`. " +
      'What is absent is as in the parent, where the rank fits.',
  ),
};
