/** @file WAV files: PCM of 8, 16, 24 and 32 bits and float32, mixed down to one channel. */
import { InputError } from '../inputErrors.js';

/** Sound of one channel; samples are from −1 to 1 in files of integers. */
export interface Waveform {
  readonly samples: Float32Array;
  /** Samples per second. */
  readonly sampleRate: number;
}

/** Codes of the samples' format. */
const [PCM, FLOAT, EXTENSIBLE] = [1, 3, 0xfffe];

/** Reads the sample at an offset. */
type SampleReader = (view: DataView, at: number) => number;

/** Readers by code and bits of a sample. */
const readers: Readonly<Record<string, SampleReader>> = {
  [`${PCM}/8`]: (view, at) => (view.getUint8(at) - 128) / 128,
  [`${PCM}/16`]: (view, at) => view.getInt16(at, true) / 2 ** 15,
  [`${PCM}/24`]: (view, at) => (view.getInt16(at + 1, true) * 256 + view.getUint8(at)) / 2 ** 23,
  [`${PCM}/32`]: (view, at) => view.getInt32(at, true) / 2 ** 31,
  [`${FLOAT}/32`]: (view, at) => view.getFloat32(at, true),
};

/** How samples are stored. */
interface Format {
  readonly channels: number;
  readonly sampleRate: number;
  readonly bytes: number;
  readonly read: SampleReader;
}

const textAt = (view: DataView, at: number): string =>
  String.fromCharCode(...Array.from({ length: 4 }, (_, i) => view.getUint8(at + i)));

/** Sizes from here on mean unknown; sox writes 2^31 - 2^12, others 2^32 - 1. */
const UNKNOWN = 0x7fff_f000;

/**
 * Reads a WAV file as the mean of its channels. A file that was written to a pipe has a size of 0, or the largest
 * possible one, in its header: its samples extend to the end.
 *
 * @throws InputError with the offset of the error; the message continues the file's name
 */
export function readWav(bytes: Uint8Array): Waveform {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fail = (at: number, problem: string): never => {
    throw new InputError(`is not a readable WAV file: at offset ${at}, ${problem}`);
  };
  const need = (at: number, count: number, what: string): void => {
    if (at + count > bytes.length) fail(at, `${what} of ${count} bytes is cut off at ${bytes.length}`);
  };
  need(0, 12, 'the header');
  if (textAt(view, 0) !== 'RIFF' || textAt(view, 8) !== 'WAVE') fail(0, "expected 'RIFF' … 'WAVE'");

  const whole = view.getUint32(4, true);
  const isUnknown = (size: number, at: number): boolean =>
    size === 0
      ? // An empty chunk, unless the file is said to end with it, or its size is not known either.
        whole === 0 || whole >= UNKNOWN || whole <= at
      : size >= UNKNOWN && at + 8 + size > bytes.length;
  let format: Format | undefined;
  for (let at = 12; at < bytes.length; ) {
    need(at, 8, 'the header of a chunk');
    const [name, stated] = [textAt(view, at), view.getUint32(at + 4, true)];
    const rest = bytes.length - (at + 8);
    const size = name === 'data' && isUnknown(stated, at) ? rest : stated;
    need(at + 8, size, `chunk '${name}'`);
    if (name === 'fmt ') format = formatAt(view, at + 8, size, fail);
    if (name === 'data') {
      if (format === undefined) return fail(at, "chunk 'data' stands before chunk 'fmt '");
      if (size % (format.bytes * format.channels) !== 0)
        fail(at, `${size} bytes are no multiple of ${format.channels} samples of ${format.bytes} bytes`);
      if (size === 0) fail(at, 'there are no samples');
      return mixedDown(view, at + 8, size, format, fail);
    }
    // Chunks start at even offsets.
    at += 8 + size + (size % 2);
  }
  return fail(bytes.length, "the file ends without a chunk 'data'");
}

function formatAt(
  view: DataView,
  at: number,
  size: number,
  fail: (at: number, problem: string) => never,
): Format {
  if (size < 16) fail(at, `expected a format of at least 16 bytes, got ${size}`);
  const [stored, bits] = [view.getUint16(at, true), view.getUint16(at + 14, true)];
  const [channels, sampleRate] = [view.getUint16(at + 2, true), view.getUint32(at + 4, true)];
  // An extensible format names the code at the start of its 16 bytes of subformat.
  const code = stored === EXTENSIBLE && size >= 40 ? view.getUint16(at + 24, true) : stored;
  const read = readers[`${code}/${bits}`];
  if (read === undefined)
    return fail(at, `expected PCM of 8, 16, 24 or 32 bits or float32, got format ${code} of ${bits} bits`);
  if (channels === 0 || sampleRate === 0)
    fail(at, `got ${channels} channels at ${sampleRate} samples per second`);
  const [frame, stated] = [(channels * bits) / 8, view.getUint16(at + 12, true)];
  if (stated !== frame)
    fail(
      at + 12,
      `a frame of ${channels} samples of ${bits} bits takes ${frame} bytes, and the format says ${stated}`,
    );
  return { channels, sampleRate, bytes: bits / 8, read };
}

function mixedDown(
  view: DataView,
  start: number,
  size: number,
  { channels, sampleRate, bytes, read }: Format,
  fail: (at: number, problem: string) => never,
): Waveform {
  const samples = new Float32Array(size / (bytes * channels));
  for (let i = 0; i < samples.length; i++) {
    let sum = 0;
    for (let c = 0; c < channels; c++) {
      const at = start + (i * channels + c) * bytes;
      const value = read(view, at);
      if (!Number.isFinite(value)) fail(at, `got the sample ${value}`);
      sum += value;
    }
    samples[i] = sum / channels;
  }
  return { samples, sampleRate };
}
