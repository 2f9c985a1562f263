/** @file Batches of sounds: folders of classes, crops, paddings, sample rates, damaged files, the same rows on any host. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { HostTensor } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { AudioInput, LogMel, openInput } from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';
import { shorts, wavOf } from './sounds.js';

const directory = temporaryDirectory();
const sound = (length: number, hertz: number, sampleRate = 8000) =>
  wavOf(shorts(Array.from({ length }, (_, n) => 0.5 * Math.sin((2 * Math.PI * hertz * n) / sampleRate))), {
    sampleRate,
  });
function write(name: string, bytes: Uint8Array): void {
  mkdirSync(join(directory, name, '..'), { recursive: true });
  writeFileSync(join(directory, name), bytes);
}
write('words/high/a.wav', sound(700, 1937.3));
write('words/high/b.WAV', sound(300, 2100));
write('words/low/c.wav', sound(900, 300));
write('words/low/.notes.txt', Uint8Array.of(1));

type Fields = Partial<Parameters<typeof AudioInput.config>[0]>;
const features = LogMel.config({ sampleRate: 8000, numMels: 8, fftSize: 64, windowSize: 50, hopSize: 100 });
const configOf = (fields: Fields = {}) =>
  AudioInput.config({
    ...{ directory: join(directory, 'words'), numSamples: 500, features, split: 'all', batchSize: 3 },
    ...fields,
  });
const inputOf = (fields?: Fields) => build(configOf(fields));

test('a folder for each class: features, paddings behind the end, labels', async () => {
  const input = inputOf({ batchSize: 4 });
  expect(input.batchSpecs()).toEqual({
    inputs: { shape: [4, 6, 8], dtype: 'float32' },
    paddings: { shape: [4, 6], dtype: 'float32' },
    labels: { shape: [4], dtype: 'int32' },
    weights: { shape: [4], dtype: 'float32' },
  });
  const batch = await input.getNext();
  expect(batch.labels!.data).toEqual(Int32Array.of(0, 0, 1, 0));
  expect(batch.weights!.data).toEqual(Float32Array.of(1, 1, 1, 0));
  const whole = [0, 0, 0, 0, 0, 0];
  expect([...(batch.paddings!.data as Float32Array)]).toEqual([
    ...[...whole, ...[0, 0, 0, 0, 1, 1]],
    ...[...whole, ...[1, 1, 1, 1, 1, 1]],
  ]);
  // The middle frames of both classes are loudest where their tones lie.
  const loudest = (row: number) => {
    const frame = (batch.inputs!.data as Float32Array).subarray((row * 6 + 2) * 8, (row * 6 + 3) * 8);
    return frame.indexOf(Math.max(...frame));
  };
  expect(loudest(0)).toBeGreaterThan(loudest(2));
});

test('training crops by seed, epoch and record alone', async () => {
  const rows = async (fields: Fields, count: number) => {
    const input = inputOf({ isTraining: true, ...fields });
    const found: string[] = [];
    while (found.length < count) {
      const { data, shape } = (await input.getNext()).inputs as HostTensor;
      const size = data.length / shape[0]!;
      for (let b = 0; b < shape[0]!; b++) found.push(String(data.subarray(b * size, (b + 1) * size)));
    }
    return found.slice(0, count);
  };
  const all = await rows({ batchSize: 1 }, 12);
  expect(await rows({ batchSize: 5 }, 12)).toEqual(all);
  expect(await rows({ batchSize: 2, numInfeedHosts: 2, infeedHostIndex: 1 }, 2)).toEqual(all.slice(2, 4));
  // The short sound is the same in each epoch, the two long ones are cut anew.
  expect(new Set(all).size).toBe(9);
  // Equal sounds, whose tone rises, are cut at places of their own.
  const chirp = wavOf(shorts(Array.from({ length: 9000 }, (_, n) => 0.5 * Math.sin((n * n) / 9000))), {
    sampleRate: 8000,
  });
  for (const name of ['a', 'b', 'c']) write(`same/one/${name}.wav`, chirp);
  const same = join(directory, 'same');
  const cuts = await Promise.all(
    [0, 1].map((inputRandomSeed) => rows({ directory: same, inputRandomSeed }, 6)),
  );
  expect(new Set(cuts.flat()).size).toBe(12);
  const ahead = openInput(configOf({ isTraining: true, prefetchBatches: 1 }));
  const batch = await ahead.getNext();
  await ahead.close();
  expect(String(batch.inputs!.data)).toBe(all.slice(0, 3).join());
});

test('sample rates are checked, or brought to one', async () => {
  const other = LogMel.config({ sampleRate: 16_000, numMels: 8, fftSize: 64, windowSize: 50, hopSize: 100 });
  await expect(inputOf({ features: other }).getNext()).rejects.toThrow(
    `AudioInput 'input': ${join(directory, 'words/high/a.wav')} has 8000 samples per second, and the features' sampleRate ` +
      'is 16000. Set resample: true, or the sampleRate of the files.',
  );
  const examples = [
    wavOf(shorts([0, 0.5]), { sampleRate: 249 }),
    wavOf(shorts([0, 0.5]), { sampleRate: 2 ** 31 - 1 }),
  ];
  const resampling = inputOf({ features: other, resample: true, numSamples: 1000 });
  const options = { first: 0, readsFiles: false };
  await expect(resampling.exampleBatch(examples.slice(0, 1), [], options)).rejects.toThrow(
    "sound 0: it has 249 samples per second: resample brings sounds to at most 64 times their sample rate, and the features' sampleRate is 16000.",
  );
  await expect(resampling.exampleBatch(examples.slice(1), [], options)).resolves.toBeDefined();
  const batch = await inputOf({ features: other, resample: true, numSamples: 1000 }).getNext();
  expect([...(batch.paddings!.data as Float32Array).subarray(11, 22)]).toEqual([
    ...Array(7).fill(0),
    1,
    1,
    1,
    1,
  ]);
});

test('a damaged file is told with its name and the offset', async () => {
  write('cut/a/1.wav', sound(700, 2000).subarray(0, 100));
  write('cut/b/2.wav', sound(10, 2000));
  await expect(inputOf({ directory: join(directory, 'cut') }).getNext()).rejects.toThrow(
    `AudioInput 'input': ${join(directory, 'cut/a/1.wav')} is not a readable WAV file: at offset 44, chunk 'data' of ` +
      '1400 bytes is cut off at 100',
  );
  mkdirSync(join(directory, 'none'));
  await expect(inputOf({ directory: join(directory, 'none') }).getNext()).rejects.toThrow(
    `AudioInput 'input': ${join(directory, 'none')}: expected files in a folder for each class, such as CLASS/1.wav; got an empty folder.`,
  );
});
