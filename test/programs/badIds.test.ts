/** @file Ids that a model doesn't know, in a batch: the whole message, with the field of the config that says which there are. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HostTensor } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import type { Batch } from '../../src/inputs/index.js';
import {
  Conformer,
  ConformerEncoder,
  FullSoftmax,
  Linear,
  SharedEmbeddingSoftmax,
  StackedTransformer,
  TransformerEncoderDecoder,
  TransformerLm,
} from '../../src/layers/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import {
  type BaseModel,
  BertModel,
  ClassificationMLPModel,
  ClassificationModel,
  CtcModel,
  gpt2Lm,
  LanguageModel,
  LanguageModelDPO,
  LanguageModelGRPO,
  SequenceModel,
  SequenceModelDPO,
} from '../../src/models/index.js';
import { EvalSteps } from '../../src/programs/evalStep.js';
import { paramsOf } from '../../src/programs/taskState.js';
import type { JobOptions } from '../../src/runs/options.js';
import { Evaluation, SingleTask, Train } from '../../src/tasks/index.js';

const ints = (values: number[], ...shape: number[]): HostTensor => ({
  ...{ shape, dtype: 'int32', data: Int32Array.from(values) },
});
const filled = (value: number, ...shape: number[]): HostTensor => ({
  ...{
    shape,
    dtype: 'float32',
    data: new Float32Array(shape.reduce((size, dim) => size * dim, 1)).fill(value),
  },
});
const rows = { paddings: filled(0, 2, 3), weights: filled(1, 2, 3) };

/** Evaluations of batches like one: their messages. */
async function evaluations(model: Config<BaseModel>): Promise<(batch: Batch) => Promise<string>> {
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) });
  const config = SingleTask.config({ model, train: Train.config({ learner }) });
  const task = build(config);
  const options: JobOptions = {
    ...{ name: 'bad', task: config, datasets: [], decodeDatasets: [], moduleUrl: import.meta.url },
    ...{ jobLogDir: '', mode: 'eval', overrides: [], classVars: '', engine: 'onnx', numThreads: 1 },
  };
  const steps = new EvalSteps(options, task, paramsOf(task));
  return (batch) =>
    steps.run('test', batch, new Evaluation({})).then(
      () => 'no error',
      (error: Error) => error.message,
    );
}

/** The message of an evaluation of a batch. */
const told = async (model: Config<BaseModel>, batch: Batch): Promise<string> =>
  (await evaluations(model))(batch);

const stack = () => StackedTransformer.config({ numLayers: 1, hiddenDims: 4, numHeads: 1 });

const lmTpl = gpt2Lm({ vocabSize: 8, modelDims: 4, numLayers: 1, numHeads: 1, maxSeqLength: 3 });
const modelTpl = TransformerEncoderDecoder.config({
  ...{ modelDims: 4, encoderStackedTransformerTpl: stack(), decoderStackedTransformerTpl: stack() },
  softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: 6 }),
});
const six = () => ints([0, 1, 2, 3, 4, 5], 2, 3);

test('LanguageModel: labels, with the number of the example', async () => {
  const batch = {
    ...rows,
    ids: ints([1, 2, 3, 4, 5, 6], 2, 3),
    labels: ints([2, 3, 4, 5, 8, 7], 2, 3),
    exampleIds: ints([40, 41], 2),
  };
  expect(await told(LanguageModel.config({ lmTpl }), batch)).toBe(
    "Input 'test': labels[1,1] (example 41) of its batch, 8 is not one of the 8 classes, 0 to 7 (in layer 'lm/softmax'). " +
      'task.model.lmTpl.vocabSize is 8.',
  );
});

test('LanguageModel: drawn ids and labels out of range', async () => {
  const tell = await evaluations(LanguageModel.config({ lmTpl }));
  const outside = fc.oneof(
    fc.integer({ min: 8, max: 2 ** 31 - 1 }),
    fc.integer({ min: -(2 ** 31), max: -1 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('ids', 'labels'), fc.nat(5), outside, async (array, at, id) => {
      const bad = six();
      bad.data[at] = id;
      const what = array === 'ids' ? 'rows of float32[8,4]' : 'classes';
      expect(await tell({ ...rows, ids: six(), labels: six(), [array]: bad })).toBe(
        `Input 'test': ${array}[${Math.floor(at / 3)},${at % 3}] of its batch, ${id} is not one of the 8 ${what}, 0 to 7 ` +
          "(in layer 'lm/softmax'). task.model.lmTpl.vocabSize is 8.",
      );
    }),
    { numRuns: 60 },
  );
});

test('ClassificationModel: labels', async () => {
  const model = ClassificationModel.config({
    ...{ inputField: 'inputs', labelField: 'labels' },
    networkTpl: Linear.config({ inputDims: 3, outputDims: 4 }),
    softmaxTpl: FullSoftmax.config({ inputDims: 4, numClasses: 6 }),
  });
  expect(await told(model, { inputs: filled(1, 2, 3), labels: ints([5, -1], 2) })).toBe(
    "Input 'test': labels[1] of its batch, -1 is not one of the 6 classes, 0 to 5 (in layer 'softmax'). " +
      'task.model.softmaxTpl.numClasses is 6.',
  );
});

test('SequenceModel: ids of the source', async () => {
  const batch = {
    src: { ...rows, ids: ints([0, 1, 2, 3, 4, 9], 2, 3) },
    tgt: { ...rows, ids: six(), labels: six() },
  };
  expect(await told(SequenceModel.config({ modelTpl }), batch)).toBe(
    "Input 'test': src.ids[1,2] of its batch, 9 is not one of the 6 rows of float32[6,4], 0 to 5 (in layer 'model/softmax'). " +
      'task.model.modelTpl.softmaxTpl.numClasses is 6.',
  );
});

test.each([
  ['chosen', 'labels', 'classes'],
  ['rejected', 'labels', 'classes'],
  ['rejected', 'ids', 'rows of float32[8,4]'],
])('LanguageModelDPO: %s %s, though both halves are one pass', async (half, array, what) => {
  const whole = () => ({ ...rows, ids: six(), labels: six() });
  const batch = { chosen: whole(), rejected: whole(), exampleIds: ints([40, 41], 2) };
  const bad = { ...batch, [half]: { ...whole(), [array]: ints([0, 1, 2, 3, -1, 5], 2, 3) } };
  expect(await told(LanguageModelDPO.config({ mdl: lmTpl }), bad)).toBe(
    `Input 'test': ${half}.${array}[1,1] (example 41) of its batch, -1 is not one of the 8 ${what}, 0 to 7 (in layer 'mdl/softmax'). ` +
      'task.model.mdl.vocabSize is 8.',
  );
});

test('SequenceModelDPO: labels and sources', async () => {
  const whole = () => ({ ...rows, ids: six(), labels: six() });
  const batch = { src: { ...rows, ids: six() }, chosen: whole(), rejected: whole() };
  const model = SequenceModelDPO.config({ mdl: modelTpl });
  const eight = ints([0, 1, 2, 3, 4, 8], 2, 3);
  expect(await told(model, { ...batch, rejected: { ...whole(), labels: eight } })).toBe(
    "Input 'test': rejected.labels[1,2] of its batch, 8 is not one of the 6 classes, 0 to 5 (in layer 'mdl/softmax'). " +
      'task.model.mdl.softmaxTpl.numClasses is 6.',
  );
  expect(await told(model, { ...batch, src: { ...rows, ids: eight } })).toBe(
    "Input 'test': src.ids[1,2] of its batch, 8 is not one of the 6 rows of float32[6,4], 0 to 5 (in layer 'mdl/softmax'). " +
      'task.model.mdl.softmaxTpl.numClasses is 6.',
  );
});

test('LanguageModelGRPO: labels', async () => {
  const batch = {
    ...{ ...rows, ids: six(), labels: ints([0, 1, 2, 3, 4, 9], 2, 3), oldLogProbs: filled(-1, 2, 3) },
    ...{ advantages: filled(1, 2), rewards: filled(1, 2) },
  };
  expect(await told(LanguageModelGRPO.config({ mdl: lmTpl }), batch)).toBe(
    "Input 'test': labels[1,2] of its batch, 9 is not one of the 8 classes, 0 to 7 (in layer 'mdl/softmax'). " +
      'task.model.mdl.vocabSize is 8.',
  );
});

test('ClassificationMLPModel: ids, which are its labels too', async () => {
  const model = ClassificationMLPModel.config();
  Object.assign(model.mlpTpl.ffTpl, { inputDims: 4, outputDims: 4 });
  Object.assign(model.softmaxTpl, { inputDims: 4, numClasses: 5 });
  expect(await told(model, { ids: six(), weights: rows.weights })).toBe(
    "Input 'test': ids[1,2] of its batch, 5 is not one of the 5 rows of float32[5,4], 0 to 4 (in layer 'softmax'). " +
      'task.model.softmaxTpl.numClasses is 5.',
  );
});

const ctcModel = (blankId = 0) =>
  CtcModel.config({
    encoderTpl: ConformerEncoder.config({
      ...{ inputDims: 3, modelDims: 4, numLayers: 1 },
      conformerTpl: Conformer.config({ attenNumHeads: 2, ffnDimMultiplier: 1, layerOrder: 'mhsa' }),
    }),
    softmaxTpl: FullSoftmax.config({ numClasses: 4 }),
    blankId,
  });

test('CtcModel: blanks among labels, but for padding and rows without weight', async () => {
  const inputs = filled(1, 2, 5, 3);
  const exampleIds = ints([40, 41], 2);
  const labels = ints([1, 0, 0, 3], 2, 2);
  const paddings = (...values: number[]): HostTensor => ({
    ...{ shape: [2, 2], dtype: 'float32', data: Float32Array.from(values) },
  });
  const valid =
    'task.model.blankId is 0, and task.model.softmaxTpl.numClasses is 4: other ids from 0 to 3 are valid.';
  expect(await told(ctcModel(), { inputs, labels, exampleIds, labelPaddings: paddings(0, 1, 0, 0) })).toBe(
    `Input 'test': labels[1,0] (example 41) of its batch, 0 is the blank, which stands in padding alone. ${valid}`,
  );
  expect(await told(ctcModel(), { inputs, labels, exampleIds })).toBe(
    `Input 'test': labels[0,1] (example 40) of its batch, 0 is the blank, which stands in padding alone. ${valid}`,
  );
  const weights = { shape: [2], dtype: 'float32', data: Float32Array.of(1, 0) } as const;
  const padded = { inputs, labels, weights, labelPaddings: paddings(0, 1, 0, 0) };
  expect(await told(ctcModel(), padded)).toBe('no error');
  expect(await told(ctcModel(2), { inputs, labels })).toBe('no error');
});

test('CtcModel: the first blank that counts, of drawn labels, paddings and weights', async () => {
  const arrays = (labels: number[], paddings: number[], weights: number[]): Batch => ({
    ...{ inputs: filled(1, 2, 5, 3), labels: ints(labels, 2, 2), exampleIds: ints([40, 41], 2) },
    labelPaddings: { shape: [2, 2], dtype: 'float32', data: Float32Array.from(paddings) },
    weights: { shape: [2], dtype: 'float32', data: Float32Array.from(weights) },
  });
  const tell = await evaluations(ctcModel(2));
  const four = (most: number) => fc.array(fc.nat(most), { minLength: 4, maxLength: 4 });
  const two = fc.array(fc.nat(1), { minLength: 2, maxLength: 2 });
  await fc.assert(
    fc.asyncProperty(four(3), four(1), two, async (labels, paddings, weights) => {
      const at = labels.findIndex((id, i) => id === 2 && paddings[i] === 0 && weights[i >> 1] === 1);
      expect(await tell(arrays(labels, paddings, weights))).toBe(
        at < 0
          ? 'no error'
          : `Input 'test': labels[${at >> 1},${at % 2}] (example ${40 + (at >> 1)}) of its batch, 2 is the blank, which stands in ` +
              'padding alone. task.model.blankId is 2, and task.model.softmaxTpl.numClasses is 4: other ids from 0 to 3 are valid.',
      );
    }),
    { numRuns: 60 },
  );
});

test('CtcModel: symbols', async () => {
  const model = ctcModel();
  expect(await told(model, { inputs: filled(1, 2, 5, 3), labels: ints([1, 2, 4, 3], 2, 2) })).toBe(
    "Input 'test': labels[1,0] of its batch, 4 is not one of the 4 rows of int32[4], 0 to 3. " +
      'task.model.softmaxTpl.numClasses is 4.',
  );
});

test('BertModel: labels', async () => {
  const model = BertModel.config({
    maskTokenId: 8,
    lmTpl: TransformerLm.config({
      ...{ vocabSize: 9, modelDims: 4, modelType: 'bidirectional', packedInput: true },
      stackedTransformerTpl: stack(),
    }),
  });
  const batch = {
    ...rows,
    labels: ints([1, 2, 3, 4, 5, 9], 2, 3),
    segmentIds: ints([1, 1, 1, 1, 1, 1], 2, 3),
    segmentPos: ints([0, 1, 2, 0, 1, 2], 2, 3),
    maskedIds: ints([1, 8, 3, 4, 8, 6], 2, 3),
    maskedPos: filled(1, 2, 3),
  };
  expect(await told(model, batch)).toBe(
    "Input 'test': labels[1,2] of its batch, 9 is not one of the 9 classes, 0 to 8 (in layer 'lm/softmax'). " +
      'task.model.lmTpl.vocabSize is 9.',
  );
  const known = { ...batch, labels: ints([1, 2, 3, 4, 5, 8], 2, 3) };
  expect(await told(model, { ...known, maskedIds: ints([1, 8, 3, 4, 9, 6], 2, 3) })).toBe(
    "Input 'test': maskedIds[1,1] of its batch, 9 is not one of the 9 rows of float32[9,4], 0 to 8 (in layer 'lm/softmax'). " +
      'task.model.lmTpl.vocabSize is 9.',
  );
});
