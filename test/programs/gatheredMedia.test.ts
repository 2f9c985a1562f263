/** @file Summaries of layers that are no scalars: gathered over steps, capped, as values of TensorBoard. */
import { expect, test } from 'vitest';
import type { HostTensor } from '../../src/compiler/index.js';
import { GatheredMedia, textsOf } from '../../src/programs/gatheredMedia.js';

const floats = (shape: number[], value: number): HostTensor => ({
  ...{ shape, dtype: 'float32' },
  data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value),
});
const gathered = () => new GatheredMedia(textsOf({ vocabularyFor: () => null }));

test('images, sounds and texts are kept up to 64, the newest first; histograms are never capped', () => {
  const media = gathered();
  const step = (i: number, n: number) =>
    media.add({
      x_image: floats([n, 1, 1, 1], i),
      x_audio16000: floats([n, 3, 1], i),
      x_text: { shape: [n, 2], dtype: 'int32', data: new Int32Array(2 * n).fill(i) },
      x_histogram: floats([n], i),
    });
  for (const i of [0, 1, 2]) step(i, 16);
  const few = media.take();
  expect(few).toMatchObject({
    x_image: { shape: [48, 1, 1, 1] },
    x_audio16000: { shape: [48, 3, 1], sampleRate: 16000 },
    x_text: { length: 48 },
    x_histogram: { length: 48 },
  });
  expect(media.take()).toEqual({});
  for (const i of [0, 1, 2]) step(i, 16);
  for (let i = 3; i < 11; i++) step(i, 2);
  step(11, 3);
  const many = media.take() as unknown as { x_image: { data: Float32Array }; x_text: string[] };
  expect(many).toMatchObject({
    x_image: { shape: [64, 1, 1, 1], data: { length: 64 } },
    x_audio16000: { shape: [64, 3, 1], data: { length: 192 } },
    x_text: { length: 64 },
    x_histogram: { length: 67 },
  });
  expect([many.x_image.data[0], many.x_image.data[3], many.x_image.data[63]]).toEqual([11, 10, 0]);
  expect([many.x_text[0], many.x_text[63]]).toEqual(['11 11', '0 0']);
});

test('a tensor that the next step overwrites stays as it was', () => {
  const [media, values] = [gathered(), floats([2], 1)];
  media.add({ x_histogram: values });
  values.data.fill(2);
  expect(media.take()).toEqual({ x_histogram: Float32Array.of(1, 1) });
});

test('ids are texts by the vocabulary; a row with another id is its numbers', () => {
  const vocabulary = {
    ...{ vocabSize: 3, unkId: null },
    decode: (ids: ArrayLike<number>) => Array.from(ids, (id) => 'abc'[id]).join(''),
    hasText: (id: number) => id >= 0 && id < 3,
    tokenBytes: (id: number) => Buffer.from('abc'[id]!),
  };
  const media = new GatheredMedia(textsOf({ vocabularyFor: () => vocabulary }));
  media.add({ x_text: { shape: [2, 2], dtype: 'int32', data: Int32Array.of(0, 2, 1, -1) } });
  expect(media.take()).toEqual({ x_text: ['ac', '1 -1'] });
});
