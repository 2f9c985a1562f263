/** @file Layers of src/layers in architectures: peers/torch_layers.py builds the same, with parameters in the same order. */
import { currentPrecision, type Tensor, tf } from '../src/compiler/index.js';
import { build, type Config, deepCopyWith } from '../src/hparams/index.js';
import {
  type BaseLayer,
  Conformer,
  FRnn,
  GatedDeltaNet,
  GruCell,
  LstmCellSimple,
  listVariables,
  Mamba,
  resNet,
  runInContext,
  StackFrnn,
  UNet,
  type Variable,
  WeightCollection,
} from '../src/layers/index.js';

/**
 * Makes the next parameter: of a variance of 1 / fan around a number. The peer asks for the same in the same order, and the
 * position among all determines the values.
 */
export type Parameters = (shape: readonly number[], fan: number, around?: number) => Tensor;

/** A layer of the library with its options. Recurrences keep the depth of their inputs. */
export type LibraryLayer =
  | { readonly kind: 'stackFrnn'; readonly cell: keyof typeof cells; readonly layers: number }
  | { readonly kind: 'conformer'; readonly heads: number; readonly size: number }
  | { readonly kind: 'mamba' }
  | { readonly kind: 'deltaNet'; readonly heads: number; readonly headDim: number }
  | { readonly kind: 'resNet18' }
  | { readonly kind: 'uNet'; readonly channels: readonly number[] };

const cells = { lstm: () => LstmCellSimple.config(), gru: () => GruCell.config() };

type Called = BaseLayer & { fprop(x: Tensor): Tensor };

/** Configs by kind, for inputs of this depth. */
const configs: {
  readonly [K in LibraryLayer['kind']]: (
    layer: Extract<LibraryLayer, { kind: K }>,
    depth: number,
  ) => Config<Called>;
} = {
  stackFrnn: ({ cell, layers }, inputDim) =>
    StackFrnn.config({ inputDim, numLayers: layers, frnnTpl: FRnn.config({ cellTpl: cells[cell]() }) }),
  conformer: ({ heads, size }, modelDims) =>
    Conformer.config({ modelDims, attenNumHeads: heads, kernelSize: size }),
  mamba: (_, inputDim) => Mamba.config({ inputDim }),
  deltaNet: ({ heads, headDim }, inputDim) =>
    GatedDeltaNet.config({
      ...{ inputDim, numKeyHeads: heads, numValueHeads: heads },
      ...{ keyHeadDim: headDim, valueHeadDim: headDim },
    }),
  resNet18: () => resNet(18),
  uNet: ({ channels }, inputDim) => UNet.config({ inputDim, channels: [...channels] }),
};

/** Biases and scales are up to 0.1 away from 0 and 1, so that losses tell whether they are in the right places. */
export const SMALL = 300;

/** The numbers that an element of the output is a sum over. */
function fanOf({ path, shape }: Variable): number {
  if (shape.length < 2 || path.endsWith('/b')) return SMALL;
  // Projections of attention are [D, N, H].
  return shape.length === 3 ? shape[0]! : shape.slice(0, -1).reduce((a, b) => a * b, 1);
}

/** The layer's outputs, in training and in the current precision; its parameters are those that it lists, in that order. */
export function callLibraryLayer(layer: LibraryLayer, x: Tensor, parameter: Parameters): Tensor {
  const config = (configs[layer.kind] as any)(layer, x.shape.at(-1)!) as Config<Called>;
  const made = build(deepCopyWith(config, { fpropDtype: currentPrecision() }));
  const theta = Object.fromEntries(
    listVariables(made).map((variable) => [
      variable.path,
      variable.collections.includes(WeightCollection.NON_TRAINABLE)
        ? tf.zeros([...variable.shape])
        : parameter(variable.shape, fanOf(variable)),
    ]),
  );
  return runInContext({ theta }, () => made.fprop(x));
}
