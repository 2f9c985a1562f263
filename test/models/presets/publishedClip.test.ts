/** @file CLIP against transformers: embeddings, similarities, loss and gradients (scripts/record_clip.py), and its settings. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import type { Config } from '../../../src/hparams/index.js';
import { type ClipModel, pretrainedLm, pretrainedModel } from '../../../src/models/index.js';
import { temporaryDirectory } from '../../command.js';
import { run } from '../../layers/helpers.js';
import { loadedModel, thetaOf } from '../../programs/loadedModel.js';
import { distance, expectGradients, publishedFamily, recordOf } from './published.js';

const folder = publishedFamily('clip');
const whole = loadedModel(pretrainedModel(folder), folder);
const model = whole.task.model as ClipModel;
const record = recordOf(folder);
const recorded = (name: string): Tensor =>
  tf.tensor(record.read(name) as Float32Array, [...record.place(name)!.shape], 'float32') as Tensor;
const batch = {
  image: tf.transpose(recorded('images'), [0, 2, 3, 1]) as Tensor,
  'text.ids': tf.cast(recorded('ids'), 'int32') as Tensor,
  'text.paddings': tf.sub(1, recorded('mask')) as Tensor,
};

test('embeddings and similarities', () => {
  const { imageEmbeddings, textEmbeddings, logits } = run(
    thetaOf(whole),
    () => model.computePredictions(batch),
    { doEval: true },
  );
  expect(distance(imageEmbeddings.dataSync(), recorded('image_embeddings').dataSync())).toBeLessThan(1e-5);
  expect(distance(textEmbeddings.dataSync(), recorded('text_embeddings').dataSync())).toBeLessThan(1e-5);
  expect(distance(logits.dataSync(), recorded('logits').dataSync())).toBeLessThan(1e-5);
});

test('loss and gradients of one step', () => {
  expectGradients(model, whole, folder, () => model.fprop(batch)[0].contrastive_loss![0]);
});

test('settings of early versions: towers written twice, and an end of text that is the largest id', () => {
  const changed = join(temporaryDirectory(), 'clip');
  cpSync(folder, changed, { recursive: true });
  const file = join(changed, 'config.json');
  const settings = JSON.parse(readFileSync(file, 'utf8'));
  const write = (changes: object): void => writeFileSync(file, JSON.stringify({ ...settings, ...changes }));
  const generation = { length_penalty: 1, num_beam_groups: 1, num_return_sequences: 1, typical_p: 1 };
  write({
    text_config: { ...settings.text_config, ...generation, eos_token_id: 2, max_length: 20 },
    vision_config_dict: { patch_size: 6 },
  });
  const { textTpl, imageTpl } = pretrainedModel(changed) as Config<ClipModel>;
  expect(textTpl).toMatchObject({ pooling: 'endOfText', endOfTextId: null });
  expect(imageTpl).toMatchObject({ entryLayersTpl: { patchSize: 6, posEmbShapes: [2, 2] } });
  write({ vision_config: { ...settings.vision_config, hidden_act: 'tanh', image_size: [12, 8] } });
  expect(() => pretrainedModel(changed)).toThrow(
    `${file}: the network has no counterpart here, or the file is damaged:\n` +
      '  vision_config.hidden_act is "tanh": Invalid option: expected one of ' +
      '"gelu"|"gelu_new"|"gelu_pytorch_tanh"|"quick_gelu"|"relu"|"silu"|"swish"\n' +
      '  vision_config.image_size is [12,8]: Invalid input: expected number, received array',
  );
  write({ text_config: { ...settings.text_config, rope_theta: 5 } });
  expect(() => pretrainedModel(changed)).toThrow(
    '  text_config.rope_theta is 5: the field is not read, and may change',
  );
  expect(() => pretrainedLm(folder)).toThrow(
    `${join(folder, 'config.json')} is that of a ClipModel: expected a language model; pretrainedModel takes any.`,
  );
});
