/** @file Compiled pipelines of transformer layers, against plain stacks. */
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  BaseLayer,
  LayerwiseShardablePipelined,
  listVariables,
  PipelinedTransformer,
  StackedTransformer,
  StackedTransformerRepeated,
  TransformerLm,
} from '../../src/layers/index.js';
import { engines } from '../compiler/engines.js';
import { numbers, run } from './helpers.js';

type Values = Record<string, Tensor>;

const [D, V, T] = [4, 7, 3];
const depths = { modelDims: D, hiddenDims: 6, numHeads: 2 };

const model = (stackedTransformerTpl: Config<StackedTransformer>) =>
  build(TransformerLm.config({ vocabSize: V, modelDims: D, packedInput: true, stackedTransformerTpl }));

interface Case {
  readonly stages: number;
  readonly microbatches: number;
  readonly repeats?: number;
  readonly streamIo?: boolean;
  readonly isMoved?: boolean;
  readonly isRepeated?: boolean;
}

/** Values of plain layers by number, from those of a pipeline's stages of one or more layers. */
function unstacked(theta: Values, { stages, repeats = 1, isRepeated = false }: Case): Values {
  const at = 'transformer/pipeline/body/';
  return Object.fromEntries(
    Object.entries(theta).flatMap(([path, value]): [string, Tensor][] => {
      if (!path.startsWith(at)) return [[path, value]];
      const rest = value.shape.slice(repeats > 1 ? 2 : 1);
      return tf
        .unstack(tf.reshape(value, [repeats * stages, ...rest]))
        .flatMap((own, stage): [string, Tensor][] => {
          const name = path.slice(at.length);
          if (isRepeated)
            return tf
              .unstack(own)
              .map((one, i) => [
                name.replace('repeat/sub/x_layers_0', `transformer/x_layers_${stage * 2 + i}`),
                one,
              ]);
          return [
            [name.replace(/x_layers_(\d)/, (_, i) => `transformer/x_layers_${stage * 2 + Number(i)}`), own],
          ];
        });
    }),
  );
}

const pipelined = ({
  stages,
  microbatches,
  repeats = 1,
  streamIo = false,
  isMoved = false,
  isRepeated = false,
}: Case) =>
  model(
    PipelinedTransformer.config({
      ...depths,
      numLayers: 2 * stages * repeats,
      ...{ numPipelineStages: stages, numPipelineMicrobatches: microbatches, circularRepeat: repeats },
      ...{ streamIo, pipelineBroadcastInputs: isMoved },
      ...(isRepeated && { pipelineStage: StackedTransformerRepeated.config({}) }),
    }),
  );

const cases: readonly Case[] = [
  { stages: 2, microbatches: 3 },
  { stages: 1, microbatches: 2 },
  { stages: 3, microbatches: 1, isMoved: true },
  { stages: 2, microbatches: 4, repeats: 2, isRepeated: true },
  { stages: 2, microbatches: 2, repeats: 3, isMoved: true },
  { stages: 2, microbatches: 4, streamIo: true },
  { stages: 2, microbatches: 6, repeats: 2, streamIo: true, isMoved: true },
];

describe.each(engines)('%s', (_, { engine, available }) => {
  test.runIf(available).each(cases)(
    'a pipeline of %o has the loss and gradients of a plain stack',
    async (of) => {
      const rows = of.microbatches * 2;
      const { stages, repeats = 1 } = of;
      const [lm, plain] = [
        pipelined(of),
        model(StackedTransformer.config({ ...depths, numLayers: 2 * stages * repeats })),
      ];
      const int = (f: (i: number) => number) =>
        tf.tensor2d(
          Int32Array.from({ length: rows * T }, (_, i) => f(i)),
          [rows, T],
          'int32',
        );
      const lossOf = (layer: TransformerLm, theta: Values) => {
        const [ids, labels] = [int((i) => (i * 5 + 3) % V), int((i) => (i * 3 + 1) % V)];
        const packed = {
          segmentIds: int((i) => 1 + Number((i * 7) % 5 > 2 && i % T > 0)),
          segmentPos: int((i) => i % T),
        };
        return run(
          theta,
          () =>
            layer.fprop({ ids, ...packed }, { classIds: labels, classWeights: tf.ones([rows, T]) }).totalLoss,
        );
      };
      const program = (theta: Values) => {
        const [one, other] = [
          (given: Values) => lossOf(lm, given),
          (given: Values) => lossOf(plain, unstacked(given, of)),
        ].map((loss) => valueAndGrad((given: Values) => ({ value: loss(given), aux: {} }), theta));
        return { one, other } as never;
      };
      const theta = Object.fromEntries(
        listVariables(lm).map(({ path, shape }, i) => [
          path,
          {
            shape: [...shape],
            dtype: 'float32',
            data: numbers(
              shape.reduce((a, b) => a * b, 1),
              i + 3,
            ).map((x) => x / 2),
          } as HostTensor,
        ]),
      );
      const executable = await compile(program, theta as never, { engine, numThreads: 1 });
      type Result = Record<'one' | 'other', { value: HostTensor; grads: Record<string, HostTensor> }>;
      const { one, other } = (await executable.run(theta as never)) as unknown as Result;
      expect(Math.abs(one.value.data[0]! - other.value.data[0]!)).toBeLessThan(1e-6);
      for (const [path, { data }] of Object.entries(one.grads)) {
        const expected = other.grads[path]!.data;
        expect(
          expected.some((value) => value !== 0),
          path,
        ).toBe(true);
        data.forEach((value, i) => {
          expect(Math.abs(value - expected[i]!), `${path}[${i}]`).toBeLessThan(2e-6);
        });
      }
      await executable.dispose();
    },
  );

  test.runIf(available)('what stages would make of nothing counts nowhere', async () => {
    /** Of an input of zeros it makes NaN, of which gradients would be NaN, too. */
    class Normalized extends BaseLayer.with({}) {
      protected override setup(): void {
        this.createVariable('w', { shape: [2] });
      }
      fprop(x: Tensor): Tensor {
        const y = tf.mul(tf.div(x, tf.norm(x, 2, 1, true)), this.getVar('w')) as Tensor;
        this.addSummary('mean', () => tf.mean(y));
        this.addAuxLoss('loss', tf.mean(y));
        return y;
      }
    }
    const fields = { singleStageBody: Normalized.config(), numStages: 3, numMicrobatches: 2 };
    const pipeline = build(LayerwiseShardablePipelined.config(fields));
    const args = { 'body/w': { shape: [3, 2], dtype: 'float32', data: numbers(6, 2) } };
    const program = (theta: Values) =>
      valueAndGrad((given: Values) => {
        const [summaries, auxLosses]: [Values, any[]] = [{}, []];
        const x = tf.tensor(numbers(8, 5), [4, 2]);
        const y = run(given, () => pipeline.fprop(x), { summaries, auxLosses });
        return { value: tf.add(tf.mean(y), auxLosses[0].value), aux: { summaries } };
      }, theta) as never;
    const executable = await compile(program, args as never, { engine, numThreads: 1 });
    const { value, grads, aux } = (await executable.run(args as never)) as any;
    const all = [value, grads['body/w'], ...Object.values<HostTensor>(aux.summaries)];
    expect(all.length).toBe(5);
    for (const { data } of all) expect([...data].every(Number.isFinite)).toBe(true);
    await executable.dispose();
  });
});
