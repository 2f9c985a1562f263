/** @file Declarations of variables: shape, initial values, and the collections that learners respect. */
import {
  type DType,
  type NarrowType,
  operandStorage,
  type Precision,
  type Tensor,
} from '../../compiler/index.js';
import type { SplitDims } from './layerFields.js';
import type { WeightInit, WeightShape } from './weightInit.js';

/** Marks of a variable that control learners (Pax's WeightHParamsCollection). */
export const WeightCollection = {
  /** Excluded from gradients. A forward pass in training may replace it by `updateVar`. */
  NON_TRAINABLE: 'NON_TRAINABLE',
  /** Moved by nothing, as the variables of a teacher. */
  FROZEN: 'FROZEN',
  /** Replaced by sums: what each sub-batch of a step adds counts whole. Other values are averaged over sub-batches. */
  REQUIRES_SUM_SYNC: 'REQUIRES_SUM_SYNC',
  /** Excluded from L1, L2 and weight decay. */
  SKIP_LP_REGULARIZATION: 'SKIP_LP_REGULARIZATION',
  /** Held in float32 whatever the layer's `dtype` is, as statistics that small steps add to. */
  DISALLOW_BFLOAT16_CONVERSION: 'DISALLOW_BFLOAT16_CONVERSION',
} as const;
export type WeightCollection = (typeof WeightCollection)[keyof typeof WeightCollection];

/** Declaration of a variable (Pax's WeightHParams). */
export interface WeightHParams extends WeightShape {
  /** Initial values; defaults to the layer's `paramsInit`. */
  readonly init?: WeightInit | undefined;
  /** Element type in memory; defaults to the layer's `dtype`. */
  readonly dtype?: DType | Precision | undefined;
  /** Axes that the product by it sums over, of a weight that `quantization` may hold in few bits. */
  readonly contracting?: readonly number[] | undefined;
  readonly collections?: readonly WeightCollection[] | undefined;
}

/** How memory holds a variable: floats as the operands of products in this precision. */
export function heldAs(dtype: DType | Precision): Pick<Variable, 'dtype' | 'storage'> {
  if (dtype === 'int32' || dtype === 'bool') return { dtype };
  const storage = operandStorage(dtype);
  return { dtype: 'float32', ...(storage && { storage }) };
}

/** A declared variable, with its layer's defaults filled in. */
export interface Variable extends WeightShape {
  /** Its place in the model: `lm/transformer/x_layers_0/ff_layer/ffn_layer1/linear/w`. */
  readonly path: string;
  readonly init: WeightInit;
  readonly dtype: DType;
  /** How memory holds it; absent: as its dtype. */
  readonly storage?: NarrowType;
  readonly collections: readonly WeightCollection[];
  /** The first axes of its shape, along which layers that repeat theirs stack one variable for each repetition. */
  readonly repeatPrefix: readonly number[];
  /** Axes of the mesh of devices that its dimensions, without `repeatPrefix`, are split over; absent where the layers say none. */
  readonly splitDims?: SplitDims | undefined;
  /** Those that `repeatPrefix` is split over; absent where none is. */
  readonly prefixSplit?: SplitDims;
}

/** A variable of one repetition: the variable itself where no layer repeats it. Axes of its fans are those of this shape. */
export const oneRepetition = (variable: Variable): Variable =>
  variable.repeatPrefix.length === 0
    ? variable
    : { ...variable, shape: variable.shape.slice(variable.repeatPrefix.length), repeatPrefix: [] };

/** Values of a layer's variables by name; readable only within `runInContext`. */
export type Theta<K extends string = string> = Readonly<Record<K, Tensor>>;
