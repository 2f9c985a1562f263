/** @file Mutants of WAV files. */
import { build } from '../../../src/hparams/index.js';
import { AudioInput, LogMel } from '../../../src/inputs/index.js';
import { note, shorts, wavOf } from '../audio/sounds.js';
import { integerSite, type MutantKind, type Seed } from './mutantKind.js';

const input = build(
  AudioInput.config({
    ...{ directory: 'none', numSamples: 800, resample: true, split: 'all', batchSize: 1 },
    features: LogMel.config({ sampleRate: 16_000, numMels: 8 }),
  }),
);

/** Where the numbers of a format stand in its chunk, and whether others can be those of a whole file. */
const FORMAT = [
  ['code', 8, 2, true],
  ['channels', 10, 2, true],
  ['rate', 12, 4, true],
  ['bytes a second', 16, 4, true],
  ['bytes a frame', 20, 2, false],
  ['bits', 22, 2, true],
] as const;

function seed(name: string, data: readonly number[], fields: Parameters<typeof wavOf>[1]): Seed {
  const bytes = wavOf(data, fields);
  const at = (chunk: string) => Buffer.from(bytes).indexOf(chunk, 0, 'latin1');
  const format = FORMAT.map(([told, offset, size, isFree]) =>
    integerSite(bytes, told, at('fmt ') + offset, size, { isFree }),
  );
  const lengths = ['RIFF', 'fmt ', 'LIST', 'data']
    .filter((chunk) => at(chunk) >= 0)
    .map((chunk) => integerSite(bytes, `length of ${chunk}`, at(chunk) + 4, 4));
  return { name, bytes, sites: [...format, ...lengths] };
}

export const sounds: MutantKind = {
  name: 'WAV',
  seeds() {
    const wave = Array.from({ length: 1000 }, (_, i) => Math.sin(i / 9) / 2);
    const floats = [...new Uint8Array(Float32Array.from(wave).buffer)];
    return [
      seed('stereo.wav', shorts(wave), { channels: 2, between: note }),
      seed('mono.wav', shorts(wave), { sampleRate: 44_100 }),
      seed('float.wav', floats, { code: 3, bits: 32 }),
    ];
  },
  read: (path) => input.exampleBatch([path], [], { first: 0, readsFiles: true }),
  problemOf(values) {
    const { data } = (values as { readonly inputs: { readonly data: Float32Array } }).inputs;
    return data.every(Number.isFinite) ? undefined : 'a feature is no number';
  },
  tries: 2000,
  short: 75,
};
