/** @file Images in few large files: IDX arrays, as of MNIST, and the binary files of CIFAR. */
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { readFiles, resolveFiles, type SourceFile } from './corpusFiles.js';
import { BaseImageSource, digestOf, type ImageSet, type LabelledImage } from './imageSources.js';
import { InputError } from './inputErrors.js';
import type { RawImage } from './rawImage.js';

const files = (what: string) =>
  z.array(z.string()).min(1).describe(`${what}: paths, globs and 'pkg:<package>/<glob>' specs; .gz too.`);

/** Files of one kind with all their bytes, unpacked where they are compressed. @throws InputError */
function unpacked(specs: readonly string[]): SourceFile[] {
  return readFiles(resolveFiles(specs)).map((file) => {
    const isPacked = file.bytes[0] === 0x1f && file.bytes[1] === 0x8b;
    try {
      return isPacked ? { ...file, bytes: new Uint8Array(gunzipSync(file.bytes)) } : file;
    } catch (error) {
      throw new InputError(`${file.path} is a damaged gzip file: ${(error as Error).message}`, {
        cause: error,
      });
    }
  });
}

/** The images and labels of read files. */
function setOf(read: readonly SourceFile[], images: readonly LabelledImage[]): ImageSet {
  const files = read.map(({ name, path, bytes }) => ({ name, path, size: bytes.length }));
  return { images, files, digest: digestOf(read.map(({ bytes }) => bytes)) };
}

/** The arrays of unsigned bytes that MNIST and its kin are made of: one file of images, [n, rows, columns], one of labels, [n]. */
export class IdxImages extends BaseImageSource.with({
  images: files('Files of images'),
  labels: files('Files of labels, in the same order'),
}) {
  override read(): ImageSet {
    const [images, labels] = [unpacked(this.hp.images), unpacked(this.hp.labels)];
    const all = images.map((file) => idxArray(file, 3));
    const ids = labels.map((file) => idxArray(file, 1));
    const [count, labelled] = [all, ids].map((arrays) =>
      arrays.reduce((sum, { shape }) => sum + shape[0]!, 0),
    );
    if (count !== labelled) {
      const names = [...images, ...labels].map(({ path }) => path).join(', ');
      throw new InputError(`there are ${count} images and ${labelled} labels, in ${names}.`);
    }
    const label = ids.flatMap(({ data }) => [...data]);
    const pixels = all.flatMap(({ shape, data }) => {
      const [n, height, width] = shape as [number, number, number];
      const size = height * width;
      return Array.from({ length: n }, (_, i) => ({
        height,
        width,
        channels: 1 as const,
        data: data.subarray(i * size, (i + 1) * size),
      }));
    });
    return setOf(
      [...images, ...labels],
      pixels.map((image, i) => ({ label: label[i]!, pixels: () => image })),
    );
  }
}

/** The array of an IDX file: two zeros, the type (8: bytes), the rank, the sizes as big-endian int32, the data. */
function idxArray({ path, bytes }: SourceFile, rank: number): { shape: number[]; data: Uint8Array } {
  const header = 4 + 4 * rank;
  const fail = (problem: string): never => {
    throw new InputError(`${path} is not an IDX file of ${rank} dimensions of bytes: ${problem}.`);
  };
  const magic = bytes.subarray(0, 4);
  if (magic.join() !== `0,0,8,${rank}`)
    fail(`expected 0,0,8,${rank} at offset 0, got ${magic.join() || 'the end of the file'}`);
  if (bytes.length < header) fail(`it ends at offset ${bytes.length}, within its header of ${header} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const shape = Array.from({ length: rank }, (_, i) => view.getUint32(4 + 4 * i));
  const end = header + shape.reduce((a, b) => a * b, 1);
  if (bytes.length !== end)
    fail(`shape [${shape.join(', ')}] ends at offset ${end}, and the file at ${bytes.length}`);
  return { shape, data: bytes.subarray(header) };
}

/** Side of CIFAR's images. */
const SIDE = 32;

/** The binary files of CIFAR-10 and CIFAR-100: a byte or two of labels, then 32 × 32 bytes each of red, green and blue. */
export class CifarImages extends BaseImageSource.with({
  files: files('Files of images'),
  labels: z
    .enum(['cifar10', 'cifar100', 'cifar100-coarse'])
    .default('cifar10')
    .describe("The file's labels: 10 classes, or 100 (or 20 coarse ones) of files that hold both."),
}) {
  override read(): ImageSet {
    const [before, at] = { cifar10: [1, 0], cifar100: [2, 1], 'cifar100-coarse': [2, 0] }[this.hp.labels] as [
      number,
      number,
    ];
    const size = before + 3 * SIDE * SIDE;
    const read = unpacked(this.hp.files);
    const images = read.flatMap(({ path, bytes }) => {
      const count = Math.floor(bytes.length / size);
      if (count * size !== bytes.length)
        throw new InputError(
          `${path} has ${bytes.length} bytes, no multiple of the ${size} of a ${this.hp.labels} image: ` +
            `image ${count}, at offset ${count * size}, is cut off.`,
        );
      return Array.from({ length: count }, (_, i) => ({
        label: bytes[i * size + at]!,
        pixels: () => interleaved(bytes.subarray(i * size + before, (i + 1) * size)),
      }));
    });
    return setOf(read, images);
  }
}

/** The image of three planes, one after the other. */
function interleaved(planes: Uint8Array): RawImage {
  const pixels = SIDE * SIDE;
  const data = Uint8Array.from(
    { length: 3 * pixels },
    (_, i) => planes[(i % 3) * pixels + Math.floor(i / 3)]!,
  );
  return { height: SIDE, width: SIDE, channels: 3, data };
}
