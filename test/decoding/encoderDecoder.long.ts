/** @file An encoder-decoder: trained on copying, decoded by the command. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runCommand, temporaryDirectory } from '../command.js';

const src = fileURLToPath(new URL('../../src/', import.meta.url));

/** Rows of 2 to 5 letters (3 to 12), filled up with 0, to be copied behind the token 1 and up to the token 2. */
const experiment = `
import {
  AdamW, Decode, Experiment, Learner, SampleDecoder, SingleTask, Train,
} from '${src}index.ts';
import { SequenceModel } from '${src}models/index.ts';
import { SharedEmbeddingSoftmax, StackedTransformer, TransformerEncoderDecoder } from '${src}layers/index.ts';
import { RowInput } from '${src}inputs/index.ts';

const [VOCAB, LENGTH, ROWS] = [13, 5, 4096];
const LETTERS = {
  vocabSize: VOCAB, unkId: null,
  hasText: (id) => id > 2,
  decode: (ids) => Array.from(ids, (id) => String.fromCharCode(94 + id)).join(''),
};

export class Letters extends RowInput.with({}) {
  get numRows() { return ROWS; }
  identity() { return {}; }
  emptyBatch() {
    const { batchSize } = this.hp;
    const ints = (length) => ({ shape: [batchSize, length], dtype: 'int32', data: new Int32Array(batchSize * length) });
    const floats = (length) => ({ shape: [batchSize, length], dtype: 'float32', data: new Float32Array(batchSize * length).fill(1) });
    const [source, target] = [LENGTH, LENGTH + 1];
    return {
      src: { ids: ints(source), paddings: floats(source) },
      tgt: { ids: ints(target), labels: ints(target), weights: floats(target), paddings: floats(target) },
    };
  }
  fillRow(row, { src, tgt }, b) {
    const length = 2 + (row % 4);
    const [source, target] = [b * LENGTH, b * (LENGTH + 1)];
    const ids = Array.from({ length }, (_, t) => 3 + ((Math.imul(row * 31 + t * 17 + 5, 2654435761) >>> 13) % 10));
    src.ids.data.set(ids, source);
    src.paddings.data.fill(0, source, source + length);
    tgt.ids.data.set([1, ...ids], target);
    tgt.labels.data.set([...ids, 2], target);
    tgt.paddings.data.fill(0, target, target + length + 1);
    tgt.weights.data.fill(0, target + length + 1, target + LENGTH + 1);
  }
  vocabularyFor() { return LETTERS; }
}

export class Copy extends Experiment.with({}) {
  task() {
    const stack = () => StackedTransformer.config({ numLayers: 1, hiddenDims: 64, numHeads: 4 });
    const modelTpl = TransformerEncoderDecoder.config({
      modelDims: 32,
      encoderStackedTransformerTpl: stack(),
      decoderStackedTransformerTpl: stack(),
      softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: VOCAB, scaleSqrtDepth: true }),
    });
    return SingleTask.config({
      model: SequenceModel.config({ modelTpl }),
      train: Train.config({
        learner: Learner.config({ optimizer: AdamW.config({ learningRate: 5e-3, clipGradientNormToValue: 1 }) }),
        numTrainSteps: 200,
        evalIntervalSteps: 200,
      }),
      decode: Decode.config({
        decoder: SampleDecoder.config({ seqlen: LENGTH + 2, eosId: 2, numSamples: 2, temperature: 0 }),
      }),
    });
  }
  datasets() { return [Letters.config({ name: 'train', isTraining: true, batchSize: 64 })]; }
  decodeDatasets() { return [Letters.config({ name: 'again', batchSize: 8 })]; }
}
`;

test('an encoder-decoder learns to copy, and decodes copies, two samples of each', async () => {
  const folder = temporaryDirectory();
  mkdirSync(join(folder, 'experiments'));
  writeFileSync(join(folder, 'experiments/mine.ts'), `// @ts-nocheck\n${experiment}`);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const command = ['--exp=mine.Copy', '--job_log_dir=out', '--mode=train_and_decode'];
  const { code, stderr } = await runCommand(command, folder);
  expect([code, stderr]).toEqual([0, '']);
  const files = readdirSync(join(folder, 'out/decoder_out/again')).filter((name) => name.endsWith('.jsonl'));
  const lines = readFileSync(join(folder, 'out/decoder_out/again', files.at(-1)!), 'utf8')
    .trim()
    .split('\n');
  const decoded = lines.map(
    (line) => JSON.parse(line) as Record<'source' | 'original', string> & { sampled: { decoded: string }[] },
  );
  expect(decoded.length).toBe(8);
  expect(decoded.map(({ source }) => source.length)).toEqual([2, 3, 4, 5, 2, 3, 4, 5]);
  const copies = decoded.filter(
    ({ source, original, sampled }) =>
      original === source && sampled.every(({ decoded }) => decoded === source),
  );
  expect(copies.length, JSON.stringify(decoded.slice(0, 3))).toBe(8);
});
