/** @file An encoder and a decoder, written with layers: trained on copying, decoded by the command. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runCommand, temporaryDirectory } from '../command.js';

const src = fileURLToPath(new URL('../../src/', import.meta.url));

/** Rows of 2 to 5 letters (3 to 12), filled up with 0, to be copied behind the token 1 and up to the token 2. */
const experiment = `
import {
  AdamW, Decode, Experiment, gpt2Lm, Learner, SampleDecoder, SingleTask, sub, tf, Train,
} from '${src}index.ts';
import { BaseModel } from '${src}models/index.ts';
import {
  decodeStateSpecs, Embedding, StackedTransformer, TrainablePositionalEmbedding, TransformerLm,
} from '${src}layers/index.ts';
import { RowInput } from '${src}inputs/index.ts';

const [VOCAB, LENGTH, ROWS] = [13, 5, 4096];

export class Letters extends RowInput.with({}) {
  get numRows() { return ROWS; }
  identity() { return {}; }
  emptyBatch() {
    const { batchSize } = this.hp;
    const ints = (length) => ({ shape: [batchSize, length], dtype: 'int32', data: new Int32Array(batchSize * length) });
    const floats = (length) => ({ shape: [batchSize, length], dtype: 'float32', data: new Float32Array(batchSize * length) });
    return {
      inputIds: ints(LENGTH), ids: ints(LENGTH + 1), labels: ints(LENGTH + 1),
      weights: floats(LENGTH + 1), paddings: floats(LENGTH + 1),
    };
  }
  fillRow(row, batch, b) {
    const length = 2 + (row % 4);
    batch.ids.data[b * (LENGTH + 1)] = 1;
    for (let t = 0; t <= LENGTH; t++) {
      const id = t < length ? 3 + ((Math.imul(row * 31 + t * 17 + 5, 2654435761) >>> 13) % 10) : t === length ? 2 : 0;
      if (t < length) batch.inputIds.data[b * LENGTH + t] = id;
      batch.labels.data[b * (LENGTH + 1) + t] = id;
      if (t < LENGTH) batch.ids.data[b * (LENGTH + 1) + t + 1] = t < length ? id : 0;
      batch.weights.data[b * (LENGTH + 1) + t] = t <= length ? 1 : 0;
      batch.paddings.data[b * (LENGTH + 1) + t] = t <= length ? 0 : 1;
    }
  }
  idsToStrings({ data }) { return [[...data].join(' ')]; }
}

export class Seq2Seq extends BaseModel.with({
  encoderTpl: sub(StackedTransformer),
  decoderTpl: sub(TransformerLm),
}) {
  promptNames = ['inputIds'];
  setup() {
    const { encoderTpl, decoderTpl } = this.hp;
    const dims = { inputDims: decoderTpl.modelDims, numClasses: decoderTpl.vocabSize };
    this.embedding = this.createChild('embedding', Embedding.config(dims));
    this.positions = this.createChild('positions', TrainablePositionalEmbedding.config({ embeddingDims: dims.inputDims, maxSeqLength: LENGTH }));
    this.encoder = this.createChild('encoder', encoderTpl, { modelDims: dims.inputDims });
    this.decoder = this.createChild('decoder', decoderTpl);
  }
  get vocabSize() { return this.hp.decoderTpl.vocabSize; }
  decodeStateSpecs(rows, seqLen, memoryLen) {
    return { memory_paddings: { shape: [rows, memoryLen], dtype: 'float32' } };
  }
  initialDecodeState(rows, seqLen, { inputIds }) {
    return decodeStateSpecs(this, rows, seqLen, inputIds.shape[1]);
  }
  encode(ids) {
    const paddings = tf.cast(tf.equal(ids, tf.scalar(0, 'int32')), 'float32');
    const x = tf.add(this.embedding.embLookup(ids), this.positions.fprop(ids.shape[1]));
    return { states: this.encoder.fprop(x, { seen: { paddings }, paddings }), seen: { paddings } };
  }
  computePredictions(batch) {
    const memory = this.encode(batch.inputIds);
    return this.decoder.fprop({ ids: batch.ids, memory }, { classIds: batch.labels, classWeights: batch.weights });
  }
  computeLoss({ totalLoss, totalWeight }) { return [{ total_loss: [totalLoss, totalWeight] }, {}]; }
  begin({ inputIds }) {
    const { states, seen } = this.encode(inputIds);
    this.updateDecodeState('memory_paddings', seen.paddings);
    this.decoder.begin(states);
  }
  extendStep(ids, args) {
    return this.decoder.extendStep(ids, { ...args, memorySeen: { paddings: this.getDecodeState('memory_paddings') } });
  }
}

export class Copy extends Experiment.with({}) {
  task() {
    const common = { numLayers: 1, modelDims: 32, hiddenDims: 64, numHeads: 4 };
    const decoderTpl = gpt2Lm({ vocabSize: VOCAB, modelDims: 32, numLayers: 1, numHeads: 4, maxSeqLength: LENGTH + 1 });
    decoderTpl.stackedTransformerTpl.transformerLayerParamsTpl.useCrossAttention = true;
    return SingleTask.config({
      model: Seq2Seq.config({ encoderTpl: StackedTransformer.config(common), decoderTpl }),
      train: Train.config({
        learner: Learner.config({ optimizer: AdamW.config({ learningRate: 5e-3, clipGradientNormToValue: 1 }) }),
        numTrainSteps: 200,
        evalIntervalSteps: 200,
      }),
      decode: Decode.config({
        decoder: SampleDecoder.config({ seqlen: LENGTH + 2, eosId: 2, numSamples: 2, temperature: 0 }),
        prefixLength: 1,
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
  const files = readdirSync(join(folder, 'out/decoder_out/again'));
  const lines = readFileSync(join(folder, 'out/decoder_out/again', files.at(-1)!), 'utf8')
    .trim()
    .split('\n');
  const decoded = lines.map(
    (line) => JSON.parse(line) as { original: string; sampled: { decoded: string }[] },
  );
  expect(decoded.length).toBe(8);
  const copies = decoded.filter(({ original, sampled }) =>
    sampled.every(({ decoded }) => decoded === `${original} 2`),
  );
  expect(copies.length, JSON.stringify(decoded.slice(0, 3))).toBe(8);
});
