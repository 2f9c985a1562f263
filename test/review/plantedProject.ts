/** @file A project as strangers lay it out, with own classes in lib/ and data beside, in which changes are planted, one an experiment. */

/** Own classes in lib/, which each experiment has a copy of, so that a change reaches one experiment alone. */
export const lib = `import { z } from 'zod';
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

export const experiment = (
  name: string,
  more = '',
): string => `import { Experiment, Learner, SingleTask, Train } from 'luthier';
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
): string => `import { gpt2Lm, LanguageModel, Decode, Experiment, Learner, SingleTask, Train } from 'luthier';
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

export const csv = `width,height,price\n${Array.from({ length: 24 }, (_, i) => `${i % 5},${(i * 3) % 7},${(i % 4) / 2}`).join('\n')}\n`;

/** The mechanism of a review that a change tries. */
type Mechanism = 'numerics' | 'broken' | 'contents' | 'discovery' | 'varying' | 'state';

/** What a run shows: other bits, the same, that it fails now, or that no two runs have the same. */
type Truth = 'differs' | 'same' | 'fails' | 'varies';

/** A change of one experiment. In all texts and paths, `NAME` is its name. */
export interface Plant {
  readonly name: string;
  readonly mechanism: Mechanism;
  /** In the base already, in the task of the experiment. */
  readonly has?: string;
  /** Whether it is a language model that decodes, and by what. */
  readonly decoder?: string;
  /** Files of the base beside those that each experiment has, or in their place. */
  readonly files?: Readonly<Record<string, string>>;
  /** Texts that are replaced, by file; `null` deletes it. */
  readonly edits: Readonly<Record<string, readonly (readonly [old: string, text: string])[] | null>>;
  /** Whether other experiments of its process would find what it leaves: a run of it is one of its own. */
  readonly isApart?: true;
  readonly truth: Truth;
  /** The status that the review gives, and a part of what it says of the experiment. */
  readonly status: string;
  readonly says?: string;
}

export const part = (old: string, text: string) => ({ 'lib/NAME/parts.ts': [[old, text]] as const });
export const config = (old: string, text: string) => ({ 'experiments/NAME.ts': [[old, text]] as const });

/** The files of the base. */
export function baseFilesOf(plants: readonly Plant[]): Record<string, string> {
  return Object.fromEntries(
    plants.flatMap(({ name, has = '', decoder, files = {} }) =>
      Object.entries({
        'lib/NAME/parts.ts': lib,
        'lib/NAME/numbers.ts': numbers,
        'data/NAME.csv': csv,
        'experiments/NAME.ts': decoder === undefined ? experiment('NAME', has) : language('NAME', decoder),
        ...files,
      }).map(([file, text]) => [file.replaceAll('NAME', name), text.replaceAll('NAME', name)]),
    ),
  );
}

/** The files that the plants change, with their new texts; null where one is deleted. */
export function plantedFilesOf(plants: readonly Plant[]): Record<string, string | null> {
  const base = baseFilesOf(plants);
  return Object.fromEntries(
    plants.flatMap(({ name, edits }) =>
      Object.entries(edits).map(([file, replaced]): [string, string | null] => {
        const path = file.replaceAll('NAME', name);
        if (replaced === null) return [path, null];
        let text = base[path]!;
        for (const [old, now] of replaced) {
          if (!text.includes(old)) throw new Error(`${path} has no '${old}'`);
          text = text.replace(old, () => now.replaceAll('NAME', name));
        }
        return [path, text];
      }),
    ),
  );
}
