/** @file Batches of images: folders of PNG and JPEG files, IDX and CIFAR files, sizes, colours, splits, damaged files. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { encode as encodePng } from 'fast-png';
import jpeg from 'jpeg-js';
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import {
  type BaseImageSource,
  type Batch,
  CifarImages,
  IdxImages,
  ImageFolder,
  ImageInput,
  nextBatch,
  openInput,
} from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';

const directory = temporaryDirectory();

/** A file of these bytes, by its path. */
function fileOf(name: string, bytes: Uint8Array): string {
  const path = join(directory, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, bytes);
  return path;
}

type Fields = Partial<Parameters<typeof ImageInput.config>[0]>;
const configOf = (fields: Fields) =>
  ImageInput.config({ height: 2, width: 2, split: 'all', batchSize: 2, ...fields });
const inputOf = (fields: Fields) => build(configOf(fields));

/** A batch with its inputs as bytes. */
const bytesOf = (batch: Batch) => ({
  inputs: Array.from(batch.inputs!.data as Float32Array, (x) => Math.round(255 * x)),
  labels: [...(batch.labels!.data as Int32Array)],
  weights: [...(batch.weights!.data as Float32Array)],
});

const errorOf = (fields: Fields): Promise<string> =>
  inputOf(fields)
    .getNext()
    .then(
      () => 'none',
      ({ message }: Error) => message.replaceAll(`${directory}/`, ''),
    );

/** A PNG of one colour. */
const png = (color: readonly number[], height = 2, width = 2) =>
  encodePng({
    height,
    width,
    channels: color.length,
    data: Uint8Array.from({ length: height * width * color.length }, (_, i) => color[i % color.length]!),
  });

const photos = join(directory, 'photos');
fileOf('photos/cat/b.png', png([255, 0, 51]));
fileOf('photos/cat/a.PNG', png([7]));
fileOf('photos/cat/.DS_Store', Uint8Array.of(1));
fileOf('photos/cat/Thumbs.db', Uint8Array.of(1));
fileOf('photos/README.md', Uint8Array.of(1));
fileOf('photos/.hidden/a.png', png([9]));
fileOf(
  'photos/dog/c.jpg',
  jpeg.encode({ height: 8, width: 8, data: new Uint8Array(256).fill(200) }, 100).data,
);

test('a folder for each class: PNG and JPEG, grey and in colour, by name', async () => {
  const input = inputOf({ source: ImageFolder.config({ directory: photos }) });
  expect(input.batchSpecs()).toEqual({
    inputs: { shape: [2, 2, 2, 3], dtype: 'float32' },
    labels: { shape: [2], dtype: 'int32' },
    weights: { shape: [2], dtype: 'float32' },
  });
  const batches = [bytesOf(await input.getNext()), bytesOf(await input.getNext())];
  expect(batches).toEqual([
    {
      inputs: [...Array(12).fill(7), ...Array(4).fill([255, 0, 51]).flat()],
      labels: [0, 0],
      weights: [1, 1],
    },
    { inputs: [...Array(12).fill(200), ...Array(12).fill(0)], labels: [1, 0], weights: [1, 0] },
  ]);
  await expect(input.getNext()).rejects.toThrow("Input 'input' has no more data.");
  const grey = inputOf({
    source: ImageFolder.config({ directory: photos, classes: ['dog', 'cat'] }),
    channels: 1,
    batchSize: 3,
  });
  // 0.299 · 255 + 0.114 · 51 = 82.06
  expect(bytesOf(await grey.getNext())).toEqual({
    inputs: [...Array(4).fill(200), ...Array(4).fill(7), ...Array(4).fill(82)],
    labels: [0, 1, 1],
    weights: [1, 1, 1],
  });
});

test('folders below a class belong to it, and links are followed', async () => {
  const root = join(directory, 'deep');
  fileOf('elsewhere/cow/2019/may/z.png', png([3]));
  fileOf('elsewhere/cow/a.png', png([1]));
  fileOf('elsewhere/one.png', png([9]));
  fileOf('deep/ant/b/c/1.png', png([5]));
  symlinkSync(join(directory, 'elsewhere/cow'), join(root, 'bee'));
  symlinkSync(join(directory, 'elsewhere/one.png'), join(root, 'ant/one.png'));
  const input = inputOf({ source: ImageFolder.config({ directory: root }), channels: 1, batchSize: 4 });
  const { inputs, labels } = bytesOf(await input.getNext());
  expect([labels, inputs.filter((_, i) => i % 4 === 0)]).toEqual([
    [0, 0, 1, 1],
    [5, 9, 3, 1],
  ]);
  expect(input.classNamesFor('labels')).toEqual(['ant', 'bee']);

  symlinkSync(root, join(root, 'ant/round'));
  const source = ImageFolder.config({ directory: root });
  expect(await errorOf({ source })).toBe(
    `ImageInput 'input': deep/ant/round/ant is a link to a folder that it is in, deep/ant: remove the link.`,
  );
  rmSync(join(root, 'ant/round'));
  symlinkSync('nowhere', join(root, 'cat'));
  expect(await errorOf({ source })).toMatch(/^ImageInput 'input': deep cannot be read: ENOENT.*deep\/cat'$/);
});

test('what is not read is counted and named, and may be passed over', async () => {
  for (const name of ['a.webp', 'b/c.gif', 'd.webp', 'notes.txt'])
    fileOf(`kinds/cat/${name}`, Uint8Array.of(1));
  fileOf('kinds/cat/1.png', png([1]));
  fileOf('kinds/dog/2.png', png([2]));
  fileOf('kinds/stray.jpg', png([2]));
  const root = join(directory, 'kinds');
  const source = (ignore: string[], classes: string[] | null = null) =>
    ImageFolder.config({ directory: root, ignore, classes });
  const told = "ImageInput 'input': kinds: PNG and JPEG files in the folders of classes are read, and";
  const advice = (glob: string) => `Convert, move or skip them: ignore=['**/${glob}'].`;
  expect(await errorOf({ source: source([]) })).toBe(
    `${told} 5 files are not: cat/a.webp, cat/b/c.gif, cat/d.webp, … (5). ${advice('*.jpg')}`,
  );
  expect(await errorOf({ source: source(['stray.jpg', '**/*.{webp,gif}']) })).toBe(
    `${told} 1 file is not: cat/notes.txt. ${advice('*.txt')}`,
  );
  const batch = await inputOf({ source: source(['stray.jpg', 'cat/[!1]*', '**/*.gif']) }).getNext();
  expect(bytesOf(batch).labels).toEqual([0, 1]);

  fileOf('kinds/emu/3.webp', png([2]));
  const all = ['stray.jpg', 'cat/[!1]*', '**/*.gif', '**/*.webp'];
  const empty =
    "ImageInput 'input': kinds: expected files in a folder for each class, such as CLASS/1.png; emu has none.";
  expect(await errorOf({ source: source(all) })).toBe(`${empty} Name the others in classes.`);
  expect(await errorOf({ source: source(all, ['dog', 'emu']) })).toBe(empty);
  expect(bytesOf(await inputOf({ source: source(all, ['dog', 'cat']) }).getNext()).labels).toEqual([0, 1]);
});

test('a thread that reads ahead gives the same images, and a run resumes exactly', async () => {
  const config = configOf({
    source: ImageFolder.config({ directory: photos }),
    isTraining: true,
    prefetchBatches: 2,
    batchSize: 3,
  });
  const [ahead, plain] = [openInput(config), build(config)];
  for (let i = 0; i < 6; i++) expect(await ahead.getNext()).toEqual(await plain.getNext());
  const state = ahead.getState();
  const next = await ahead.getNext();
  await ahead.close();
  const resumed = build(config);
  resumed.setState(state);
  expect(await resumed.getNext()).toEqual(next);
});

/** An IDX file of unsigned bytes. */
function idx(shape: readonly number[], data: readonly number[]): Uint8Array {
  const header = Buffer.alloc(4 + 4 * shape.length);
  header.set([0, 0, 8, shape.length]);
  for (const [i, size] of shape.entries()) header.writeUInt32BE(size, 4 + 4 * i);
  return Buffer.concat([header, Uint8Array.from(data)]);
}

test('IDX files, plain and compressed, several one after the other', async () => {
  const images = [
    fileOf('a-images', idx([1, 2, 2], [1, 2, 3, 4])),
    fileOf('b-images.gz', gzipSync(idx([2, 2, 2], [5, 6, 7, 8, 9, 10, 11, 12]))),
  ];
  const labels = [fileOf('labels.gz', gzipSync(idx([3], [3, 1, 2])))];
  const input = inputOf({ source: IdxImages.config({ images, labels }), channels: 1 });
  expect([bytesOf(await input.getNext()), bytesOf(await input.getNext())]).toEqual([
    { inputs: [1, 2, 3, 4, 5, 6, 7, 8], labels: [3, 1], weights: [1, 1] },
    { inputs: [9, 10, 11, 12, 0, 0, 0, 0], labels: [2, 0], weights: [1, 0] },
  ]);
  expect(input.dataIdentity().files?.map(({ path }) => path)).toEqual([...images, ...labels]);
});

test('CIFAR files: planes of colours, labels of CIFAR-10 and CIFAR-100', async () => {
  const planes = [10, 20, 30].flatMap((value) => Array(1024).fill(value) as number[]);
  planes[1] = 99; // red, first row, second column
  const ten = fileOf('data_batch_1.bin', Uint8Array.from([6, ...planes, 4, ...planes]));
  const size = { height: 32, width: 32 };
  const batch = bytesOf(await inputOf({ source: CifarImages.config({ files: [ten] }), ...size }).getNext());
  expect(batch.labels).toEqual([6, 4]);
  expect(batch.inputs.slice(0, 9)).toEqual([10, 20, 30, 99, 20, 30, 10, 20, 30]);
  const hundred = fileOf('train.bin', Uint8Array.from([19, 87, ...planes]));
  const labelsOf = async (labels: 'cifar100' | 'cifar100-coarse') =>
    bytesOf(await inputOf({ source: CifarImages.config({ files: [hundred], labels }), ...size }).getNext())
      .labels[0];
  expect([await labelsOf('cifar100'), await labelsOf('cifar100-coarse')]).toEqual([87, 19]);
});

test('the splits of images share none and make all', async () => {
  const values = Array.from({ length: 20 }, (_, i) => i);
  const source = IdxImages.config({
    images: [fileOf('many', idx([20, 1, 1], values))],
    labels: [fileOf('many-labels', idx([20], values))],
  });
  const rows = async (split: 'train' | 'validation') => {
    const input = inputOf({ source, split, height: 1, width: 1, channels: 1, validationFraction: 0.25 });
    const all = [];
    for (let batch = await nextBatch(input); batch; batch = await nextBatch(input)) {
      const { inputs, labels, weights } = bytesOf(batch);
      expect(inputs).toEqual(labels);
      all.push(...labels.filter((_, i) => weights[i] === 1));
    }
    return all;
  };
  const [train, validation] = [await rows('train'), await rows('validation')];
  expect(validation).toHaveLength(5);
  expect([...train, ...validation].sort((a, b) => a - b)).toEqual(values);
});

test('damaged and truncated files are told with the file and the offset', async () => {
  const folder = (name: string, bytes: Uint8Array) => {
    fileOf(`${name}/a/1.png`, bytes);
    fileOf(`${name}/b/2.png`, bytes);
    return errorOf({ source: ImageFolder.config({ directory: join(directory, name) }) });
  };
  const whole = png([1, 2, 3], 20, 20);
  expect(await folder('cut', whole.subarray(0, whole.length - 30))).toMatch(
    /^ImageInput 'input': cut\/a\/1\.png is a damaged PNG image: ./,
  );
  const flipped = Uint8Array.from(whole);
  flipped[flipped.length - 20]! ^= 255;
  expect(await folder('flipped', flipped)).toMatch(
    /^ImageInput 'input': flipped\/a\/1\.png is a damaged PNG image: ./,
  );
  const photo = jpeg.encode({ height: 32, width: 32, data: new Uint8Array(4096) }, 90).data;
  expect(await folder('photo', photo.subarray(0, 300))).toMatch(
    /^ImageInput 'input': photo\/a\/1\.png is a damaged JPEG image: ./,
  );
  expect(await folder('text', Uint8Array.of(104, 105))).toBe(
    "ImageInput 'input': text/a/1.png is neither a PNG nor a JPEG image",
  );
  expect(await errorOf({ source: ImageFolder.config({ directory: photos, classes: ['cat', 'cow'] }) })).toBe(
    "ImageInput 'input': photos has no folder 'cow'. It has: cat, dog.",
  );
  expect(await errorOf({ source: ImageFolder.config({ directory: join(photos, 'cat') }) })).toBe(
    "ImageInput 'input': photos/cat: expected files in a folder for each class, such as CLASS/1.png; got a.PNG, b.png.",
  );
  mkdirSync(join(directory, 'empty'));
  expect(await errorOf({ source: ImageFolder.config({ directory: join(directory, 'empty') }) })).toBe(
    "ImageInput 'input': empty: expected files in a folder for each class, such as CLASS/1.png; got an empty folder.",
  );

  const idxError = (images: Uint8Array, labels = idx([1], [0])) => {
    const paths = { images: [fileOf('i', images)], labels: [fileOf('l', labels)] };
    return errorOf({ source: IdxImages.config(paths) as never as ReturnType<typeof BaseImageSource.config> });
  };
  const image = idx([1, 2, 2], [1, 2, 3, 4]);
  const isNot = "ImageInput 'input': i is not an IDX file of 3 dimensions of bytes:";
  expect(await idxError(image.subarray(0, 19))).toBe(
    `${isNot} shape [1, 2, 2] ends at offset 20, and the file at 19.`,
  );
  expect(await idxError(image.subarray(0, 9))).toBe(
    `${isNot} it ends at offset 9, within its header of 16 bytes.`,
  );
  expect(await idxError(new Uint8Array())).toBe(
    `${isNot} expected 0,0,8,3 at offset 0, got the end of the file.`,
  );
  expect(await idxError(idx([2], [1, 2]))).toBe(`${isNot} expected 0,0,8,3 at offset 0, got 0,0,8,1.`);
  expect(await idxError(image, idx([2], [1, 2]))).toBe(
    "ImageInput 'input': there are 1 images and 2 labels, in i, l.",
  );
  expect(await idxError(gzipSync(image).subarray(0, 15))).toBe(
    "ImageInput 'input': i is a damaged gzip file: unexpected end of file",
  );
  const bomb = gzipSync(Buffer.concat([image, new Uint8Array(2 ** 22)]));
  expect(await idxError(bomb)).toBe(
    "ImageInput 'input': i is a damaged gzip file: it has more than 20 bytes",
  );
  expect(await idxError(idx([2 ** 32 - 1, 0, 0], []))).toBe(
    `${isNot} shape [4294967295, 0, 0] has no pixels.`,
  );
  const cut = fileOf('cut.bin', new Uint8Array(3073 + 5));
  expect(await errorOf({ source: CifarImages.config({ files: [cut] }) })).toBe(
    "ImageInput 'input': cut.bin has 3078 bytes, no multiple of the 3073 of a cifar10 image: image 1, at offset 3073, is cut off.",
  );
});

test('an image beyond maxMegapixels is an error that names it, or is passed over with the broken ones', async () => {
  fileOf('large/a/1.png', png([1], 1100, 1000));
  fileOf('large/a/2.png', png([2]));
  const source = ImageFolder.config({ directory: join(directory, 'large') });
  expect(await errorOf({ source, maxMegapixels: 1 })).toBe(
    "ImageInput 'input': large/a/1.png is a PNG image of 1000 × 1100 pixels, 2 megapixels: maxMegapixels allows 1. " +
      'Make it smaller, or raise maxMegapixels if you trust the file',
  );
  const input = inputOf({ source, maxMegapixels: 1, onError: 'skip' });
  expect(bytesOf(await input.getNext())).toMatchObject({ weights: [0, 1] });
  expect(bytesOf(await inputOf({ source }).getNext())).toMatchObject({ weights: [1, 1] });
});
