/** @file ImageFeature: the image of a record, as pixels of one size. */
import { z } from 'zod';
import { BaseFeature, cellOf, type FeatureSpec } from '../records/features.js';
import type { DataRecord } from '../records/recordTable.js';
import { type ImageDecoder, imageDecoder } from './imageDecoder.js';
import { MEGAPIXEL } from './imageErrors.js';
import { fileOf, ofFile } from './imageSources.js';
import { maxMegapixels, Pixels, pixelFields } from './pixels.js';

/** The PNG or JPEG image of a column, which has a file's path or its bytes: float32 [height, width, channels]. */
export class ImageFeature extends BaseFeature.with({
  column: z.string().min(1).describe('The column.'),
  ...pixelFields,
  maxMegapixels,
}) {
  #pixels!: Pixels;
  #decode!: ImageDecoder;

  protected override setup(): void {
    this.#pixels = new Pixels(this.hp);
    this.#decode = imageDecoder(this.hp.maxMegapixels * MEGAPIXEL);
  }

  spec(): FeatureSpec {
    const { height, width, channels } = this.hp;
    return { shape: [height, width, channels], dtype: 'float32' };
  }

  override get textColumn(): string {
    return this.hp.column;
  }

  valuesOf(record: DataRecord, { readsFiles } = { readsFiles: true }): Float32Array {
    const [subject, bytes] = fileOf(cellOf(record, this.hp.column), readsFiles);
    const image = ofFile(subject, () => this.#decode(bytes));
    return this.#pixels.numbersOf(this.#pixels.fitted(image));
  }
}
