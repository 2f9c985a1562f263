/** @file ImageInput: batches of labelled images of one size. */
import { z } from 'zod';
import { sizeOf } from '../../compiler/program/index.js';
import { foldIn, type PrngKey } from '../../compiler/random/index.js';
import { instance } from '../../hparams/index.js';
import type { Batch, BatchSpecs, BatchUnit } from '../batch.js';
import { paddingOf } from '../batchRows.js';
import type { DataFile, DataFolder, DataIdentity } from '../dataIdentity.js';
import { ExampleInput } from '../exampleInput.js';
import { InputError, placed } from '../inputErrors.js';
import type { ExampleOptions } from '../inputSource.js';
import type { JsonValue } from '../jsonValue.js';
import { KeptItems } from '../keptItems.js';
import { streamKey } from '../random.js';
import { writeRow } from '../records/recordBatches.js';
import { ExampleDraws } from '../seqio/exampleDraws.js';
import { SkippedExamples } from '../skippedExamples.js';
import { splitFields, splitOf } from '../splits.js';
import { BaseAugmentation } from './augmentations/baseAugmentation.js';
import { BaseMixing } from './augmentations/mixing.js';
import { type ImageDecoder, imageDecoder } from './imageDecoder.js';
import { MEGAPIXEL } from './imageErrors.js';
import { BaseImageSource, fileOf, type LabelledImage, ofFile } from './imageSources.js';
import { maxMegapixels, Pixels, pixelFields } from './pixels.js';
import { type RawImage, withChannels } from './rawImage.js';

/** Purpose of the mixture's random stream under an example's key; those of the augmentations are counted from 0. */
const MIXING = 2 ** 32;

/** The images of the split, found on first use. */
interface Found {
  readonly images: readonly LabelledImage[];
  readonly files: readonly DataFile[];
  readonly folder: DataFolder | undefined;
  readonly classes: readonly string[] | undefined;
  /** Number of images and digest of the source. */
  readonly contents: string;
}

/**
 * Labelled images. A batch has `inputs`, float32 [batchSize, height, width, channels] from 0 to 1, `labels`, int32
 * [batchSize], and `weights`, [batchSize], which is 0 for padding. With `numClasses` the labels are the classes'
 * shares, float32 [batchSize, numClasses]. Files are decoded when a batch needs them. All randomness of an image is a
 * function of (inputRandomSeed, epoch, record), whatever the batch size, the number of hosts and the thread.
 */
export class ImageInput extends ExampleInput.with({
  source: instance(BaseImageSource, null).describe('Source of the images.'),
  ...pixelFields,
  augmentations: z
    .array(instance(BaseAugmentation, null))
    .default([])
    .describe('Random augmentations of training images, in order.'),
  mixings: z
    .array(instance(BaseMixing, null))
    .default([])
    .describe('Mixtures with another training image; one is drawn for each example.'),
  augmentsEvaluation: z
    .boolean()
    .default(false)
    .describe('Whether evaluation images are augmented and mixed, too.'),
  maxMegapixels,
  numClasses: z
    .int()
    .min(2)
    .nullable()
    .default(null)
    .describe("Number of classes, for labels that are the classes' shares; null for labels that are ids."),
  ...splitFields,
}) {
  #found: Found | undefined;
  #decoder: ImageDecoder | undefined;
  readonly #kept = new KeptItems<RawImage>(({ data }) => data.length);
  #pixels!: Pixels;

  protected override setup(): void {
    super.setup();
    const { augmentations, mixings, numClasses } = this.hp;
    this.#pixels = this.named(() => new Pixels(this.hp));
    const late = augmentations.find((augmentation, i) => i > 0 && augmentation.fitsToBatch);
    if (late !== undefined)
      this.#fail(
        `${late.constructor.name} takes images at the size of their files, so it must be the first of the augmentations.`,
      );
    if (mixings.length > 0 && numClasses === null)
      this.#fail(
        'mixed images belong to two classes, which an id cannot express. Set numClasses: labels are then the shares of the ' +
          'classes, [batchSize, numClasses].',
      );
  }

  override get batchUnit(): BatchUnit {
    return { unit: 'images', dims: 1 };
  }

  protected override get numRows(): number {
    return this.#find().images.length;
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, height, width, channels, numClasses } = this.hp;
    return {
      inputs: { shape: [batchSize, height, width, channels], dtype: 'float32' },
      labels:
        numClasses === null
          ? { shape: [batchSize], dtype: 'int32' }
          : { shape: [batchSize, numClasses], dtype: 'float32' },
      weights: { shape: [batchSize], dtype: 'float32' },
    };
  }

  protected override emptyBatch(): Batch {
    return paddingOf(this.batchSpecs());
  }

  protected override fillRow(row: number, batch: Batch, b: number, epoch: number): void {
    const inputs = this.#pixelsOf(row, epoch);
    const { numClasses } = this.hp;
    if (numClasses === null) {
      writeRow(batch, b, { inputs, labels: [this.#labelOf(row)] });
      return;
    }
    const labels = new Float32Array(numClasses);
    const { share, other } = this.#mixed(row, epoch, inputs);
    labels[this.#labelOf(row)]! += share;
    labels[this.#labelOf(other)]! += 1 - share;
    writeRow(batch, b, { inputs, labels });
  }

  protected override rowName(row: number): string {
    return this.#find().images[row]!.path ?? `image ${row}`;
  }

  override classNamesFor(path: string): readonly string[] | null {
    if (path !== 'labels' || this.hp.numClasses !== null) return null;
    return this.hp.source.classNames ?? this.#find().classes ?? null;
  }

  /** Of images as their files have them: paths, or their bytes. */
  override async exampleBatch(
    examples: readonly unknown[],
    _paths: readonly string[],
    { first, readsFiles }: ExampleOptions,
  ): Promise<Batch> {
    const pixels = (example: unknown) => {
      const [subject, bytes] = fileOf(example, readsFiles);
      return this.#pixels.numbersOf(this.#pixels.fitted(ofFile(subject, () => this.#decode(bytes))));
    };
    const place = (i: number) => () => `image ${first + i}`;
    const inputs = examples.map((example, i) => placed(place(i), () => pixels(example)));
    const { height, width, channels } = this.hp;
    const shape = [examples.length, height, width, channels];
    const data = new Float32Array(sizeOf(shape));
    for (const [i, pixels] of inputs.entries()) data.set(pixels, i * pixels.length);
    return { inputs: { shape, dtype: 'float32', data } };
  }

  override dataIdentity(): DataIdentity {
    const { files, folder, contents } = this.#find();
    return { files, ...(folder && { folders: [folder] }), contents };
  }

  override knownIdentity(): DataIdentity | null {
    return null;
  }

  protected override identity(): { readonly [name: string]: JsonValue } {
    // Older states do not have it, and held out other images.
    return { data: this.#find().contents, ...(this.hp.split !== 'all' && { heldOut: 'one of each run' }) };
  }

  get #decode(): ImageDecoder {
    this.#decoder ??= imageDecoder(this.hp.maxMegapixels * MEGAPIXEL);
    return this.#decoder;
  }

  get #augments(): boolean {
    return this.hp.isTraining || this.hp.augmentsEvaluation;
  }

  /** Key of all that is random about a record in an epoch. */
  #keyOf(row: number, epoch: number): PrngKey {
    return foldIn(streamKey(this.hp.inputRandomSeed ?? 0, 'augmentation', epoch), row);
  }

  /** Mixes another record's pixels into a record's; `share` is the remaining share of its own. */
  #mixed(row: number, epoch: number, pixels: Float32Array): { share: number; other: number } {
    const { mixings } = this.hp;
    const draws = new ExampleDraws(foldIn(this.#keyOf(row, epoch), MIXING));
    const mixing = mixings[draws.below(mixings.length)];
    if (!this.#augments || mixing === undefined || draws.uniform() >= mixing.hp.probability)
      return { share: 1, other: row };
    const other = draws.below(this.numRows);
    // A partner that is broken is counted where its own row comes.
    const partner = new SkippedExamples().attempt(this.hp.onError, () => this.#pixelsOf(other, epoch));
    if (partner === undefined) return { share: 1, other: row };
    return { share: mixing.mix(pixels, partner, draws, this.hp), other };
  }

  #labelOf(row: number): number {
    const { label } = this.#find().images[row]!;
    const { numClasses } = this.hp;
    if (numClasses !== null && label >= numClasses)
      throw new InputError(
        `an image has class ${label}, and numClasses ${numClasses} allows 0 to ${numClasses - 1}.`,
      );
    return label;
  }

  /** A record's augmented image as numbers, freshly allocated. */
  #pixelsOf(row: number, epoch: number): Float32Array {
    const { height, width, channels } = this.hp;
    let image = this.#imageOf(row);
    for (const [i, augmentation] of this.#augmentations().entries()) {
      image = augmentation.apply(image, new ExampleDraws(foldIn(this.#keyOf(row, epoch), i)), {
        height,
        width,
      });
      if (image.data.length !== height * width * channels || image.width !== width)
        throw new InputError(
          `${augmentation.constructor.name} made an image of ${image.height} × ${image.width} × ${image.channels}, and ` +
            `the batch has ${height} × ${width} × ${channels}.`,
        );
    }
    return this.#pixels.numbersOf(image);
  }

  #augmentations(): readonly BaseAugmentation[] {
    return this.#augments ? this.hp.augmentations : [];
  }

  /** A record's image in the batch's colours, and of its size unless an augmentation sees to that. */
  #imageOf(row: number): RawImage {
    return this.#kept.get(row, () => {
      const stored = this.#find().images[row]!.pixels(this.#decode);
      return this.#augmentations()[0]?.fitsToBatch
        ? withChannels(stored, this.hp.channels)
        : this.#pixels.fitted(stored);
    });
  }

  #find(): Found {
    this.#found ??= this.named(() => {
      const { images, files, folder, classes, digest } = this.hp.source.read();
      const { numItems, item } = splitOf(images.length, this.hp, 'images');
      const wanted = Array.from({ length: numItems }, (_, row) => images[item(row)]!);
      return { images: wanted, files, folder, classes, contents: `${numItems} images (sha256 ${digest})` };
    });
    return this.#found;
  }

  #fail(problem: string): never {
    return this.named(() => {
      throw new InputError(problem);
    });
  }
}
