/** @file ImageInput: batches of labelled images of one size. */
import { z } from 'zod';
import { newHostArray } from '../compiler/tensors.js';
import { instance } from '../hparams/index.js';
import type { Batch, BatchSpecs, BatchUnit } from './batch.js';
import type { DataFile, DataIdentity } from './dataIdentity.js';
import { BaseImageSource, type LabelledImage } from './imageSources.js';
import { InputError } from './inputErrors.js';
import type { JsonValue } from './jsonValue.js';
import { centerCrop, type ImageDecoder, loadImageDecoder, resize, withChannels } from './rawImage.js';
import { emptyBatchOf, writeRow } from './recordBatches.js';
import { RowInput } from './rowInput.js';
import { splitFields, splitOf } from './splits.js';

/** Decoded images are kept in memory up to this many bytes. */
const KEPT_BYTES = 2 ** 30;

/** The images of the split, found on first use. */
interface Found {
  readonly images: readonly LabelledImage[];
  readonly files: readonly DataFile[];
  /** Number of images and digest of the source. */
  readonly contents: string;
}

/**
 * Labelled images. A batch has `inputs`, float32 [batchSize, height, width, channels] from 0 to 1, `labels`, int32
 * [batchSize], and `weights`, [batchSize], which is 0 for padding. Files are decoded when a batch needs them.
 */
export class ImageInput extends RowInput.with({
  source: instance(BaseImageSource, null).describe('Where the images come from.'),
  height: z.int().positive().describe('Rows of pixels.'),
  width: z.int().positive().describe('Columns of pixels.'),
  channels: z
    .union([z.literal(1), z.literal(3)])
    .default(3)
    .describe('1: grey; 3: red, green and blue.'),
  fit: z
    .enum(['crop', 'stretch'])
    .default('crop')
    .describe('How an image of another aspect ratio fits: its middle is cut out, or it is distorted.'),
  ...splitFields,
}) {
  #found: Found | undefined;
  #decode: ImageDecoder | undefined;
  readonly #kept = new Map<number, Uint8Array>();

  override get batchUnit(): BatchUnit {
    return { unit: 'images', dims: 1 };
  }

  protected override get numRows(): number {
    return this.#find().images.length;
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, height, width, channels } = this.hp;
    return {
      inputs: { shape: [batchSize, height, width, channels], dtype: 'float32' },
      labels: { shape: [batchSize], dtype: 'int32' },
      weights: { shape: [batchSize], dtype: 'float32' },
    };
  }

  override async getNext(): Promise<Batch> {
    this.#decode ??= await loadImageDecoder();
    return super.getNext();
  }

  override async peek(): Promise<Batch> {
    this.#decode ??= await loadImageDecoder();
    return super.peek();
  }

  protected override emptyBatch(): Batch {
    return emptyBatchOf(this.batchSpecs());
  }

  protected override fillRow(row: number, batch: Batch, b: number): void {
    const bytes = this.#kept.get(row) ?? this.#pixelsOf(row);
    if ((this.#kept.size + 1) * bytes.length <= KEPT_BYTES) this.#kept.set(row, bytes);
    const inputs = newHostArray('float32', bytes.length);
    for (let i = 0; i < bytes.length; i++) inputs[i] = bytes[i]! / 255;
    writeRow(batch, b, { inputs, labels: [this.#find().images[row]!.label] });
  }

  override dataIdentity(): DataIdentity {
    const { files, contents } = this.#find();
    return { files, contents };
  }

  override knownIdentity(): DataIdentity | null {
    return null;
  }

  protected override identity(): { readonly [name: string]: JsonValue } {
    return { data: this.#find().contents };
  }

  /** The bytes of an image at the size and colours of the batch. */
  #pixelsOf(row: number): Uint8Array {
    const { height, width, channels, fit } = this.hp;
    const image = this.#named(() => this.#find().images[row]!.pixels(this.#decode!));
    const colored = withChannels(image, channels);
    return resize(fit === 'crop' ? centerCrop(colored, height, width) : colored, height, width).data;
  }

  #find(): Found {
    this.#found ??= this.#named(() => {
      const { images, files, digest } = this.hp.source.read();
      const { numItems, item } = splitOf(images.length, this.hp, 'images');
      const wanted = Array.from({ length: numItems }, (_, row) => images[item(row)]!);
      return { images: wanted, files, contents: `${numItems} images (sha256 ${digest})` };
    });
    return this.#found;
  }

  /** The result of `action`, whose errors name the input. */
  #named<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new InputError(`${this.constructor.name} '${this.name}': ${error.message}`, { cause: error });
    }
  }
}
