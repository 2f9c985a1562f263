/** @file Declarations of variables: shape, initial values, and the collections that learners respect. */
import type { DType, Tensor } from '../../compiler/index.js';
import type { WeightInit, WeightShape } from './weightInit.js';

/** Marks of a variable that learners respect (Pax's WeightHParamsCollection). */
export const WeightCollection = {
  /** No gradient is taken. A forward pass in training may replace it: `updateVar`. */
  NON_TRAINABLE: 'NON_TRAINABLE',
  /** L1, L2 and weight decay leave it alone. */
  SKIP_LP_REGULARIZATION: 'SKIP_LP_REGULARIZATION',
} as const;
export type WeightCollection = (typeof WeightCollection)[keyof typeof WeightCollection];

/** Declaration of a variable (Pax's WeightHParams). */
export interface WeightHParams extends WeightShape {
  /** Initial values; the layer's `paramsInit` where absent. */
  readonly init?: WeightInit | undefined;
  /** Element type; float32 where absent. */
  readonly dtype?: DType | undefined;
  readonly collections?: readonly WeightCollection[] | undefined;
}

/** A declared variable, completed by its layer's defaults. */
export interface Variable extends WeightShape {
  /** Its place in the model: `lm/transformer/x_layers_0/ff_layer/ffn_layer1/linear/w`. */
  readonly path: string;
  readonly init: WeightInit;
  readonly dtype: DType;
  readonly collections: readonly WeightCollection[];
}

/** Values of a layer's variables by name; to be read within `runInContext` only. */
export type Theta<K extends string = string> = Readonly<Record<K, Tensor>>;
