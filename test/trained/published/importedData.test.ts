/** @file Data of imported encoder-decoders, classifiers of images and CLIP: what they are given, and what they make of it. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encode } from 'fast-png';
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { arraysOf } from '../../../src/inputs/index.js';
import { importPublished, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { temporaryDirectory } from '../../command.js';
import { shorts, wavOf } from '../../inputs/audio/sounds.js';
import { run as applied } from '../../layers/helpers.js';
import { longTest } from '../../longTest.js';
import { publishedFamily, recordOf } from '../../models/presets/published.js';

/** A run of a family, with a tokenizer of the words w0, w1, … where texts have one. */
async function imported(
  family: string,
  files: readonly string[],
  words?: {
    readonly count: number;
    readonly special: Readonly<Record<number, string>>;
    readonly roles: object;
  },
): Promise<TrainedRun> {
  const [folder, jobLogDir] = ['model', 'run'].map((name) => join(temporaryDirectory(), name)) as [
    string,
    string,
  ];
  cpSync(publishedFamily(family), folder, { recursive: true });
  if (words !== undefined) {
    const { count, special, roles } = words;
    const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
    const vocab = Object.fromEntries(Array.from({ length: count }, (_, id) => [special[id] ?? `w${id}`, id]));
    const added_tokens = Object.entries(special).map(([id, content]) => ({
      id: Number(id),
      content,
      ...flags,
    }));
    const rules = { unk_token: 'w5', continuing_subword_prefix: '##', max_input_chars_per_word: 9 };
    const model = { type: 'WordPiece', ...rules, vocab };
    const json = { added_tokens, pre_tokenizer: { type: 'WhitespaceSplit' }, model };
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(json));
    writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(roles));
  }
  await importPublished({
    ...{
      folder,
      jobLogDir,
      dtype: 'float32',
      maxLength: 16,
      files,
      ignoredFields: [],
      ignoredTensors: [],
    },
  });
  return loadRun(jobLogDir, { engine: 'eager' });
}

/** The first training batch, and the model's loss of it. */
async function trained({ document, task, params }: TrainedRun) {
  const batch = await build(document.datasets[0]!).getNext();
  const arrays = Object.fromEntries(
    Array.from(arraysOf(batch), ([path, { data, shape, dtype }]) => [
      path,
      tf.tensor(data, [...shape], dtype) as Tensor,
    ]),
  );
  const theta = Object.fromEntries(
    params.layout.entries.map(({ name, shape }) => [
      name,
      tf.tensor(params.views[name] as Float32Array, [...shape]),
    ]),
  );
  const [metrics] = applied(theta, () => task.model.fprop(arrays), { doEval: true });
  const shapes = Object.fromEntries(Object.entries(arrays).map(([path, { shape }]) => [path, shape]));
  return { arrays, shapes, loss: metrics.total_loss![0].dataSync()[0]! };
}

/** A table in a file. */
function tableOf(lines: readonly string[]): string {
  const file = join(temporaryDirectory(), 'table.csv');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

/** A folder with an image of one colour, and its path. */
function picture(folder: string, grey: number): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${grey}.png`);
  writeFileSync(
    path,
    encode({ height: 12, width: 12, channels: 3, data: new Uint8Array(12 * 12 * 3).fill(grey) }),
  );
  return path;
}

longTest('T5 translates as transformers does, and trains on pairs', async () => {
  const files = [tableOf(['inputs,targets', ...Array.from({ length: 20 }, () => 'w2 w3,w4')])];
  const special = { 0: '<pad>', 1: '</s>', 13: 'w13' };
  const roles = { eos_token: 'w13', pad_token: '<pad>' };
  const run = await imported('t5', files, { count: 40, special, roles });
  const record = recordOf(publishedFamily('t5'));
  record.close();
  const tokens: number[] = JSON.parse(record.layout.metadata.tokens!).slice(0, 12);
  // The recorded source is 2 to 13, of which the last stands for the end here.
  const source = Array.from({ length: 11 }, (_, i) => `w${i + 2}`).join(' ');
  expect(await run.generate(source, { maxTokens: tokens.length })).toBe(
    tokens.map((id) => `w${id}`).join(' '),
  );
  await run.dispose();
  const { arrays, loss } = await trained(run);
  expect([...arrays['src.ids']!.dataSync().slice(0, 4)]).toEqual([2, 3, 13, 0]);
  expect([...arrays['tgt.ids']!.dataSync().slice(0, 3)]).toEqual([0, 4, 0]);
  expect([...arrays['tgt.labels']!.dataSync().slice(0, 3)]).toEqual([4, 13, 0]);
  expect(loss).toBeGreaterThan(0);
});

test('ViT has images of its size by the names of its classes', async () => {
  const folder = temporaryDirectory();
  const paths = Array.from({ length: 12 }, (_, i) => picture(join(folder, `LABEL_${i % 6}`), 20 * i));
  const run = await imported('vit', [folder]);
  const [found] = await run.predict([paths[0]!]);
  expect(Object.keys(found!.probabilities!)).toEqual(Array.from({ length: 6 }, (_, id) => `LABEL_${id}`));
  await run.dispose();
  const { arrays, shapes, loss } = await trained(run);
  expect(shapes).toEqual({ inputs: [8, 12, 12, 3], labels: [8], weights: [8] });
  // A grey of 20 i is 2 × 20 i / 255 − 1 by the mean and the deviation of 0.5.
  const greys = Array.from(tf.mean(arrays.inputs!, [1, 2, 3]).dataSync(), (x) =>
    Math.round(((x + 1) / 2) * 255),
  );
  expect(greys.map((grey) => (grey / 20) % 6)).toEqual([...arrays.labels!.dataSync()]);
  expect(loss).toBeGreaterThan(0);
});

test('Whisper writes down a sound, and trains on tables of them', async () => {
  const sound = join(temporaryDirectory(), 'sound.wav');
  writeFileSync(sound, wavOf(shorts(Array.from({ length: 400 }, (_, n) => Math.sin(n / 3)))));
  const special = {
    40: '<|start|>',
    41: '<|en|>',
    42: '<|transcribe|>',
    43: '<|notimestamps|>',
    44: '<|end|>',
  };
  const words = { count: 48, special, roles: { eos_token: '<|end|>' } };
  const run = await imported(
    'whisper',
    [tableOf(['sound,text', ...Array(10).fill(`${sound},w2 w3`)])],
    words,
  );
  const { promptIds } = run.stream(sound, { maxTokens: 1 });
  expect([...promptIds]).toEqual([40, 41, 42, 43]);
  expect(await run.generate(sound, { maxTokens: 3 })).toMatch(/^(w\d+ ){2}w\d+$/);
  const asText = async () => {
    for await (const _ of await run.begin(sound, { maxTokens: 1 }));
  };
  await expect(asText()).rejects.toThrow(
    "The source: record 0: feature 'src', expected a file's bytes, got string",
  );
  await run.dispose();
  const { arrays, shapes, loss } = await trained(run);
  expect(shapes['src.features']).toEqual([8, 26, 6]);
  expect([...arrays['src.paddings']!.dataSync()].some((padding) => padding !== 0)).toBe(false);
  expect([...arrays['tgt.ids']!.dataSync().slice(0, 7)]).toEqual([40, 41, 42, 43, 2, 3, 0]);
  expect([...arrays['tgt.labels']!.dataSync().slice(0, 7)]).toEqual([41, 42, 43, 2, 3, 44, 0]);
  expect([...arrays['tgt.weights']!.dataSync().slice(0, 7)]).toEqual([0, 0, 0, 1, 1, 1, 0]);
  expect([...arrays['tgt.paddings']!.dataSync().slice(0, 7)]).toEqual([0, 0, 0, 0, 0, 0, 1]);
  expect(loss).toBeGreaterThan(0);
});

test('CLIP compares images with their captions', async () => {
  const folder = temporaryDirectory();
  const lines = Array.from({ length: 10 }, (_, i) => `${picture(folder, 20 * i)},w${i}`);
  const words = {
    count: 29,
    special: { 25: '<s>', 27: '</s>' },
    roles: { bos_token: '<s>', eos_token: '</s>' },
  };
  const run = await imported('clip', [tableOf(['image,text', ...lines])], words);
  await run.dispose();
  const { arrays, shapes, loss } = await trained(run);
  expect(shapes).toEqual({
    image: [8, 12, 12, 3],
    'text.ids': [8, 8],
    'text.paddings': [8, 8],
    weights: [8],
  });
  const [first, , last] = arrays['text.ids']!.dataSync();
  expect([first, last]).toEqual([25, 27]);
  expect(loss).toBeGreaterThan(0);
});
