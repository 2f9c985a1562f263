/** @file Fingerprints of decoding: fields of decoders, their drawing, and the model's programs. */
import { expect, test } from 'vitest';
import { type Tensor, type TensorSpec, tf } from '../../../src/compiler/index.js';
import { GreedyDecoder, SampleDecoder } from '../../../src/decoding/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  SharedEmbeddingSoftmax,
  StackedTransformer,
  type StepArgs,
  TransformerEncoderDecoder,
} from '../../../src/layers/index.js';
import { Learner, Sgd } from '../../../src/learners/index.js';
import { gpt2Lm, LanguageModel, SequenceModel } from '../../../src/models/index.js';
import {
  decodingProgramsDigest,
  drawnDigest,
  promptSpecs,
} from '../../../src/review/fingerprints/decodingFingerprint.js';
import { Decode, SingleTask, Train } from '../../../src/tasks/index.js';

const common = { seqlen: 40, eosId: [] as number[] };

/** Draws lengths of prompts from the end. */
class Backwards extends GreedyDecoder {
  override drawPrefixLengths(...given: Parameters<GreedyDecoder['drawPrefixLengths']>) {
    const drawn = super.drawPrefixLengths(...given);
    return { ...drawn, data: drawn.data.toReversed() };
  }
}

const drawn = (decoder: Config<GreedyDecoder | SampleDecoder>, randomSeed = 1) =>
  drawnDigest(build(Decode.config({ decoder, randomSeed })));

test('every field, and every decoder, makes something else of the same logits', async () => {
  const decoders = [
    GreedyDecoder.config(common),
    Backwards.config(common),
    GreedyDecoder.config({ ...common, maxDecodeSteps: 5 }),
    GreedyDecoder.config({ ...common, seqlen: 41 }),
    SampleDecoder.config(common),
    SampleDecoder.config({ ...common, k: 7 }),
    SampleDecoder.config({ ...common, k: 0, p: 0.5 }),
    SampleDecoder.config({ ...common, temperature: 0.7 }),
    SampleDecoder.config({ ...common, numSamples: 2 }),
    SampleDecoder.config({ ...common, numSamples: 2, sortSamples: false }),
    SampleDecoder.config({ ...common, eosId: [...Array(30).keys()] }),
  ];
  const digests = await Promise.all(decoders.map((decoder) => drawn(decoder)));
  expect(new Set(digests).size).toBe(decoders.length);
  expect(await Promise.all(decoders.map((decoder) => drawn(decoder)))).toEqual(digests);
  expect(await drawn(SampleDecoder.config(common), 2)).not.toBe(digests[4]);
});

/** Logits of another scale. */
class Scaled extends LanguageModel {
  override extendStep(ids: Tensor, args: StepArgs): Tensor {
    return tf.mul(super.extendStep(ids, args), 2);
  }
}

test('the programs of prompts and tokens', () => {
  const programs = (Model: typeof LanguageModel, seqlen = 8, batchSize = 2) => {
    const lmTpl = gpt2Lm({ vocabSize: 8, modelDims: 4, numLayers: 1, numHeads: 1, maxSeqLength: 8 });
    const decode = Decode.config({ decoder: GreedyDecoder.config({ seqlen }) });
    const train = Train.config({ learner: Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) }) });
    const task = build(SingleTask.config({ model: Model.config({ lmTpl }), decode, train }));
    const specs = task.variables.map(({ path, shape, dtype }): [string, TensorSpec] => [
      path,
      { shape, dtype },
    ]);
    return decodingProgramsDigest(task, Object.fromEntries(specs), batchSize, undefined);
  };
  const plain = programs(LanguageModel);
  expect(programs(LanguageModel)).toBe(plain);
  expect(
    new Set([plain, programs(Scaled), programs(LanguageModel, 7), programs(LanguageModel, 8, 3)]).size,
  ).toBe(4);
});

test('the program that reads a source', () => {
  const stack = () => StackedTransformer.config({ numLayers: 1, hiddenDims: 4, numHeads: 1 });
  const modelTpl = TransformerEncoderDecoder.config({
    ...{ modelDims: 4, encoderStackedTransformerTpl: stack(), decoderStackedTransformerTpl: stack() },
    softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: 8 }),
  });
  const train = Train.config({ learner: Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) }) });
  const task = build(SingleTask.config({ model: SequenceModel.config({ modelTpl }), train }));
  const params = Object.fromEntries(
    task.variables.map(({ path, shape, dtype }): [string, TensorSpec] => [path, { shape, dtype }]),
  );
  const programs = (length: number) => {
    const src: Record<string, TensorSpec> = {
      ids: { shape: [3, length], dtype: 'int32' },
      paddings: { shape: [3, length], dtype: 'float32' },
    };
    return decodingProgramsDigest(
      task,
      params,
      2,
      promptSpecs(task, () => ({ src })),
    );
  };
  expect(programs(5)).toBe(programs(5));
  expect(programs(5)).not.toBe(programs(6));
});

/** A model that hands on what a network reads before a decode, of which there is nothing. */
class Referring extends LanguageModel {
  readonly promptNames: readonly string[] = [];
}

test('a model that begins with tokens alone has no prompt, though it may name the arrays of one', () => {
  const lmTpl = gpt2Lm({ vocabSize: 16, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 8 });
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 0.1 }) });
  const task = build(
    SingleTask.config({ model: Referring.config({ lmTpl }), train: Train.config({ learner }) }),
  );
  expect(promptSpecs(task, () => ({}))).toBeUndefined();
});
