/** @file WAV files of every kind, and the file offset of what is damaged. */
import { expect, test } from 'vitest';
import { readWav } from '../../../src/inputs/audio/wav.js';
import { note, wavOf } from './sounds.js';

const samples = (bytes: Uint8Array) => [...readWav(bytes).samples];

test('PCM of 8, 16, 24 and 32 bits, float32, an extensible format, chunks in between', () => {
  expect(samples(wavOf([0, 128, 192], { bits: 8 }))).toEqual([-1, 0, 0.5]);
  expect(samples(wavOf([0, 0x80, 0, 0x40, 1, 0], { between: note }))).toEqual([-1, 0.5, 2 ** -15]);
  expect(samples(wavOf([0, 0, 0x80, 1, 0, 0, 255, 255, 255], { bits: 24 }))).toEqual([
    -1,
    2 ** -23,
    -(2 ** -23),
  ]);
  expect(samples(wavOf([0, 0, 0, 0x80, 0, 0, 0, 0x20], { bits: 32 }))).toEqual([-1, 0.25]);
  const floats = [...new Uint8Array(Float32Array.of(0.1, -2.5).buffer)];
  expect(samples(wavOf(floats, { code: 3, bits: 32 }))).toEqual([Math.fround(0.1), -2.5]);
  expect(readWav(wavOf([0, 0], { sampleRate: 44_100 })).sampleRate).toBe(44_100);
});

test('channels are mixed down to their mean', () => {
  expect(samples(wavOf([0, 0x40, 0, 0xc0, 0, 0x40, 0, 0], { channels: 2 }))).toEqual([0, 0.25]);
});

test('a file that was written to a pipe reads to its end, whatever size stands for an unknown one', () => {
  const piped = (whole: number | undefined, data: number, values: readonly number[] = [0, 0x40, 0, 0x80]) => {
    const bytes = wavOf(values, { between: note });
    const view = new DataView(bytes.buffer);
    const at = bytes.length - values.length - 8;
    view.setUint32(4, whole ?? at, true);
    view.setUint32(at + 4, data, true);
    return bytes;
  };
  // ffmpeg; sox; a header that was written before there were samples, by Python's wave among others; zeros.
  const sizes = [
    [0xffffffff, 0xffffffff],
    [0x7ffff024, 0x7ffff000],
    [undefined, 0],
    [0, 0],
    [0xffffffff, 0],
  ] as const;
  for (const [whole, data] of sizes) expect(samples(piped(whole, data))).toEqual([0.5, -1]);
  // Another size beyond the end is a file that is cut off, and an empty chunk within a file is empty.
  expect(() => samples(piped(2000, 1964))).toThrow(
    /^is not a readable WAV .* chunk 'data' of 1964 bytes is cut off at 60$/,
  );
  expect(() => samples(piped(52, 0))).toThrow(/there are no samples$/);
  expect(() => samples(piped(0, 0, [1, 2, 3]))).toThrow(/3 bytes are no multiple of 1 samples of 2 bytes$/);
});

test('what is damaged is told with its offset', () => {
  const errorOf = (bytes: Uint8Array): string => {
    try {
      readWav(bytes);
      return 'none';
    } catch (error) {
      return (error as Error).message.replace('is not a readable WAV file: ', '');
    }
  };
  const whole = wavOf([1, 2, 3, 4]);
  expect(errorOf(new Uint8Array())).toBe('at offset 0, the header of 12 bytes is cut off at 0');
  expect(errorOf(Uint8Array.from({ length: 20 }))).toBe("at offset 0, expected 'RIFF' … 'WAVE'");
  expect(errorOf(whole.subarray(0, 46))).toBe("at offset 44, chunk 'data' of 4 bytes is cut off at 46");
  expect(errorOf(whole.subarray(0, 40))).toBe(
    'at offset 36, the header of a chunk of 8 bytes is cut off at 40',
  );
  expect(errorOf(whole.subarray(0, 36))).toBe("at offset 36, the file ends without a chunk 'data'");
  expect(errorOf(wavOf([1, 2, 3]))).toBe('at offset 36, 3 bytes are no multiple of 1 samples of 2 bytes');
  expect(errorOf(wavOf([]))).toBe('at offset 36, there are no samples');
  expect(errorOf(wavOf([1, 2], { code: 6, bits: 8 }))).toBe(
    'at offset 20, expected PCM of 8, 16, 24 or 32 bits or float32, got format 6 of 8 bits',
  );
  // Samples of 24 bits in 32, which other readers take for packed ones, too.
  const wide = wavOf([1, 2, 3, 4, 5, 6], { bits: 24 });
  wide[32] = 4;
  expect(errorOf(wide)).toBe(
    'at offset 32, a frame of 1 samples of 24 bits takes 3 bytes, and the format says 4',
  );
  const nan = [...new Uint8Array(Float32Array.of(0, Number.NaN).buffer)];
  expect(errorOf(wavOf(nan, { code: 3, bits: 32 }))).toBe('at offset 48, got the sample NaN');
  // Every truncation is an error, never a crash or a shorter sound.
  for (let end = 0; end < whole.length; end++)
    expect(errorOf(whole.subarray(0, end))).toMatch(/^at offset \d+, /);
});
