/** @file Whisper against transformers: logits and greedy tokens of a decode, loss and gradients (scripts/record_whisper.py). */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { pretrainedModel, type SequenceModel } from '../../../src/models/index.js';
import { ints, run } from '../../layers/helpers.js';
import { loadedModel, thetaOf } from '../../programs/loadedModel.js';
import { distance, expectGradients, publishedFamily, recordOf } from './published.js';

const folder = publishedFamily('whisper');
const whole = loadedModel(pretrainedModel(folder), folder);
const model = whole.task.model as SequenceModel;
const record = recordOf(folder);
const ids: number[] = JSON.parse(record.layout.metadata.ids!);
const [frames, mels] = record.place('features')!.shape as [number, number];
const features = tf.tensor(record.read('features') as Float32Array, [1, frames, mels], 'float32') as Tensor;
const prompt = { 'src.features': features, 'src.paddings': tf.zeros([1, frames]) as Tensor };
/** Tokens of the language and the task, and tokens of a step of the decode; those behind the prompt are greedy. */
const [PROMPT, STEP] = [3, 11];

test('loss and gradients of one step', () => {
  const shape = [1, ids.length - 1];
  const batch = {
    ...prompt,
    'tgt.ids': ints(ids.slice(0, -1), shape),
    'tgt.labels': ints(ids.slice(1), shape),
    'tgt.paddings': tf.zeros(shape) as Tensor,
    'tgt.weights': tf.ones(shape) as Tensor,
  };
  expectGradients(model, whole, folder, () => model.fprop(batch)[0].avg_xent![0]);
});

test('logits and greedy tokens of a decode', () => {
  const theta = thetaOf(whole);
  const specs = {
    'src.features': { shape: [1, frames, mels], dtype: 'float32' },
    'src.paddings': { shape: [1, frames], dtype: 'float32' },
  } as const;
  const decodeState = Object.fromEntries(
    Object.entries(model.initialDecodeState(1, ids.length, specs)).map(([path, spec]) => [
      path,
      tf.zeros([...spec.shape], spec.dtype) as Tensor,
    ]),
  );
  run(theta, () => model.begin(prompt), { decodeState, doEval: true });
  const steps: number[] = [];
  for (let at = 0; at < ids.length - 1; at += STEP) {
    const next = ids.slice(at, Math.min(at + STEP, ids.length - 1));
    const step = () => model.extendStep(ints(next, [1, next.length]), { timeStep: tf.scalar(at, 'int32') });
    steps.push(...run(theta, step, { decodeState, doEval: true }).dataSync());
  }
  expect(distance(steps, record.read('logits') as Float32Array)).toBeLessThan(1e-4);
  const best = tf.argMax(tf.tensor(steps, [ids.length - 1, model.vocabSize]), 1).dataSync();
  expect([...best.slice(PROMPT - 1)]).toEqual(ids.slice(PROMPT));
});
