/** @file WAV files of all formats, with chunks in between, and with headers that know no size, or a wrong one. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { readWav } from '../../../src/inputs/audio/wav.js';
import { note, wavOf } from '../audio/sounds.js';
import type { OddKind, Truth } from './oddFile.js';

/** A format: its code and bits, and a sample's bytes and value, of an integer from -2^31 on. */
interface Format {
  readonly code: number;
  readonly bits: number;
  readonly of: (integer: number) => { readonly bytes: readonly number[]; readonly value: number };
}

const pcm = (bits: number): Format => ({
  ...{ code: 1, bits },
  of: (integer) => {
    const sample = integer >> (32 - bits);
    // Of 8 bits, samples are unsigned.
    const stored = bits === 8 ? sample + 128 : sample;
    const bytes = Array.from({ length: bits / 8 }, (_, i) => (stored >> (8 * i)) & 255);
    return { bytes, value: sample / 2 ** (bits - 1) };
  },
});

const float: Format = {
  ...{ code: 3, bits: 32 },
  of: (integer) => {
    const value = Math.fround(integer / 2 ** 30);
    return { bytes: [...new Uint8Array(Float32Array.of(value).buffer)], value };
  },
};

const formats = [pcm(8), pcm(16), pcm(24), pcm(32), float];
const unread = [
  { code: 6, bits: 8 },
  { code: 1, bits: 12 },
  { code: 3, bits: 64 },
];

/** Sizes of the file and of its samples, as headers have them; `true` is the true one, `before` that before the samples. */
const headers = {
  whole: ['true', 'true'],
  ffmpeg: [0xffff_ffff, 0xffff_ffff],
  sox: [0x7fff_f024, 0x7fff_f000],
  'written first': ['before', 0],
  zeros: [0, 0],
  'too long': ['true', 0x1000_0000],
} as const;

export const sounds: OddKind = {
  name: 'WAV headers',
  cases: fc
    .record({
      format: fc.constantFrom(...formats),
      other: fc.option(fc.constantFrom(...unread), { freq: 8 }),
      channels: fc.integer({ min: 1, max: 4 }),
      frames: fc.array(fc.array(fc.integer(), { minLength: 4, maxLength: 4 }), {
        minLength: 1,
        maxLength: 9,
      }),
      notes: fc.nat(2),
      header: fc.constantFrom(...(Object.keys(headers) as (keyof typeof headers)[])),
    })
    .map(({ format, other, channels, frames, notes, header }) => {
      const samples = frames.map((frame) => frame.slice(0, channels).map((integer) => format.of(integer)));
      const data = samples.flat().flatMap(({ bytes }) => bytes);
      const between = Array.from({ length: notes }, () => note).flat();
      const { code, bits } = other ?? format;
      const whole = wavOf(data, { code, bits, channels, between });
      // A file from a pipe has no byte that makes its length even.
      const at = whole.length - data.length - (data.length % 2) - 8;
      const bytes = header === 'whole' ? whole : whole.slice(0, at + 8 + data.length);
      const view = new DataView(bytes.buffer);
      const [file, size] = headers[header];
      if (file !== 'true') view.setUint32(4, file === 'before' ? at : file, true);
      if (size !== 'true') view.setUint32(at + 4, size, true);
      const values = samples.map((frame) =>
        Math.fround(frame.reduce((sum, { value }) => sum + value, 0) / channels),
      );
      const truth: Truth =
        other !== null
          ? { refused: /at offset 20, expected PCM of 8, 16, 24 or 32 bits or float32, got format/ }
          : header === 'too long'
            ? { refused: /chunk 'data' of 268435456 bytes is cut off/ }
            : { values };
      return {
        files: { 'a.wav': bytes },
        read: ([path]) => [...readWav(readFileSync(path!)).samples],
        truth,
      };
    }),
  tries: 5000,
  short: 300,
};
