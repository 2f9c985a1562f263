/** @file Planted changes of what code computes, reads and breaks, config changed or not. */
import { config, type Plant, part } from './plantedProject.js';

const wide = 'task.model = Factored.config();';
/** Positive weights, without which the relu gives zeros and either order of the sum has the same bits. */
const positive = 'task.model.paramsInit = Ramp.config();';

export const plantedNumerics: readonly Plant[] = [
  {
    name: 'factorBesideField',
    mechanism: 'numerics',
    edits: {
      ...part('0.01 * scale', '0.02 * scale'),
      ...config('summaryIntervalSteps: 1', 'summaryIntervalSteps: 3'),
    },
    ...{
      truth: 'differs',
      status: 'changed',
      says: 'beside its config, the training step computes different values',
    },
  },
  {
    name: 'defaultBesideCode',
    mechanism: 'numerics',
    edits: {
      'lib/NAME/parts.ts': [
        ['default(0.5)', 'default(0.25)'],
        ['tf.mul(grad, this.hp.share)', 'tf.mul(grad, 3 * this.hp.share)'],
      ],
    },
    ...{ truth: 'differs', status: 'changed', says: 'beside its config, the optimizer update differs' },
  },
  {
    name: 'defaultAlone',
    mechanism: 'numerics',
    edits: part('default(0.5)', 'default(0.25)'),
    ...{ truth: 'differs', status: 'changed', says: 'share' },
  },
  {
    name: 'mixinBesideField',
    mechanism: 'numerics',
    has: wide,
    edits: {
      ...part('super.computePredictions(batch), 1.5', 'super.computePredictions(batch), 1.75'),
      ...config('learningRate: 0.01', 'learningRate: 0.02'),
    },
    ...{
      truth: 'differs',
      status: 'changed',
      says: 'beside its config, the training step computes different values',
    },
  },
  {
    name: 'hostMetric',
    mechanism: 'numerics',
    edits: part('value: hits / total', 'value: 1 - hits / total'),
    ...{ truth: 'differs', status: 'changed', says: 'the evaluation computes different values' },
  },
  {
    name: 'rareMetric',
    mechanism: 'numerics',
    edits: part('value: hits / total', 'value: total > 1e9 ? 0 : hits / total'),
    ...{ truth: 'same', status: 'uncompared', says: 'the code of its metrics changed' },
  },
  {
    name: 'rareStep',
    mechanism: 'numerics',
    edits: { 'lib/NAME/numbers.ts': [['return 1', 'if (step === 12_347) return 0;\n  return 1']] },
    ...{ truth: 'differs', status: 'uncompared', says: 'the code of its schedules changed' },
  },
  {
    name: 'scheduleComment',
    mechanism: 'numerics',
    edits: part('/** A slow descent. */', '/** A steep descent. */'),
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'otherHelper',
    mechanism: 'numerics',
    edits: {
      'lib/NAME/numbers.ts': [['export const scale', 'export const unused = 3;\nexport const scale']],
    },
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'scheduleHelper',
    mechanism: 'numerics',
    edits: { 'lib/NAME/numbers.ts': [['(1 + step)', '(2 + step)']] },
    ...{ truth: 'differs', status: 'changed', says: 'the optimizer update differs' },
  },
  {
    name: 'swappedOperands',
    mechanism: 'numerics',
    has: positive,
    edits: part('tf.add(tf.add(a, b), c)', 'tf.add(c, tf.add(b, a))'),
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'otherAssociation',
    mechanism: 'numerics',
    has: positive,
    edits: part('tf.add(tf.add(a, b), c)', 'tf.add(a, tf.add(b, c))'),
    ...{
      truth: 'differs',
      status: 'changed',
      says: 'the training step computes different values (Add of the model or the loss)',
    },
  },
  {
    name: 'childrenOrder',
    mechanism: 'numerics',
    edits: {
      'lib/NAME/parts.ts': [
        ["    this.map = this.createChild('map', Linear.config({ inputDims: 2, outputDims: 1 }));\n", ''],
        [
          "    this.bias = this.createChild('bias'",
          "    this.map = this.createChild('map', Linear.config({ inputDims: 2, outputDims: 1 }));\n    this.bias = this.createChild('bias'",
        ],
      ],
    },
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'initializer',
    mechanism: 'numerics',
    has: positive,
    edits: part('0.1 * (i + 1)', '0.1 * (i + 2)'),
    ...{ truth: 'differs', status: 'changed', says: 'the initial values differ' },
  },
  {
    name: 'editedRow',
    mechanism: 'numerics',
    edits: { 'data/NAME.csv': [['2,6,1\n', '2,6,1.5\n']] },
    ...{ truth: 'differs', status: 'changed', says: 'price 1, weights 1 → sizes 2 6, price 1.5, weights 1' },
  },
  {
    name: 'deletedData',
    mechanism: 'broken',
    edits: { 'data/NAME.csv': null },
    ...{ truth: 'fails', status: 'broken', says: "input: InputError: Points 'train'" },
  },
  {
    name: 'inputThrows',
    mechanism: 'broken',
    edits: part(
      'export class Points extends RecordInput {}',
      "export class Points extends RecordInput {\n  override getNextPadded(): any {\n    throw new Error('no more points');\n  }\n}",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'input: no more points' },
  },
  {
    name: 'scheduleThrows',
    mechanism: 'broken',
    edits: {
      'lib/NAME/numbers.ts': [['return 1', "if (step > 1) throw new Error('too steep');\n  return 1"]],
    },
    ...{ truth: 'fails', status: 'broken', says: 'optimizer update: too steep' },
  },
  {
    name: 'missingTensor',
    mechanism: 'broken',
    edits: config('Share.config()', "Share.config({ of: 'nothing' })"),
    ...{ truth: 'fails', status: 'broken', says: "task.evalMetrics.share reads 'nothing'" },
  },
  {
    name: 'metricThrows',
    mechanism: 'broken',
    edits: part(
      'result: () => ({',
      "result: () => total > 0 ? (() => { throw new Error('no share'); })() : ({",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'evaluation: no share' },
  },
  {
    name: 'stopping',
    mechanism: 'numerics',
    has: 'task.earlyStoppingFn = Never.config();',
    edits: part('return false;', "return 'enough';"),
    ...{ truth: 'differs', status: 'uncompared', says: 'code that only jobs run changed' },
  },
  {
    name: 'frozen',
    mechanism: 'numerics',
    edits: config(
      'Learner.config({ optimizer })',
      "Learner.config({ optimizer, bpropVariableExclusion: ['map/.*'] })",
    ),
    ...{ truth: 'differs', status: 'changed', says: 'trained: 3 to 2' },
  },
  {
    name: 'placeInBatch',
    mechanism: 'numerics',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: part('super.fillRow(row, batch, b);', 'super.fillRow(b === 6 ? row + 1 : row, batch, b);'),
    ...{
      truth: 'differs',
      status: 'changed',
      says: "the input gives different rows (datasets[0] 'train' row 6: ",
    },
  },
  {
    name: 'rareRow',
    mechanism: 'numerics',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: part('super.fillRow(row, batch, b);', 'super.fillRow(row === 333 ? 0 : row, batch, b);'),
    ...{ truth: 'differs', status: 'uncompared', says: 'the rows that were read are the same' },
  },
  {
    name: 'noLength',
    mechanism: 'broken',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: config('seqlen: 12', 'seqlen: 0'),
    ...{ truth: 'fails', status: 'broken', says: 'The sequence length for decoding must be > 0' },
  },
  {
    name: 'decoderThrows',
    mechanism: 'broken',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: config(
      'class Own extends GreedyDecoder {}',
      "class Own extends GreedyDecoder {\n  override numRows(): any {\n    throw new Error('no rows');\n  }\n}",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'decoding: no rows' },
  },
  {
    name: 'noText',
    mechanism: 'broken',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: part('override idsToStrings', 'toStrings'),
    ...{ truth: 'fails', status: 'broken', says: "Input 'prompts' has no text, so its ids have no strings." },
  },
];
