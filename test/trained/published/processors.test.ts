/** @file Pixels and log-mel energies of imported datasets against processors of transformers (scripts/record_processors.py). */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encode } from 'fast-png';
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { arraysOf } from '../../../src/inputs/index.js';
import { pretrainedModel } from '../../../src/models/index.js';
import { importedDatasets } from '../../../src/trained/published/importedDatasets.js';
import { importedTask } from '../../../src/trained/published/importedTask.js';
import { temporaryDirectory } from '../../command.js';
import { shorts, wavOf } from '../../inputs/audio/sounds.js';
import { publishedFamily } from '../../models/presets/published.js';

const recorded: {
  readonly sizes: Readonly<Record<string, readonly [number, number]>>;
  readonly images: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;
  readonly sound: readonly number[];
} = JSON.parse(readFileSync(new URL('../../fixtures/published/processors.json', import.meta.url), 'utf8'));

/** Numbers that the dataset of an imported family makes of examples. */
async function made(family: string, path: string, examples: readonly unknown[], processor: object = {}) {
  const folder = join(temporaryDirectory(), family);
  cpSync(publishedFamily(family), folder, { recursive: true });
  const json = { added_tokens: [], model: { type: 'WordPiece', unk_token: 'a', vocab: { a: 0 } } };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(json));
  writeFileSync(join(folder, 'tokenizer_config.json'), '{}');
  writeFileSync(join(folder, 'preprocessor_config.json'), JSON.stringify(processor));
  const settings = { dtype: 'float32', maxLength: undefined, files: undefined } as const;
  const task = importedTask(pretrainedModel(folder, []), folder, settings);
  const input = build(importedDatasets(task, folder, undefined).at(-1)!);
  const batch = await input.exampleBatch(examples, [path], { first: 0, readsFiles: true });
  return new Map(arraysOf(batch)).get(path)!;
}

/** The image of the script, in a file. */
function imageOf([height, width]: readonly [number, number]): string {
  const data = new Uint8Array(height * width * 3);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let c = 0; c < 3; c++) {
        const edge = 90 * ((Math.floor(x / 5) + Math.floor(y / 4)) % 2);
        data[(y * width + x) * 3 + c] = (x * x * (c + 1) + 7 * y * (3 - c) + edge) % 256;
      }
  const path = join(temporaryDirectory(), 'image.png');
  writeFileSync(path, encode({ height, width, channels: 3, data }));
  return path;
}

test.each([
  ['vit', 'vit', {}, 0.5],
  ['vit', 'vit bicubic', { resample: 3 }, 0.5],
  ['clip', 'clip', {}, 0.28],
] as const)('%s has the pixels of %s', async (family, kind, processor, deviation) => {
  const path = family === 'clip' ? 'image' : 'inputs';
  const files = Object.values(recorded.sizes).map(imageOf);
  const examples = files.map((image) => (family === 'clip' ? { image } : image));
  const { data } = await made(family, path, examples, processor);
  for (const [i, [name, expected]] of Object.entries(recorded.images[kind]!).entries()) {
    const found = data.subarray(i * expected.length, (i + 1) * expected.length);
    const differences = expected.map((value, j) => Math.abs(found[j]! - value) * deviation * 255);
    // Pillow's weights have 22 bits: a value halfway between two levels may become either, of which small images have many.
    expect(Math.max(...differences), name).toBeLessThan(1.01);
    expect(differences.filter((difference) => difference > 0.1).length, name).toBeLessThan(
      expected.length / 16,
    );
  }
});

test('Whisper has the energies of its extractor', async () => {
  const samples = Array.from({ length: 3000 }, (_, i) =>
    Math.round(20_000 * Math.sin((i * i) / 9000) * Math.sin(i / 700)),
  );
  const sound = join(temporaryDirectory(), 'sound.wav');
  writeFileSync(sound, wavOf(shorts(samples.map((sample) => sample / 32_767))));
  const { data, shape } = await made('whisper', 'src.features', [{ sound }]);
  expect(shape).toEqual([1, 26, 6]);
  const differences = recorded.sound.map((value, i) => Math.abs(Number(data[i]) - value));
  expect(Math.max(...differences)).toBeLessThan(1e-4);
});
