/** @file Contract of augmentations: an image and random numbers give an image. */
import { Configurable } from '../../../hparams/index.js';
import type { ExampleDraws } from '../../seqio/exampleDraws.js';
import type { ImageSize, RawImage } from '../rawImage.js';

/** Base of all augmentations of one image. An augmentation of one's own implements `apply`. */
export abstract class BaseAugmentation extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Whether it gets images at the size that they are stored in, and brings them to that of the batch. */
  get fitsToBatch(): boolean {
    return false;
  }

  /**
   * The augmented image, of the batch's size.
   *
   * @param image is not written to.
   * @param draws random numbers that seed, epoch and record decide; nothing else may be random.
   * @param size of the batch's images.
   */
  abstract apply(image: RawImage, draws: ExampleDraws, size: ImageSize): RawImage;
}
