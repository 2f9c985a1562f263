/** @file Writes a checkpoint, an event file, a tokenizer and media for scripts/check-readers.sh; its argument is the directory. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { Checkpointer, createTrainState } from '../../src/checkpoints/index.js';
import { build } from '../../src/hparams/index.js';
import { PretrainedTokenizer, resolveFiles } from '../../src/inputs/index.js';
import { EventFile } from '../../src/summaries/index.js';
import { trainedJson } from '../inputs/vocabularies/trainedBpe.js';
import { writeImageSamples } from './imageSamples.js';
import { writeSoundSamples } from './soundSamples.js';

async function writeSamples(directory: string): Promise<void> {
  const entries = [
    { name: 'lm/w', shape: [2, 3], offset: 0, size: 6 },
    { name: 'lm/b', shape: [3], offset: 16, size: 3 },
  ];
  const state = createTrainState({ size: 32, entries }, ['m']);
  state.step = 123_456;
  state.params.forEach((_, index) => {
    state.params[index] = index / 8;
  });
  state.slots.m!.fill(-0.5);
  const checkpointer = new Checkpointer({
    directory: join(directory, 'checkpoints'),
    experiment: 'check.Readers',
  });
  await checkpointer.save(state, { inputState: { batches: 7 } });
  await checkpointer.close();

  const events = join(directory, 'summaries', 'train');
  const first = new EventFile(events, { now: () => 1_700_000_000_000 });
  for (const step of [1, 2, 3, 4]) first.summaries(step, { loss: step / 4, 'learning/lr': 0.125 });
  first.summaries(1, { Model: 'lm : **α**' });
  first.summaries(2, { 'params/w': Float32Array.of(-1, 0, 0, 2, Number.NaN) });
  const data = Float32Array.from({ length: 2 * 3 * 4 * 3 }, (_, i) => i / 71);
  first.summaries(2, { inputs: { shape: [2, 3, 4, 3], data } });
  first.close();
  const run = new EventFile(join(directory, 'summaries'), { now: () => 1_700_000_000_000 });
  run.hparams(0, { learningRate: 0.25, optimizer: 'adam' });
  run.close();
  // A run that went on from step 2: what the first said of steps 3 and 4 no longer counts.
  const resumed = new EventFile(events, { resumeStep: 2, now: () => 1_700_000_100_000 });
  resumed.summaries(3, { loss: 8, 'learning/lr': 0.25 });
  resumed.close();

  writeImageSamples(join(directory, 'images.json'));
  writeSoundSamples(join(directory, 'sounds.json'));
}

/** A tokenizer that is trained on declarations, and its ids of random texts. */
function writeTokenizer(directory: string): void {
  const specialTokens = ['<|endoftext|>', '<|endoftext|>s'];
  const vocabSize = 4096;
  const documents = resolveFiles(['pkg:typescript/lib/lib.*.d.ts']).map(({ path }) =>
    readFileSync(path, 'utf8'),
  );
  const file = join(directory, 'tokenizer.json');
  mkdirSync(directory, { recursive: true });
  writeFileSync(file, trainedJson(documents, vocabSize, specialTokens));
  const tokenizer = build(PretrainedTokenizer.config({ file }));
  const part = fc.oneof(
    fc.constantFrom(
      ' ',
      '  ',
      '\n',
      '\t',
      "'s",
      "'ll",
      "'",
      ' interface',
      'string',
      '<|endoftext|>',
      '<|end',
    ),
    fc.constantFrom('\u0085', '\ufeff', '\u3000', '\u0301', '😀', '漢字', 'Größe', '½', '٣', '0042'),
    fc.string({ unit: 'grapheme', maxLength: 4 }),
    fc.string({ unit: 'grapheme-ascii', maxLength: 8 }),
  );
  const random = fc.sample(fc.array(part, { maxLength: 30 }), { numRuns: 5000, seed: 1 });
  // Words beyond the length from which merges are queued.
  const long = ['a', 'interface', ' ', '/', 'é'].map((unit) => unit.repeat(500));
  const texts = [...random.map((parts) => parts.join('')), ...long, ...documents.slice(0, 5)];
  const samples = texts.map((text) => ({ text, ids: [...tokenizer.encode(text)] }));
  writeFileSync(
    join(directory, 'samples.json'),
    JSON.stringify({ vocabSize, specialTokens, documents, texts: samples }),
  );
}

const directory = process.argv[2]!;
writeTokenizer(join(directory, 'tokenizer'));
void writeSamples(directory);
