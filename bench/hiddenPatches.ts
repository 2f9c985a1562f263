/** @file The error of guesses without a network at the patches that shapes.Masked hides: `npx tsx bench/hiddenPatches.ts`. */
import { fileURLToPath } from 'node:url';
import { drawsOf } from '../experiments/draws.js';
import { patchSize, ShapeImages, SIZE } from '../experiments/shapes.js';
import { build } from '../src/hparams/index.js';

const CHANNELS = 3;
const grid = SIZE / patchSize;
const numPatches = grid * grid;

/** Pixels of a patch, [patchSize² · CHANNELS]. */
type Patch = Float32Array;

/** Patches of made images, row by row, [count][numPatches]. */
async function patchesOf(dataSeed: number, count: number): Promise<Patch[][]> {
  const { image } = await build(ShapeImages.config({ batchSize: count, count, dataSeed })).getNext();
  const pixels = image!.data as Float32Array;
  return Array.from({ length: count }, (_, b) =>
    Array.from({ length: numPatches }, (_, patch) => {
      const [row, column] = [Math.floor(patch / grid) * patchSize, (patch % grid) * patchSize];
      return Float32Array.from({ length: patchSize ** 2 * CHANNELS }, (_, i) => {
        const [y, rest] = [Math.floor(i / (patchSize * CHANNELS)), i % (patchSize * CHANNELS)];
        return pixels[((b * SIZE + row + y) * SIZE + column) * CHANNELS + rest]!;
      });
    }),
  );
}

/** Patches of their mean colour, the mean over `patches`. */
function colourOf(patches: readonly Patch[]): Patch {
  const colour = new Float32Array(CHANNELS);
  for (const patch of patches) for (const [i, x] of patch.entries()) colour[i % CHANNELS]! += x;
  const pixels = patches.length * patchSize ** 2;
  return Float32Array.from(patches[0]!, (_, i) => colour[i % CHANNELS]! / pixels);
}

const distance = (a: number, b: number): number =>
  Math.hypot(Math.floor(a / grid) - Math.floor(b / grid), (a % grid) - (b % grid));

/** A guess at a hidden patch from the visible ones, which are at these places. */
type Guess = (image: readonly Patch[], visible: readonly number[], hidden: number) => Patch;

const colourOfVisible: Guess = (image, visible) => colourOf(visible.map((place) => image[place]!));

/** The mean colour of the nearest patches, of which there may be several. */
const colourOfNearest: Guess = (image, visible, hidden) => {
  const nearest = Math.min(...visible.map((place) => distance(place, hidden)));
  return colourOf(
    visible.filter((place) => distance(place, hidden) === nearest).map((place) => image[place]!),
  );
};

/** The mean of the training images at the place. */
function meanOfPlace(training: readonly Patch[][]): Guess {
  const means = Array.from({ length: numPatches }, (_, place) =>
    training[0]![place]!.map(
      (_, i) => training.reduce((sum, image) => sum + image[place]![i]!, 0) / training.length,
    ),
  );
  return (_image, _visible, hidden) => means[hidden]!;
}

/** The mean squared error of a guess, over patches of which a quarter is visible, drawn for each image. */
function errorOf(images: readonly Patch[][], guess: Guess): number {
  let [sum, count] = [0, 0];
  for (const [b, image] of images.entries()) {
    const draw = drawsOf(3, b);
    const places = image.map((_, place) => place);
    for (let i = places.length - 1; i > 0; i--) {
      const j = draw(i + 1);
      [places[i], places[j]] = [places[j]!, places[i]!];
    }
    const visible = places.splice(0, numPatches / 4);
    for (const place of places) {
      const guessed = guess(image, visible, place);
      for (const [i, x] of image[place]!.entries()) sum += (x - guessed[i]!) ** 2;
      count += guessed.length;
    }
  }
  return sum / count;
}

/** Errors of guesses at the hidden patches of held-out images. */
export async function patchBaselines(): Promise<Record<'visible' | 'nearest' | 'place', number>> {
  const heldOut = await patchesOf(2, 1024);
  return {
    visible: errorOf(heldOut, colourOfVisible),
    nearest: errorOf(heldOut, colourOfNearest),
    place: errorOf(heldOut, meanOfPlace(await patchesOf(1, 4096))),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [name, error] of Object.entries(await patchBaselines())) console.log(name, error.toFixed(4));
