/** @file Writes checkpoints, event files, tokenizers, media and ONNX files for scripts/check-readers.sh; its argument is the directory. */

import { join } from 'node:path';
import { Checkpointer, createTrainState } from '../../src/checkpoints/index.js';
import { EventFile } from '../../src/summaries/index.js';
import { slotsLike } from '../checkpoints/slotsLike.js';
import { writeImageSamples } from './imageSamples.js';
import { writeOnnxSamples } from './onnxSamples.js';
import { writeSoundSamples } from './soundSamples.js';
import { writeTokenizerSamples } from './tokenizerSamples.js';

async function writeSamples(directory: string): Promise<void> {
  const entries = [
    { name: 'lm/w', shape: [2, 3], offset: 0, size: 6 },
    { name: 'lm/b', shape: [3], offset: 16, size: 3 },
  ];
  const state = createTrainState({ size: 32, entries }, slotsLike({ size: 32, entries }, ['m']));
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
  await writeOnnxSamples(join(directory, 'onnx'));
}

const directory = process.argv[2]!;
writeTokenizerSamples(join(directory, 'tokenizer'));
void writeSamples(directory);
