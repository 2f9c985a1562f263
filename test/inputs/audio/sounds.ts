/** @file WAV files for tests, written chunk by chunk. */

const text = (name: string): number[] => [...name].map((letter) => letter.charCodeAt(0));
const little = (value: number, bytes: number): number[] =>
  Array.from({ length: bytes }, (_, i) => Math.floor(value / 256 ** i) % 256);
const chunk = (name: string, data: readonly number[]): number[] => [
  ...[...text(name), ...little(data.length, 4), ...data],
  ...(data.length % 2 === 1 ? [0] : []),
];

interface WavFields {
  readonly code?: number;
  readonly bits?: number;
  readonly channels?: number;
  readonly sampleRate?: number;
  /** Chunks between the format and the data. */
  readonly between?: readonly number[];
}

/** The bytes of a file with these bytes of samples. */
export function wavOf(
  data: readonly number[],
  { code = 1, bits = 16, channels = 1, sampleRate = 16_000, between = [] }: WavFields = {},
): Uint8Array {
  const frame = (channels * bits) / 8;
  const format = [
    ...[...little(code, 2), ...little(channels, 2), ...little(sampleRate, 4)],
    ...[...little(sampleRate * frame, 4), ...little(frame, 2), ...little(bits, 2)],
  ];
  const body = [...text('WAVE'), ...chunk('fmt ', format), ...between, ...chunk('data', data)];
  return Uint8Array.from([...text('RIFF'), ...little(body.length, 4), ...body]);
}

/** A chunk that readers pass over, of an odd length. */
export const note = chunk('LIST', [1, 2, 3]);

/** Bytes of 16-bit samples of numbers from −1 to 1. */
export const shorts = (samples: Iterable<number>): number[] =>
  Array.from(samples, (sample) => little((Math.round(sample * 32767) + 65536) % 65536, 2)).flat();
