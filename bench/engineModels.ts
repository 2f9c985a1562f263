/** @file Models of bench:engines besides GPT: a perceptron, a convolutional net and an LSTM, each with a batch. */
import { z } from 'zod';
import type { HostTensor, Tensor } from '../src/compiler/index.js';
import { newHostArray, sizeOf, tf } from '../src/compiler/index.js';
import { type Config, sub } from '../src/hparams/index.js';
import type { Batch } from '../src/inputs/index.js';
import {
  BaseLayer,
  Conv2D,
  FeedForward,
  GlobalPooling,
  Identity,
  MLPBlock,
  Pooling,
  type Theta,
} from '../src/layers/index.js';
import { BaseModel, classificationMetrics, type TensorBatch } from '../src/models/index.js';

const CLASSES = 10;

/** Layers applied in turn, then a linear classifier. */
class Classifier extends BaseModel.with({
  layerTpls: z.array(sub(BaseLayer, null)).describe('Layers, each of one tensor.'),
  features: z.int().positive().describe('Depth of their output.'),
}) {
  #layers!: readonly (BaseLayer & { fprop(x: Tensor): Tensor })[];

  protected override setup(): void {
    const { layerTpls, features } = this.hp;
    const logits = FeedForward.config({
      inputDims: features,
      outputDims: CLASSES,
      activationTpl: Identity.config(),
    });
    this.#layers = [...layerTpls, logits].map(
      (layer, i) => this.createChild(`layer_${i}`, layer) as BaseLayer & { fprop(x: Tensor): Tensor },
    );
  }

  override computePredictions(batch: TensorBatch): Tensor {
    return this.#layers.reduce((x, layer) => layer.fprop(x), this.tensorOf(batch, 'inputs'));
  }

  override computeLoss = this.loss((logits, batch) => {
    const [labels, weights] = [this.tensorOf(batch, 'labels'), this.tensorOf(batch, 'weights')];
    return [classificationMetrics(logits, labels, weights), { logits }];
  });
}

/** Convolution and ReLU. */
class ConvRelu extends BaseLayer.with({ convTpl: sub(Conv2D).describe('The convolution.') }) {
  #conv!: Conv2D;

  protected override setup(): void {
    this.#conv = this.createChild('conv', this.hp.convTpl);
  }

  fprop(x: Tensor): Tensor {
    return tf.relu(this.#conv.fprop(x));
  }
}

/** LSTM over [B, T, D] to its last state [B, width]. */
class Lstm extends BaseLayer.with({
  width: z.int().positive().describe('Width of the state.'),
  inputDims: z.int().positive().describe('Depth of the input.'),
}) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { width, inputDims } = this.hp;
    this.createVariable('w', { shape: [inputDims + width, 4 * width] });
    this.createVariable('b', { shape: [4 * width] });
  }

  fprop(inputs: Tensor): Tensor {
    const [rows, steps] = inputs.shape as [number, number];
    const { w, b } = this.theta;
    let h: Tensor = tf.zeros([rows, this.hp.width]);
    let c: Tensor = h;
    for (let step = 0; step < steps; step++) {
      const x = tf.reshape(tf.slice(inputs, [0, step, 0], [-1, 1, -1]), [rows, this.hp.inputDims]);
      const gates = tf.add(tf.matMul(tf.concat([x, h], 1), w), b);
      const [i, f, g, o] = tf.split(gates, 4, 1) as [Tensor, Tensor, Tensor, Tensor];
      c = tf.add(tf.mul(tf.sigmoid(f), c), tf.mul(tf.sigmoid(i), tf.tanh(g)));
      h = tf.mul(tf.sigmoid(o), tf.tanh(c));
    }
    return h;
  }
}

/** A model and one batch. */
export interface Modelled {
  readonly model: Config<BaseModel>;
  readonly batch: Batch;
}

function host(
  shape: readonly number[],
  dtype: 'float32' | 'int32',
  value: (i: number) => number,
): HostTensor {
  const data = newHostArray(dtype, sizeOf(shape));
  for (let i = 0; i < data.length; i++) data[i] = value(i);
  return { shape: [...shape], dtype, data };
}

/** A batch of vectors, sequences or images with labels. */
function labelled(shape: readonly number[]): Batch {
  const rows = [shape[0]!];
  return {
    inputs: host(shape, 'float32', (i) => Math.sin(i * 12.9898)),
    labels: host(rows, 'int32', (i) => i % CLASSES),
    weights: host(rows, 'float32', () => 1),
  };
}

/** Hidden layers of a width. */
export function perceptron(rows: number, inputDims: number, hiddenDims: number, numLayers: number): Modelled {
  const ffTpl = FeedForward.config({ inputDims, outputDims: hiddenDims });
  const layers = [MLPBlock.config({ numLayers, hiddenDims, ffTpl })];
  return {
    model: Classifier.config({ layerTpls: layers, features: hiddenDims }),
    batch: labelled([rows, inputDims]),
  };
}

/** 3x3 convolutions of square images, each but the first followed by a pooling of 2x2. */
export function convolutional(
  rows: number,
  side: number,
  inChannels: number,
  channels: readonly number[],
): Modelled {
  const depths = [inChannels, ...channels];
  const layers = channels.flatMap((depth, i) => [
    ConvRelu.config({ convTpl: Conv2D.config({ filterShape: [3, 3, depths[i]!, depth] }) }),
    ...(i > 0 ? [Pooling.config({ windowShape: [2, 2] })] : []),
  ]);
  const mean = GlobalPooling.config({ poolingDims: [1, 2], poolingType: 'AVG' });
  return {
    model: Classifier.config({ layerTpls: [...layers, mean], features: depths.at(-1)! }),
    batch: labelled([rows, side, side, inChannels]),
  };
}

/** An LSTM over sequences of vectors. */
export function recurrent(rows: number, steps: number, width: number): Modelled {
  return {
    model: Classifier.config({ layerTpls: [Lstm.config({ width, inputDims: width })], features: width }),
    batch: labelled([rows, steps, width]),
  };
}
