/** @file LayerwiseShardablePipelined and PipelinedTransformer, against layers that are called one after the other. */
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  BaseLayer,
  Dropout,
  LayerwiseShardablePipelined,
  listVariables,
  PipelinedTransformer,
  WeightCollection,
} from '../../src/layers/index.js';
import { iterationsOf, turnsOf } from '../../src/layers/pipelineSchedule.js';
import { expectClose, ints, randomTheta, run, tensor } from './helpers.js';

type Values = Record<string, Tensor>;

test('a stage works on each microbatch of each repeat once, one iteration behind the stage before', () => {
  const sizes = { numStages: 3, numMicrobatches: 4, circularRepeat: 2 };
  const turns = turnsOf(sizes);
  expect([turns.length, iterationsOf(sizes)]).toEqual([10, 10]);
  for (let stage = 0; stage < 3; stage++) {
    const own = turns.map((each) => each[stage]!);
    const works = own.map(({ isValid }) => Number(isValid)).join('');
    expect(works).toBe(`${'0'.repeat(stage)}11111111${'0'.repeat(2 - stage)}`);
    expect(
      own.filter(({ isValid }) => isValid).map(({ microbatch, repeat }) => [repeat, microbatch]),
    ).toEqual([0, 1].flatMap((repeat) => [0, 1, 2, 3].map((microbatch) => [repeat, microbatch])));
  }
});

const D = 3;

/** A stage with an argument of rows and one that all share, which keeps a mean, counts, adds a loss and reports it. */
class Counting extends BaseLayer.with({}) {
  protected override setup(): void {
    const collections = [WeightCollection.NON_TRAINABLE];
    this.createVariable('w', { shape: [D, D] });
    this.createVariable('mean', { shape: [D], collections });
    this.createVariable('count', { shape: [], dtype: 'int32', collections });
  }
  fprop(x: Tensor, { shift, scale }: { shift: Tensor; scale: Tensor }): Tensor {
    const y = tf.tanh(tf.add(tf.mul(tf.matMul(x, this.getVar('w')), scale), shift)) as Tensor;
    this.updateVar('mean', tf.add(tf.mul(this.getVar('mean'), 0.9), tf.mul(tf.mean(y, 0), 0.1)));
    this.updateVar('count', tf.add(this.getVar('count'), tf.scalar(1, 'int32')));
    this.addAuxLoss('large', tf.mean(tf.square(y)), 0.5);
    this.addSummary('mean', () => tf.mean(y));
    this.addHistogramSummary('y', () => y);
    return y;
  }
}

const pipelineOf = (values: Partial<Config<LayerwiseShardablePipelined>>) =>
  build(LayerwiseShardablePipelined.config({ singleStageBody: Counting.config() as never, ...values }));

/** Values of a pipeline's variables, integers among them. */
const thetaOf = (pipeline: BaseLayer): Values =>
  Object.fromEntries(
    Object.entries(randomTheta(pipeline)).map(([path, x]) => [
      path,
      path.endsWith('count') ? (tf.cast(tf.mul(x, 20), 'int32') as Tensor) : x,
    ]),
  );

const cases: readonly Partial<Config<LayerwiseShardablePipelined>>[] = [
  { numStages: 2, numMicrobatches: 3 },
  { numStages: 3, numMicrobatches: 2, pipelineBroadcastInputs: true },
  { numStages: 2, microbatchSize: 1 },
  { numStages: 2, numMicrobatches: 6, circularRepeat: 2, pipelineBroadcastInputs: true },
  { numStages: 2, numMicrobatches: 6, streamIo: true },
  { numStages: 3, numMicrobatches: 6, circularRepeat: 2, streamIo: true, pipelineBroadcastInputs: true },
];

test.each(cases)('a pipeline of %o does what its stages do, called with each microbatch', (values) => {
  const pipeline = pipelineOf(values);
  const { numStages = 1, circularRepeat = 1, numMicrobatches } = values;
  const [rows, depth] = [6, numStages * circularRepeat];
  const count = numMicrobatches ?? 6;
  const theta = thetaOf(pipeline);
  expect(listVariables(pipeline).map(({ path, shape }) => [path, shape])[0]).toEqual([
    'body/w',
    [...(circularRepeat > 1 ? [circularRepeat] : []), numStages, D, D],
  ]);
  const [x, args] = [tensor([rows, D], 4), { shift: tensor([rows, 1], 6), scale: tensor([D], 7) }];
  const told = (): any => ({ updatedVars: {}, summaries: {}, media: {}, auxLosses: [] });
  const lossOf = (y: Tensor, losses: readonly { value: Tensor; weight: number }[], count: number): Tensor =>
    tf.add(
      tf.sum(tf.mul(y, tensor([rows, D], 9))),
      tf.div(tf.addN(losses.map(({ value, weight }) => tf.mul(value, weight))), count),
    );
  const whole = told();
  const ofPipeline = (given: Values): Tensor => {
    Object.assign(whole, told());
    return lossOf(
      run(given, () => pipeline.fprop(x, args), whole),
      whole.auxLosses,
      1,
    );
  };
  // Microbatch m has each row whose number leaves m over.
  const chosen = (m: number) => Int32Array.from({ length: rows / count }, (_, i) => i * count + m);
  const stage = build(Counting.config());
  let all: any[][] = [];
  const ofStages = (given: Values): Tensor => {
    const own = Object.fromEntries(
      Object.entries(given).map(([path, value]) => [
        path.slice('body/'.length),
        tf.unstack(tf.reshape(value, [depth, ...value.shape.slice(circularRepeat > 1 ? 2 : 1)])),
      ]),
    );
    all = Array.from({ length: count }, () => Array.from({ length: depth }, told));
    const outputs = all.map((stages, m) => {
      const part = (of: Tensor): Tensor => tf.gather(of, tf.tensor1d(chosen(m), 'int32'));
      const others = { ...args, shift: part(args.shift) };
      return stages.reduce((y: Tensor, seen, i) => {
        const values = Object.fromEntries(Object.entries(own).map(([name, stack]) => [name, stack[i]!]));
        return run(values, () => stage.fprop(y, others), seen);
      }, part(x));
    });
    const y = tf.reshape(tf.stack(outputs, 1), [rows, D]);
    return lossOf(
      y,
      all.flat().flatMap(({ auxLosses }) => auxLosses),
      count,
    );
  };
  const path = 'body/w';
  const gradient = (f: (given: Values) => Tensor) =>
    tf.valueAndGrad((w: Tensor) => f({ ...theta, [path]: w }) as tf.Scalar)(theta[path]!);
  const [one, other] = [gradient(ofPipeline), gradient(ofStages)];
  expectClose(one.value, other.value.dataSync(), 1e-6);
  expectClose(one.grad, other.grad.dataSync(), 1e-5);
  // Of a gradient's pass, tfjs keeps nothing.
  for (const f of [ofPipeline, ofStages]) f(theta);
  const means = (of: (seen: any) => Tensor): Float32Array =>
    tf
      .stack(
        Array.from({ length: depth }, (_, i) => tf.div(tf.addN(all.map((stages) => of(stages[i]))), count)),
      )
      .dataSync() as Float32Array;
  expect(whole.auxLosses.map(({ name, weight }: any) => [name, weight])).toEqual([['body/large', 0.5]]);
  expectClose(
    whole.updatedVars['body/mean'],
    means(({ updatedVars }) => updatedVars.mean),
    1e-6,
  );
  expect([...whole.updatedVars['body/count'].dataSync()]).toEqual(
    [...theta['body/count']!.dataSync()].map((counted) => counted + 1),
  );
  expect(whole.updatedVars['body/mean'].shape).toEqual(theta['body/mean']!.shape);
  expectClose(
    tf.stack(Array.from({ length: depth }, (_, i) => whole.summaries[`body_${i}/mean_scalar`])),
    means(({ summaries }) => Object.values<Tensor>(summaries)[0]!),
    1e-6,
  );
  const last = all.at(-1)!;
  for (let i = 0; i < depth; i++)
    expectClose(
      whole.media[`body_${i}/y_histogram`],
      Object.values<Tensor>(last[i].media)[0]!.dataSync(),
      1e-6,
    );
});

test('dropout differs by stage and microbatch, and is the same for the same key', () => {
  const drops = { singleStageBody: Dropout.config({ keepProb: 0.5 }), numStages: 2, numMicrobatches: 2 };
  const pipeline = build(LayerwiseShardablePipelined.config(drops));
  const kept = (key: number[], doEval = false) => [
    ...run({}, () => pipeline.fprop(tf.ones([2, 4000])), { prngKey: ints(key, [2]), doEval }).dataSync(),
  ];
  const all = kept([3, 4]);
  expect(all.every((value) => value === 0 || value === 4)).toBe(true);
  expect(all.filter((value) => value === 4).length / 8000).toBeCloseTo(1 / 4, 1);
  expect(all.slice(0, 4000)).not.toEqual(all.slice(4000));
  expect(kept([3, 4])).toEqual(all);
  expect(kept([3, 5])).not.toEqual(all);
  expect(new Set(kept([3, 4], true))).toEqual(new Set([1]));
});

test('a batch that can not be cut so is refused', () => {
  const refused = (values: Partial<Config<LayerwiseShardablePipelined>>): string => {
    const pipeline = pipelineOf(values);
    try {
      run(thetaOf(pipeline), () =>
        pipeline.fprop(tensor([6, D]), { shift: tensor([6, 1]), scale: tensor([D]) }),
      );
      return 'nothing';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const opening = 'model (LayerwiseShardablePipelined): ';
  expect([
    refused({}),
    refused({ numMicrobatches: 2, microbatchSize: 3 }),
    refused({ numMicrobatches: 4 }),
    refused({ microbatchSize: 4 }),
    refused({ numStages: 3, numMicrobatches: 2, circularRepeat: 2 }),
    refused({ numStages: 2, numMicrobatches: 3, streamIo: true }),
  ]).toEqual(
    [
      'set numMicrobatches or microbatchSize, one of both; they are null and null.',
      'set numMicrobatches or microbatchSize, one of both; they are 2 and 3.',
      "6 rows can't be cut into 4 microbatches: numMicrobatches divides the rows.",
      "6 rows can't be cut into microbatches of 4 rows: microbatchSize divides them.",
      '2 microbatches for 3 stages: with circularRepeat 2 there are as many as stages, or more.',
      "3 microbatches can't be shared by 2 stages: with streamIo, stages divide them.",
    ].map((text) => `${opening}${text}`),
  );
});

describe('PipelinedTransformer', () => {
  const fields = { modelDims: 4, hiddenDims: 4, numLayers: 6, numPipelineMicrobatches: 2 };
  const stack = (values: Partial<Config<PipelinedTransformer>>) =>
    build(PipelinedTransformer.config({ ...fields, ...values }));

  test('stages share the layers evenly', () => {
    expect(() => stack({ numPipelineStages: 4 })).toThrow(
      "6 layers can't be cut into 4 stages of 1 repeats each: numLayers is a multiple of numPipelineStages times circularRepeat.",
    );
    const path = 'pipeline/body/x_layers_2/ff_layer/ffn_layer1/linear/w';
    const shapes = (layer: BaseLayer) => listVariables(layer).find((each) => each.path === path)?.shape;
    expect(shapes(stack({ numPipelineStages: 2 }))).toEqual([2, 4, 4]);
    expect(shapes(stack({ numPipelineStages: 2, circularRepeat: 3 }))).toBeUndefined();
  });

  test('it decodes nothing', () => {
    expect(() => stack({ numPipelineStages: 2 }).extendStep()).toThrow('a pipeline decodes nothing');
  });
});
