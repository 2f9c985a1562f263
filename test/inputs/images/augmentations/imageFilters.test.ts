/** @file Filters of colours against hand-computed bytes and plain definitions, and what they leave as it is. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  autoContrast,
  brightness,
  contrast,
  equalize,
  hue,
  posterize,
  saturation,
  sharpness,
  solarize,
} from '../../../../src/inputs/images/augmentations/imageFilters.js';
import type { RawImage } from '../../../../src/inputs/images/rawImage.js';
import { images } from './images.js';

const grey = (...data: number[]): RawImage => ({
  height: 1,
  width: data.length,
  channels: 1,
  data: Uint8Array.from(data),
});
const color = (red: number, green: number, blue: number): RawImage => ({
  height: 1,
  width: 1,
  channels: 3,
  data: Uint8Array.of(red, green, blue),
});
const bytes = ({ data }: RawImage) => [...data];

test('brightness, contrast and saturation scale the distance from black, the mean and grey', () => {
  expect(bytes(brightness(grey(0, 100, 201, 255), 0.5))).toEqual([0, 50, 100, 127]);
  expect(bytes(brightness(grey(0, 100, 201, 255), 1.5))).toEqual([0, 150, 255, 255]);
  // The mean of 0, 100 and 201 is 100.33.
  expect(bytes(contrast(grey(0, 100, 201), 0.5))).toEqual([50, 100, 150]);
  expect(bytes(contrast(grey(0, 100, 201), 0))).toEqual([100, 100, 100]);
  // 0.299 · 100 + 0.587 · 150 + 0.114 · 200 = 140.75
  expect(bytes(saturation(color(100, 150, 200), 0))).toEqual([141, 141, 141]);
  expect(bytes(saturation(color(100, 150, 200), 2))).toEqual([59, 159, 255]);
});

test('sharpness 0 smooths the inside by 1 1 1, 1 5 1, 1 1 1 of 13', () => {
  const image = {
    height: 3,
    width: 3,
    channels: 1 as const,
    data: Uint8Array.of(1, 2, 3, 4, 200, 6, 7, 8, 9),
  };
  expect(bytes(sharpness(image, 0))).toEqual([1, 2, 3, 4, 80, 6, 7, 8, 9]);
  // 80 + 2 · (200 − 80), cut off
  expect(bytes(sharpness(image, 2))).toEqual([1, 2, 3, 4, 255, 6, 7, 8, 9]);
});

test('hue turns by thirds from red to green to blue, and half a circle to the complement', () => {
  expect(bytes(hue(color(255, 0, 0), 1 / 3))).toEqual([0, 255, 0]);
  expect(bytes(hue(color(255, 0, 0), -1 / 3))).toEqual([0, 0, 255]);
  expect(bytes(hue(color(10, 200, 40), 1 / 3))).toEqual([40, 10, 200]);
  expect(bytes(hue(color(255, 0, 51), 0.5))).toEqual([0, 255, 204]);
  expect(bytes(hue(grey(9), 0.3))).toEqual([9]);
});

test('posterize keeps high bits, solarize inverts from a threshold on, histograms are stretched and flattened', () => {
  expect(bytes(posterize(grey(0, 17, 128, 255), 4))).toEqual([0, 16, 128, 240]);
  expect(bytes(solarize(grey(0, 127, 128, 255), 128))).toEqual([0, 127, 127, 0]);
  expect(bytes(autoContrast(grey(50, 84, 101)))).toEqual([0, 170, 255]);
  expect(bytes(autoContrast(grey(7, 7)))).toEqual([7, 7]);
  // 1020 pixels of 10, 20, 30, 40 in equal parts: step (1020 − 255) / 255 = 3, so levels (1 + 255 k) / 3.
  const even = grey(...Array.from({ length: 1020 }, (_, i) => 10 * ((i % 4) + 1)));
  expect(bytes(equalize(even)).slice(0, 4)).toEqual([0, 85, 170, 255]);
  expect(bytes(equalize(grey(9, 9, 10)))).toEqual([9, 9, 10]);
});

test('of any image: a factor of 1, no turn, all bits and a threshold of 256 change nothing', () => {
  fc.assert(
    fc.property(images, (image) => {
      for (const same of [brightness, contrast, saturation, sharpness]) expect(same(image, 1)).toEqual(image);
      for (const turn of [0, 1, -1]) expect(hue(image, turn)).toEqual(image);
      expect(posterize(image, 8)).toEqual(image);
      expect(solarize(image, 256)).toEqual(image);
    }),
  );
});
