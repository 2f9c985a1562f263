/** @file Settings of inputs beside those of the model: told before the first step, in training and by `validate`. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compile, ops, type Tensor } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseFeatureConverter,
  type BaseInput,
  ByteTokenizer,
  ClassFeature,
  Feature,
  LanguageModelFeatures,
  MaskedLanguageModelFeatures,
  RebatchedInput,
  RecordInput,
  SeqioInput,
  SequenceModelFeatures,
  SyntheticLmInput,
  Task,
  TextFileSource,
  TextInput,
} from '../../src/inputs/index.js';
import {
  Embedding,
  SharedEmbeddingSoftmax,
  StackedTransformer,
  TransformerEncoderDecoder,
} from '../../src/layers/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { ClassificationMLPModel, gpt2Lm, LanguageModel, SequenceModel } from '../../src/models/index.js';
import { checkAgreement, checkClasses, checkVocabulary } from '../../src/programs/inputAgreement.js';
import { SingleTask, Train } from '../../src/tasks/index.js';

const file = join(mkdtempSync(join(tmpdir(), 'luthier-agreement-')), 'text.txt');
writeFileSync(file, 'Some text. '.repeat(40));

const train = Train.config({ learner: Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) }) });
const taskOf = (settings: object = {}) => {
  const lmTpl = gpt2Lm({ vocabSize: 300, modelDims: 8, numLayers: 1, numHeads: 1, maxSeqLength: 16 });
  return build(
    SingleTask.config({ model: LanguageModel.config({ lmTpl: Object.assign(lmTpl, settings) }), train }),
  );
};
const shape = { batchSize: 2, seqLen: 8, isTraining: true } as const;
const text = (packed = false) =>
  TextInput.config({ ...shape, name: 'text', files: [file], tokenizer: ByteTokenizer.config(), packed });
const seqio = (featureConverter: Config<BaseFeatureConverter>) =>
  SeqioInput.config({
    mixtureOrTask: Task.config({
      source: TextFileSource.config({ files: [file] }),
      preprocessors: [],
      features: {
        inputs: Feature.config({ tokenizer: ByteTokenizer.config() }),
        targets: Feature.config({ tokenizer: ByteTokenizer.config() }),
      },
    }),
    ...{ splitName: 'all', featureConverter, name: 'examples', batchSize: 2, isTraining: true },
    taskFeatureLengths: { inputs: 8, targets: 8 },
  });

const check = (settings: object, input: Config<BaseInput>) => () =>
  checkAgreement(taskOf(settings), build(input));

test('packed rows need a model that tells documents apart', () => {
  const message = (name: string, field: string) =>
    `Input '${name}' packs several documents into a row (${field} is true), and task.model.lmTpl.packedInput is false: ` +
    `documents would attend to one another. Set task.model.lmTpl.packedInput to true, or the input's ${field} to false.`;
  expect(check({}, text(true))).toThrow(message('text', 'packed'));
  expect(check({}, seqio(LanguageModelFeatures.config({ pack: true })))).toThrow(
    message('examples', 'featureConverter.pack'),
  );
  const rebatched = RebatchedInput.config({
    input: text(true),
    name: 'again',
    batchSize: 3,
    isTraining: true,
  });
  expect(check({}, rebatched)).toThrow(message('again', 'input.packed'));
  for (const input of [text(true), seqio(LanguageModelFeatures.config({ pack: true }))])
    check({ packedInput: true }, input)();
  check({}, text())();
  check({}, SyntheticLmInput.config({ ...shape, vocabSize: 9, packed: true }))();
});

test('a bidirectional model sees neither its labels nor padding', () => {
  const bidirectional = { modelType: 'bidirectional' };
  for (const [name, input] of Object.entries({
    text: text(),
    examples: seqio(LanguageModelFeatures.config()),
  }))
    expect(check(bidirectional, input)).toThrow(
      `Input '${name}' has labels that are the next tokens, and task.model.lmTpl.modelType is 'bidirectional': every ` +
        "position would see its label. Set task.model.lmTpl.modelType to 'causal', or give the input masked tokens " +
        '(MaskedLanguageModelFeatures).',
    );
  const masked = seqio(MaskedLanguageModelFeatures.config());
  expect(check(bidirectional, masked)).toThrow(
    "Input 'examples' fills rows up with padding, and task.model.lmTpl.modelType is 'bidirectional' with usePaddings " +
      'false: tokens would attend to padding. Set task.model.lmTpl.usePaddings to true.',
  );
  check({ ...bidirectional, usePaddings: true }, masked)();
  check({ ...bidirectional, packedInput: true }, masked)();
  check({}, masked)();
});

test('an encoder-decoder packs as its input does, and knows the ids of both halves', () => {
  const stack = () => StackedTransformer.config({ numLayers: 1, hiddenDims: 4, numHeads: 1 });
  const task = (numClasses: number, sources: number) =>
    build(
      SingleTask.config({
        model: SequenceModel.config({
          modelTpl: TransformerEncoderDecoder.config({
            ...{ modelDims: 4, encoderStackedTransformerTpl: stack(), decoderStackedTransformerTpl: stack() },
            encoderEmbeddingTpl: Embedding.config({ numClasses: sources }),
            softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses }),
          }),
        }),
        train,
      }),
    );
  const input = (pack: boolean) => build(seqio(SequenceModelFeatures.config({ pack })));
  checkAgreement(task(9, 9), input(false));
  expect(() => checkAgreement(task(9, 9), input(true))).toThrow(
    "Input 'examples' packs several documents into a row (featureConverter.pack is true), and " +
      'task.model.modelTpl.packedInput is false',
  );
  const ids = input(false).vocabularyFor('src.ids').vocabSize;
  const check = (classes: number, sources: number) => () =>
    checkVocabulary(task(classes, sources), input(false), input(false).knownIdentity());
  check(ids, ids)();
  expect(check(ids, 9)).toThrow(
    `Input 'examples': 'src.ids' has ${ids} ids, and task.model.modelTpl.encoderEmbeddingTpl.numClasses is 9: the model ` +
      `knows ids 0 to 8. Set task.model.modelTpl.encoderEmbeddingTpl.numClasses to ${ids} or more, or give the input a ` +
      'tokenizer with fewer ids.',
  );
  expect(check(9, ids)).toThrow(
    `Input 'examples': 'tgt.ids' has ${ids} ids, and task.model.modelTpl.softmaxTpl.numClasses is 9`,
  );
});

test('other models say nothing of their rows', () => {
  const model = ClassificationMLPModel.config();
  Object.assign(model.mlpTpl.ffTpl, { inputDims: 4, outputDims: 4 });
  Object.assign(model.softmaxTpl, { inputDims: 4, numClasses: 300 });
  checkAgreement(build(SingleTask.config({ model, train })), build(text(true)));
});

test('the classes of labels are as many as the model has, and the same in all datasets', async () => {
  const input = (name: string, classes: string[] | number) =>
    build(
      RecordInput.config({
        ...{ name, batchSize: 2, source: [], isTraining: true },
        features: { labels: ClassFeature.config({ column: 'kind', classes }) },
      }),
    );
  const executable = await compile(
    ({ batch }: { batch: { logits: Tensor; labels: Tensor } }) =>
      ops.softmaxCrossEntropy(batch.logits, batch.labels),
    {
      batch: {
        logits: { shape: [2, 3], dtype: 'float32' },
        labels: { shape: [2], dtype: 'int32' },
      },
    },
    { engine: 'onnx' },
  );
  const step = { indexLimits: executable.indexLimits() };
  await executable.dispose();
  const three = input('train', ['cat', 'cow', 'dog']);
  checkClasses(step, three, [
    input('same', ['cat', 'cow', 'dog']),
    input('fewer', ['cat', 'cow']),
    input('ids', 3),
  ]);
  expect(() => checkClasses(step, input('train', ['ant', 'cat', 'cow', 'dog']), [])).toThrow(
    "Input 'train': 'labels' has 4 classes, and the model's are 3 classes. Give the model as many classes as the input has.",
  );
  expect(() => checkClasses(step, three, [input('held_out', ['cat', 'dog'])])).toThrow(
    "Input 'held_out': id 1 of 'labels' is class 'dog', and in training, input 'train', it is 'cow': ids would mean other " +
      'classes. Give both the same classes, in the same order.',
  );
});
