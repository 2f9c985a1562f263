/** @file A project as strangers lay it out, and changes planted in it, one an experiment: what each computes, reads and breaks. */
import { oneIn } from '../faults/campaign.js';

/** Own classes in lib/, which each experiment has a copy of, so that a change reaches one experiment alone. */
const lib = `import { z } from 'zod';
import { type Tensor, tf } from 'luthier';
import { Bias, Linear, WeightInit } from 'luthier/layers';
import { BaseModel } from 'luthier/models';
import { BaseSchedule, Sgd } from 'luthier/learners';
import { BaseEarlyStoppingFn, BaseEvalMetric } from 'luthier/tasks';
import { CsvSource, NumberFeature, RecordInput, SyntheticLmInput } from 'luthier/inputs';
import { scale, helper } from './numbers.js';

/** Adds a factor of its own to any model. */
export const withFactor = (Base: any): any =>
  class extends Base {
    override computePredictions(batch: any): any {
      return tf.mul(super.computePredictions(batch), 1.5);
    }
  };

export class Line extends BaseModel {
  map!: any;
  more!: any;
  bias!: any;

  protected override setup(): void {
    this.map = this.createChild('map', Linear.config({ inputDims: 2, outputDims: 1 }));
    this.more = this.createChild('more', Linear.config({ inputDims: 2, outputDims: 1 }));
    this.bias = this.createChild('bias', Bias.config({ dims: 1, biasInit: 0.3 }));
  }

  override computePredictions(batch: any): any {
    const x = this.tensorOf(batch, 'sizes');
    const [a, b] = [tf.relu(this.map.fprop(x)), tf.sum(this.more.fprop(x), -1, true)];
    const c = tf.sigmoid(a);
    return tf.squeeze(this.bias.fprop(tf.add(tf.add(a, b), c)), [-1]);
  }

  override computeLoss(predictions: any, batch: any): any {
    const weights = this.tensorOf(batch, 'weights');
    const squares = tf.square(tf.sub(predictions, this.tensorOf(batch, 'price')));
    const weight = tf.sum(weights) as Tensor;
    return [{ total_loss: [tf.mul(tf.div(tf.sum(tf.mul(squares, weights)), weight), 0.01 * scale), weight] }, { predictions }];
  }
}
export const Factored: any = class Factored extends withFactor(Line) {};

export class Half extends Sgd.with({ share: z.number().default(0.5) }) {
  protected override direction({ grad, ...rest }: any): any {
    return { ...super.direction({ grad, ...rest }), direction: tf.mul(grad, this.hp.share) };
  }
}
/** A slow descent. */
export class Steep extends BaseSchedule {
  valueAt(step: number): number {
    return helper(step);
  }
}
export class Ramp extends WeightInit {
  override draw(_key: any, { shape }: any): any {
    return Float32Array.from({ length: shape.reduce((a: number, b: number) => a * b, 1) }, (_, i) => 0.1 * (i + 1));
  }
}
export class Share extends BaseEvalMetric.with({ of: z.string().default('predictions') }) {
  override tensorNames() {
    return [this.hp.of];
  }

  override accumulate(): any {
    let [hits, total] = [0, 0];
    return {
      add: (tensors: any) => {
        for (const value of tensors[this.hp.of].data) {
          hits += value > 0.5 ? 1 : 0;
          total++;
        }
      },
      result: () => ({ value: hits / total, weight: total }),
    };
  }
}
export class Never extends BaseEarlyStoppingFn {
  override shouldStop(): any {
    return false;
  }
}
export class Points extends RecordInput {}
export class Rows extends SyntheticLmInput {
  protected override fillRow(row: number, batch: any, b: number): void {
    super.fillRow(row, batch, b);
  }

  override idsToStrings({ data }: any): any {
    return [[...data].join(' ')];
  }
}
export const source = (file: string) => CsvSource.config({ files: [file] });
export const features = {
  sizes: NumberFeature.config({ columns: ['width', 'height'] }),
  price: NumberFeature.config({ columns: 'price' }),
};
`;

const numbers = `export const scale = 1;
export function helper(step: number): number {
  return 1 / (1 + step);
}
`;

const experiment = (
  name: string,
  more: string,
) => `import { Experiment, Learner, SingleTask, Train } from 'luthier';
import { Factored, features, Half, Line, Never, Points, Ramp, Share, source, Steep } from '../lib/${name}/parts.js';

export class Planted extends Experiment {
  override task(): any {
    const optimizer = Half.config({ learningRate: 0.01, lrSchedule: Steep.config() });
    const task: any = SingleTask.config({
      model: Line.config() as any,
      train: Train.config({ learner: Learner.config({ optimizer }), numTrainSteps: 3, summaryIntervalSteps: 1, evalIntervalSteps: 2 }),
      evalMetrics: { share: Share.config() },
    });
    void [Factored, Never, Ramp];
    ${more}
    return task;
  }

  override datasets(): any {
    const csv = { features, source: source('data/${name}.csv'), batchSize: 8 };
    return [
      Points.config({ ...csv, isTraining: true, split: 'all' } as any),
      Points.config({ ...csv, name: 'held_out', split: 'all' } as any),
    ];
  }
}
`;

const language = (
  name: string,
  decoder: string,
) => `import { gpt2Lm, LanguageModel, Decode, Experiment, Learner, SingleTask, Train } from 'luthier';
import { GreedyDecoder } from 'luthier/decoding';
import { Half, Rows } from '../lib/${name}/parts.js';

class Own extends GreedyDecoder {}

export class Planted extends Experiment {
  override task(): any {
    const lmTpl = gpt2Lm({ vocabSize: 32, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 16 });
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer: Half.config({ learningRate: 0.1 }) }), numTrainSteps: 3 }),
      decode: Decode.config({ decoder: ${decoder}, prefixLength: 3 }),
    } as any);
  }

  override datasets(): any {
    return [Rows.config({ name: 'train', isTraining: true, vocabSize: 32, batchSize: 8, seqLen: 8 })];
  }

  override decodeDatasets(): any {
    return [Rows.config({ name: 'prompts', vocabSize: 32, batchSize: 2, seqLen: 8, numBatches: 1 } as any)];
  }
}
`;

const csv = `width,height,price\n${Array.from({ length: 24 }, (_, i) => `${i % 5},${(i * 3) % 7},${(i % 4) / 2}`).join('\n')}\n`;

/** What a run shows: other bits, the same, or that it fails now. */
type Truth = 'differs' | 'same' | 'fails';

/** A change of one experiment. */
export interface Plant {
  readonly name: string;
  /** In the base already, in the task of the experiment. */
  readonly has?: string;
  /** Whether it is a language model that decodes, and by what. */
  readonly decoder?: string;
  /** Texts that are replaced, by file; `null` deletes it. */
  readonly edits: Readonly<Record<string, readonly (readonly [old: string, text: string])[] | null>>;
  readonly truth: Truth;
  /** The status that the review gives, and a part of what it says of the experiment. */
  readonly status: string;
  readonly says?: string;
}

const part = (old: string, text: string) => ({ 'lib/NAME/parts.ts': [[old, text]] as const });
const config = (old: string, text: string) => ({ 'experiments/NAME.ts': [[old, text]] as const });
const wide = 'task.model = Factored.config();';
/** Positive weights, without which the relu gives zeros and either order of the sum has the same bits. */
const positive = 'task.model.paramsInit = Ramp.config();';

const allPlants: readonly Plant[] = [
  {
    name: 'factorBesideField',
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
    edits: part('default(0.5)', 'default(0.25)'),
    ...{ truth: 'differs', status: 'changed', says: 'share' },
  },
  {
    name: 'mixinBesideField',
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
    edits: part('value: hits / total', 'value: 1 - hits / total'),
    ...{ truth: 'differs', status: 'changed', says: 'the evaluation computes different values' },
  },
  {
    name: 'rareMetric',
    edits: part('value: hits / total', 'value: total > 1e9 ? 0 : hits / total'),
    ...{ truth: 'same', status: 'uncompared', says: 'the code of its metrics changed' },
  },
  {
    name: 'rareStep',
    edits: { 'lib/NAME/numbers.ts': [['return 1', 'if (step === 12_347) return 0;\n  return 1']] },
    ...{ truth: 'differs', status: 'uncompared', says: 'the code of its schedules changed' },
  },
  {
    name: 'scheduleComment',
    edits: part('/** A slow descent. */', '/** A steep descent. */'),
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'otherHelper',
    edits: {
      'lib/NAME/numbers.ts': [['export const scale', 'export const unused = 3;\nexport const scale']],
    },
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'scheduleHelper',
    edits: { 'lib/NAME/numbers.ts': [['(1 + step)', '(2 + step)']] },
    ...{ truth: 'differs', status: 'changed', says: 'the optimizer update differs' },
  },
  {
    name: 'swappedOperands',
    has: positive,
    edits: part('tf.add(tf.add(a, b), c)', 'tf.add(c, tf.add(b, a))'),
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'otherAssociation',
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
    has: positive,
    edits: part('0.1 * (i + 1)', '0.1 * (i + 2)'),
    ...{ truth: 'differs', status: 'changed', says: 'the initial values differ' },
  },
  {
    name: 'editedRow',
    edits: { 'data/NAME.csv': [['2,6,1\n', '2,6,1.5\n']] },
    ...{ truth: 'differs', status: 'changed', says: 'price 1, weights 1 → sizes 2 6, price 1.5, weights 1' },
  },
  {
    name: 'deletedData',
    edits: { 'data/NAME.csv': null },
    ...{ truth: 'fails', status: 'broken', says: "input: InputError: Points 'train'" },
  },
  {
    name: 'inputThrows',
    edits: part(
      'export class Points extends RecordInput {}',
      "export class Points extends RecordInput {\n  override getNextPadded(): any {\n    throw new Error('no more points');\n  }\n}",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'input: no more points' },
  },
  {
    name: 'scheduleThrows',
    edits: {
      'lib/NAME/numbers.ts': [['return 1', "if (step > 1) throw new Error('too steep');\n  return 1"]],
    },
    ...{ truth: 'fails', status: 'broken', says: 'optimizer update: too steep' },
  },
  {
    name: 'missingTensor',
    edits: config('Share.config()', "Share.config({ of: 'nothing' })"),
    ...{ truth: 'fails', status: 'broken', says: "task.evalMetrics.share reads 'nothing'" },
  },
  {
    name: 'metricThrows',
    edits: part(
      'result: () => ({',
      "result: () => total > 0 ? (() => { throw new Error('no share'); })() : ({",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'evaluation: no share' },
  },
  {
    name: 'stopping',
    has: 'task.earlyStoppingFn = Never.config();',
    edits: part('return false;', "return 'enough';"),
    ...{ truth: 'differs', status: 'uncompared', says: 'code that only jobs run changed' },
  },
  {
    name: 'frozen',
    edits: config(
      'Learner.config({ optimizer })',
      "Learner.config({ optimizer, bpropVariableExclusion: ['map/.*'] })",
    ),
    ...{ truth: 'differs', status: 'changed', says: 'trained: 3 to 2' },
  },
  {
    name: 'placeInBatch',
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
    decoder: 'Own.config({ seqlen: 12 })',
    edits: part('super.fillRow(row, batch, b);', 'super.fillRow(row === 333 ? 0 : row, batch, b);'),
    ...{ truth: 'differs', status: 'uncompared', says: 'the rows that were read are the same' },
  },
  {
    name: 'noLength',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: config('seqlen: 12', 'seqlen: 0'),
    ...{ truth: 'fails', status: 'broken', says: 'The sequence length for decoding must be > 0' },
  },
  {
    name: 'decoderThrows',
    decoder: 'Own.config({ seqlen: 12 })',
    edits: config(
      'class Own extends GreedyDecoder {}',
      "class Own extends GreedyDecoder {\n  override numRows(): any {\n    throw new Error('no rows');\n  }\n}",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'decoding: no rows' },
  },
];

/** Those of this run: all, or with SHORT=1 a third. */
export const plants = oneIn(3, allPlants);

/** The files of the base. */
export const baseFiles: Readonly<Record<string, string>> = Object.fromEntries(
  plants.flatMap(({ name, has = '', decoder }) => [
    [`lib/${name}/parts.ts`, lib],
    [`lib/${name}/numbers.ts`, numbers],
    [`data/${name}.csv`, csv],
    [`experiments/${name}.ts`, decoder === undefined ? experiment(name, has) : language(name, decoder)],
  ]),
);

/** The files that the plants change, with their new texts; null where one is deleted. */
export function plantedFiles(): Record<string, string | null> {
  return Object.fromEntries(
    plants.flatMap(({ name, edits }) =>
      Object.entries(edits).map(([file, replaced]): [string, string | null] => {
        const path = file.replace('NAME', name);
        if (replaced === null) return [path, null];
        let text = baseFiles[path]!;
        for (const [old, now] of replaced) {
          if (!text.includes(old)) throw new Error(`${path} has no '${old}'`);
          text = text.replace(old, () => now);
        }
        return [path, text];
      }),
    ),
  );
}
