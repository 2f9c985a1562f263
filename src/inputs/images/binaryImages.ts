/** @file Images in few large files: IDX arrays, as of MNIST, and the binary files of CIFAR. */
import { constants, gunzipSync, type ZlibOptions } from 'node:zlib';
import { z } from 'zod';
import { InputError } from '../inputErrors.js';
import { LONGEST, readFiles, resolveFiles, type SourceFile } from '../text/corpusFiles.js';
import { BaseImageSource, digestOf, type ImageSet, type LabelledImage } from './imageSources.js';
import type { RawImage } from './rawImage.js';

const files = (what: string) =>
  z.array(z.string()).min(1).describe(`${what}: paths, globs and 'pkg:<package>/<glob>' specs; .gz too.`);

/** Bytes by which a file's size is known. */
const HEAD = 16;

/**
 * Files of one kind with all their bytes, unpacked where they are compressed.
 *
 * @param sizeOf most bytes of a file, by its first ones @throws InputError
 */
function unpacked(specs: readonly string[], sizeOf: (head: SourceFile) => number): SourceFile[] {
  return readFiles(resolveFiles(specs)).map((file) => {
    const { path, bytes } = file;
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
    if (!isPacked) return file;
    const unpack = (part: Uint8Array, options: ZlibOptions): Uint8Array => {
      try {
        return new Uint8Array(gunzipSync(part, options));
      } catch (error) {
        const isTooLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
        const problem = isTooLong
          ? `it has more than ${options.maxOutputLength} bytes`
          : (error as Error).message;
        throw new InputError(`${path} is a damaged gzip file: ${problem}`, { cause: error });
      }
    };
    const head = unpack(bytes.subarray(0, 1024), { finishFlush: constants.Z_SYNC_FLUSH });
    const most = head.length < HEAD ? bytes.length + HEAD : sizeOf({ ...file, bytes: head });
    return { ...file, bytes: unpack(bytes, { maxOutputLength: most }) };
  });
}

/** The images and labels of read files. */
function setOf(read: readonly SourceFile[], images: readonly LabelledImage[]): ImageSet {
  const files = read.map(({ name, path, bytes }) => ({ name, path, size: bytes.length }));
  return { images, files, digest: digestOf(read.map(({ bytes }) => bytes)) };
}

/** MNIST's arrays of unsigned bytes: a file of images, [n, rows, columns], and a file of labels, [n]. */
export class IdxImages extends BaseImageSource.with({
  images: files('Files of images'),
  labels: files('Files of labels, in the same order'),
}) {
  override read(): ImageSet {
    const images = unpacked(this.hp.images, (head) => idxShape(head, 3).end);
    const labels = unpacked(this.hp.labels, (head) => idxShape(head, 1).end);
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

const notIdx = (path: string, rank: number, problem: string): InputError =>
  new InputError(`${path} is not an IDX file of ${rank} dimensions of bytes: ${problem}.`);

/** Shape of an IDX file, and where its data ends. It begins with two zeros, the type (8: bytes), the rank, the sizes as big-endian int32. */
function idxShape({ path, bytes }: SourceFile, rank: number): { shape: number[]; end: number } {
  const header = 4 + 4 * rank;
  const magic = bytes.subarray(0, 4);
  if (magic.join() !== `0,0,8,${rank}`)
    throw notIdx(
      path,
      rank,
      `expected 0,0,8,${rank} at offset 0, got ${magic.join() || 'the end of the file'}`,
    );
  if (bytes.length < header)
    throw notIdx(path, rank, `it ends at offset ${bytes.length}, within its header of ${header} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const shape = Array.from({ length: rank }, (_, i) => view.getUint32(4 + 4 * i));
  if (shape.slice(1).includes(0)) throw notIdx(path, rank, `shape [${shape.join(', ')}] has no pixels`);
  return { shape, end: header + shape.reduce((a, b) => a * b, 1) };
}

function idxArray(file: SourceFile, rank: number): { shape: number[]; data: Uint8Array } {
  const { path, bytes } = file;
  const { shape, end } = idxShape(file, rank);
  if (bytes.length !== end)
    throw notIdx(
      path,
      rank,
      `shape [${shape.join(', ')}] ends at offset ${end}, and the file at ${bytes.length}`,
    );
  return { shape, data: bytes.subarray(4 + 4 * rank) };
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
    const read = unpacked(this.hp.files, () => LONGEST);
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
