/** @file Images of drawn shapes: their classes, their hidden patches, and captions of scenes. */
import { z } from 'zod';
import {
  type BaseInput,
  type Config,
  type ConfigValues,
  Experiment,
  SingleTask,
  Train,
} from '../src/index.js';
import type { Batch } from '../src/inputs/index.js';
import {
  FullSoftmax,
  PositionalEmbedding2D,
  ResNet,
  ResNetBasicBlock,
  StackedTransformer,
  TransformerTextEncoder,
  VisionTransformer,
  VitEntryLayers,
  VitExitLayers,
} from '../src/layers/index.js';
import { type BaseModel, ClassificationModel, ClipModel, MaskedAutoencoder } from '../src/models/index.js';
import { type Draw, noiseOf, pick } from './draws.js';
import { type Arrays, floats, ints, MadeRows } from './madeRows.js';
import { decayingAdam } from './parts.js';

const positive = z.int().positive();

/** Height and width of an image. */
export const SIZE = 24;

/** Whether a point is in a shape, which fills the square from −1 to 1. */
const shapes = {
  disc: (x, y) => Math.hypot(x, y) < 1,
  ring: (x, y) => Math.abs(Math.hypot(x, y) - 0.75) < 0.25,
  square: (x, y) => Math.max(Math.abs(x), Math.abs(y)) < 0.9,
  diamond: (x, y) => Math.abs(x) + Math.abs(y) < 1,
  cross: (x, y) => Math.min(Math.abs(x), Math.abs(y)) < 0.3 && Math.max(Math.abs(x), Math.abs(y)) < 1,
  triangle: (x, y) => y < 0.8 && Math.abs(x) < (y + 1) / 1.8,
} satisfies Record<string, (x: number, y: number) => boolean>;
const shapeNames = Object.keys(shapes) as (keyof typeof shapes)[];

type Colour = readonly [red: number, green: number, blue: number];

/** Draws a shape with its middle at (row, column) into an image. */
function drawShape(
  image: Float32Array,
  shape: keyof typeof shapes,
  colour: Colour,
  { row, column, radius }: { readonly row: number; readonly column: number; readonly radius: number },
): void {
  for (let i = 0; i < SIZE; i++)
    for (let j = 0; j < SIZE; j++)
      if (shapes[shape]((j - column) / radius, (i - row) / radius)) image.set(colour, (i * SIZE + j) * 3);
}

const addNoise = (image: Float32Array, noise: () => number, most: number): void => {
  for (let i = 0; i < image.length; i++) image[i]! += (2 * noise() - 1) * most;
};

/** One shape an image, on a background of another brightness, with noise: `image`, `label_probs` (the shape's id) and `weights`. */
export class ShapeImages extends MadeRows.with({}) {
  protected override emptyBatch(): Batch {
    const { batchSize } = this.hp;
    return {
      image: floats([batchSize, SIZE, SIZE, 3]),
      label_probs: ints([batchSize]),
      weights: floats([batchSize]),
    };
  }
  protected override make(draw: Draw, arrays: Arrays, b: number): void {
    const image = imageOf(arrays.image!, b);
    const noise = noiseOf(draw);
    const ground = 0.8 * noise() - 0.4;
    image.fill(ground);
    const label = draw(shapeNames.length);
    const radius = 4 + 6 * noise();
    const place = () => radius + (SIZE - 1 - 2 * radius) * noise();
    const contrast = (0.4 + 0.4 * noise()) * (draw(2) ? 1 : -1);
    const tint = () => ground + contrast + 0.3 * noise() - 0.15;
    const colour = [tint(), tint(), tint()] as const;
    drawShape(image, shapeNames[label]!, colour, { row: place(), column: place(), radius });
    addNoise(image, noise, 0.2);
    arrays.label_probs!.data[b] = label;
  }
}

const colours = {
  red: [0.8, -0.5, -0.5],
  green: [-0.5, 0.8, -0.5],
  blue: [-0.5, -0.5, 0.8],
  yellow: [0.8, 0.8, -0.5],
  violet: [0.8, -0.5, 0.8],
  white: [0.8, 0.8, 0.8],
} satisfies Record<string, Colour>;
const colourNames = Object.keys(colours) as (keyof typeof colours)[];

const longestCaption = 'a yellow triangle left of a violet triangle'.length;
const captionLetters = ' abcdefghijklmnopqrstuvwxyz';

/** Two shapes an image, in colours of a few names, with a caption of both: `image`, `ids`, `paddings` and `weights`. */
export class Scenes extends MadeRows.with({}) {
  protected override emptyBatch(): Batch {
    const { batchSize } = this.hp;
    return {
      image: floats([batchSize, SIZE, SIZE, 3]),
      ids: ints([batchSize, longestCaption]),
      paddings: floats([batchSize, longestCaption], 1),
      weights: floats([batchSize]),
    };
  }
  protected override make(draw: Draw, arrays: Arrays, b: number): void {
    const image = imageOf(arrays.image!, b);
    const noise = noiseOf(draw);
    image.fill(-0.5);
    const parts = [SIZE / 4, (3 * SIZE) / 4].map((middle) => this.#shape(image, draw, noise, middle));
    addNoise(image, noise, 0.2);
    const { ids, paddings } = arrays;
    const first = b * longestCaption;
    for (const [i, letter] of [...parts.join(' left of ')].entries()) {
      ids!.data[first + i] = captionLetters.indexOf(letter);
      paddings!.data[first + i] = 0;
    }
  }

  /** Draws a shape around a column. @returns its caption */
  #shape(image: Float32Array, draw: Draw, noise: () => number, middle: number): string {
    const [colour, shape] = [pick(draw, colourNames), pick(draw, shapeNames)];
    const radius = 4.5 + noise();
    const row = radius + (SIZE - 1 - 2 * radius) * noise();
    drawShape(image, shape, colours[colour], { row, column: middle - 0.5, radius });
    return `a ${colour} ${shape}`;
  }
}

const imageOf = (image: Arrays[string], b: number): Float32Array =>
  (image.data as Float32Array).subarray(b * SIZE * SIZE * 3, (b + 1) * SIZE * SIZE * 3);

/** Models of drawn images, trained on rows of a seed, evaluated on 1,024 of another. */
abstract class ShapeExperiment extends Experiment.with({
  batchSize: positive.default(64).describe('Images of a batch.'),
  numTrainSteps: positive.default(600).describe('Training steps; the learning rate decays until the last.'),
  learningRate: z.number().positive().default(2e-3).describe('The highest learning rate.'),
  seed: z.int().nonnegative().default(1234).describe('Seed of weights and of the order of the data.'),
}) {
  protected abstract model(): Config<BaseModel>;
  protected abstract images(values: Partial<ConfigValues<ShapeImages>>): Config<BaseInput>;

  override task() {
    const { numTrainSteps } = this;
    return SingleTask.config({
      model: this.model(),
      train: Train.config({
        learner: decayingAdam({ learningRate: this.learningRate, numTrainSteps, warmupSteps: 50 }),
        ...{ numTrainSteps, randomSeed: this.seed, summaryIntervalSteps: 50 },
        ...{ saveIntervalSteps: 300, evalIntervalSteps: 300, evalSkipTrain: true },
      }),
    });
  }

  override datasets(): Config<BaseInput>[] {
    const { batchSize, seed } = this;
    return [
      this.images({ name: 'train', isTraining: true, batchSize, inputRandomSeed: seed }),
      this.images({ name: 'held_out', batchSize, count: 1024, dataSeed: 2, evalLoopNumBatches: -1 }),
    ];
  }
}

/** Tells six shapes apart, whatever their size, place and colour. */
export class Classify extends ShapeExperiment.with({}) {
  protected override model() {
    return ClassificationModel.config({
      networkTpl: ResNet.config({
        ...{ strides: [2, 2, 2], channels: [16, 32, 64], blocks: [1, 1, 1], kernels: [3, 3, 3] },
        ...{ entryflowConvKernel: [3, 3, 3], entryflowConvStride: [1, 1] },
        blockParams: ResNetBasicBlock.config(),
      }),
      softmaxTpl: FullSoftmax.config({ inputDims: 64, numClasses: shapeNames.length }),
    });
  }
  protected override images(values: Partial<ConfigValues<ShapeImages>>) {
    return ShapeImages.config(values);
  }
}

export const patchSize = 4;
/** Rows and columns of patches. */
const GRID = SIZE / patchSize;
const gridPositions = () => PositionalEmbedding2D.config({ h: GRID, w: GRID });

/** A vision transformer of SIZE × SIZE images in patches of 4 × 4. */
function vit(modelDims: number, numLayers: number, pooled: boolean): Config<VisionTransformer> {
  return VisionTransformer.config({
    entryLayersTpl: VitEntryLayers.config({
      posEmbShapes: [GRID, GRID],
      posEmbTpl: gridPositions(),
      ...{ patchSize, inputDims: patchSize ** 2 * 3, outputDims: modelDims },
    }),
    transformerLayersTpl: StackedTransformer.config({
      ...{ numLayers, modelDims, hiddenDims: 4 * modelDims, numHeads: 4 },
    }),
    exitLayersTpl: VitExitLayers.config({ hiddenDim: modelDims, outputFcTanh: false, pooled }),
  });
}

/** Draws the hidden three quarters of an image's patches. */
export class Masked extends ShapeExperiment.preset({ numTrainSteps: 3000 }) {
  protected override model() {
    return MaskedAutoencoder.config({
      encoderTpl: vit(64, 3, false),
      normPixLoss: false,
      decoderDims: 64,
      decoderPositionEmbTpl: gridPositions(),
      decoderTpl: StackedTransformer.config({ numLayers: 2, hiddenDims: 256, numHeads: 4 }),
    });
  }
  protected override images(values: Partial<ConfigValues<ShapeImages>>) {
    return ShapeImages.config(values);
  }
}

/** Finds the caption of a scene, and the scene of a caption, among those of a batch. */
export class Captions extends ShapeExperiment.preset({ numTrainSteps: 1000 }) {
  protected override model() {
    return ClipModel.config({
      ...{ imageTpl: vit(64, 3, true), imageDims: 64, projectionDims: 32 },
      textTpl: TransformerTextEncoder.config({
        ...{ vocabSize: captionLetters.length, modelDims: 48 },
        stackedTransformerTpl: StackedTransformer.config({ numLayers: 2, hiddenDims: 192, numHeads: 4 }),
      }),
    });
  }
  protected override images(values: Partial<ConfigValues<Scenes>>) {
    return Scenes.config(values);
  }
}
