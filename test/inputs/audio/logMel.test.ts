/** @file Spectra and log-mel features against their plain definitions, and resampling against the sound itself. */
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SafetensorsFile } from '../../../src/checkpoints/index.js';
import { build } from '../../../src/hparams/index.js';
import { Fft } from '../../../src/inputs/audio/fft.js';
import { resample } from '../../../src/inputs/audio/resample.js';
import { LogMel, WhisperLogMel } from '../../../src/inputs/index.js';

test('the FFT is the sum that defines it', () => {
  const values = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 64, maxLength: 64 });
  fc.assert(
    fc.property(fc.constantFrom(1, 2, 5, 8, 12, 25, 32), values, (size, numbers) => {
      const [real, imaginary] = [
        Float64Array.from(numbers.slice(0, size)),
        Float64Array.from(numbers.slice(32, 32 + size)),
      ];
      const plain = Array.from({ length: size }, (_, k) => {
        let [re, im] = [0, 0];
        for (let n = 0; n < size; n++) {
          const angle = (-2 * Math.PI * k * n) / size;
          re += real[n]! * Math.cos(angle) - imaginary[n]! * Math.sin(angle);
          im += real[n]! * Math.sin(angle) + imaginary[n]! * Math.cos(angle);
        }
        return [re, im] as const;
      });
      new Fft(size).transform(real, imaginary);
      for (const [k, [re, im]] of plain.entries()) {
        expect(real[k]).toBeCloseTo(re, 10);
        expect(imaginary[k]).toBeCloseTo(im, 10);
      }
    }),
  );
});

test('triangles: corners evenly spaced in mel, of height 1 or area 1', () => {
  const peaks = (fields: Parameters<typeof LogMel.config>[0]) =>
    build(LogMel.config({ numMels: 3, fftSize: 16_384, windowSize: 16, ...fields }))
      .triangles()
      .map((weights) => [weights.indexOf(Math.max(...weights)), Math.max(...weights)] as const);
  // HTK: 8000 Hz are 2840.02 mel; a quarter is 710.005, of 700 · (10^(710.005 / 2595) − 1) = 614.33 Hz.
  const htk = peaks({});
  expect(htk.map(([k]) => Math.round((k * 16_000) / 16_384))).toEqual([614, 1768, 3934]);
  for (const [, height] of htk) expect(height).toBeCloseTo(1, 2);
  // Slaney: 8000 Hz are 15 + 27 · ln 8 / ln 6.4 = 45.2456 mel; a quarter is 11.3114, of 754.1 Hz.
  const slaney = peaks({ scale: 'slaney', norm: 'slaney' });
  expect(Math.round((slaney[0]![0] * 16_000) / 16_384)).toBe(754);
  // From 0 to 1694 Hz: 2 / 1694.
  expect(slaney[0]![1]).toBeCloseTo(2 / 1693.9, 5);
});

test('the features of a tone stand out in the triangle of its frequency, and silence has the floor', () => {
  const logMel = build(LogMel.config({ numMels: 40 }));
  const tone = Float32Array.from({ length: 4000 }, (_, n) => Math.sin((2 * Math.PI * 1000 * n) / 16_000));
  const features = logMel.features(tone);
  expect(features.length).toBe(40 * logMel.numFrames(4000));
  const frame = features.subarray(12 * 40, 13 * 40);
  const loudest = frame.indexOf(Math.max(...frame));
  // 1000 Hz are 999.99 mel, of 2840.02 / 41 = 69.27 a triangle: the fourteenth's peak, at 969.8, is nearest.
  expect(loudest).toBe(13);
  const silence = logMel.features(new Float32Array(160));
  expect([...silence].every((value) => value === Math.fround(Math.log(1e-10)))).toBe(true);
});

test("Whisper's features are those of transformers' extractor (scripts/record_whisper.py)", () => {
  const folder = join(import.meta.dirname, '../../fixtures/published/families/whisper');
  const record = new SafetensorsFile(join(folder, 'record.safetensors'));
  const expected = record.read('logMel') as Float32Array;
  const found = build(WhisperLogMel.config()).features(record.read('sound') as Float32Array);
  record.close();
  expect(found.length).toBe(80 * 10);
  const errors = Array.from(expected, (value, i) => Math.abs(value - found[i]!));
  expect(Math.max(...errors)).toBeLessThan(1e-5);
});

test('resampling keeps tones below both Nyquist frequencies, and takes away those above', () => {
  const tone = (hertz: number, sampleRate: number) =>
    Float32Array.from({ length: sampleRate / 10 }, (_, n) =>
      Math.sin((2 * Math.PI * hertz * n) / sampleRate),
    );
  for (const [from, to] of [
    [16_000, 8000],
    [8000, 16_000],
    [44_100, 16_000],
    [22_050, 44_100],
    // Rates without a common divisor: each sample of the result has weights of its own.
    [44_101, 16_000],
  ] as const) {
    const found = resample({ samples: tone(440, from), sampleRate: from }, to);
    const wanted = tone(440, to);
    expect(found.length).toBe(wanted.length);
    // The ends know nothing of what lies beyond them.
    for (let n = 100; n < found.length - 100; n++)
      expect(Math.abs(found[n]! - wanted[n]!)).toBeLessThan(0.01);
  }
  const high = resample({ samples: tone(6000, 16_000), sampleRate: 16_000 }, 8000);
  expect(Math.max(...high.subarray(100, -100).map(Math.abs))).toBeLessThan(0.01);
  const same = tone(440, 8000);
  expect(resample({ samples: same, sampleRate: 8000 }, 8000)).toBe(same);
});
