/** @file Numbers that models draw in evaluation: others for each batch, the same for each evaluation. */
import { expect, test } from 'vitest';
import type { HostTensor } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { StackedTransformer, TransformerLm } from '../../src/layers/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { BertModel } from '../../src/models/index.js';
import { EvalSteps } from '../../src/programs/evalStep.js';
import { trainStateOf } from '../../src/programs/taskState.js';
import type { JobOptions } from '../../src/runs/options.js';
import { Evaluation, SingleTask, Train } from '../../src/tasks/index.js';

const [B, T, V] = [2, 64, 9];
const ints = (at: (i: number) => number): HostTensor => ({
  ...{ shape: [B, T], dtype: 'int32', data: Int32Array.from({ length: B * T }, (_, i) => at(i)) },
});
const batch = {
  labels: ints((i) => (i * i) % V),
  paddings: { shape: [B, T], dtype: 'float32', data: new Float32Array(B * T) } as const,
  segmentIds: ints(() => 1),
  segmentPos: ints((i) => i % T),
};

test.each(['eager', 'onnx'] as const)(
  'masks of batches differ, those of evaluations do not: %s',
  async (engine) => {
    const lmTpl = TransformerLm.config({
      ...{ vocabSize: V, modelDims: 4, modelType: 'bidirectional', packedInput: true },
      stackedTransformerTpl: StackedTransformer.config({ numLayers: 1, hiddenDims: 4, numHeads: 1 }),
    });
    const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) });
    const config = SingleTask.config({
      model: BertModel.config({ lmTpl, maskTokenId: 8 }),
      train: Train.config({ learner }),
    });
    const task = build(config);
    const state = trainStateOf(task);
    await task.initialize(state.views);
    const options: JobOptions = {
      ...{ name: 'masks', task: config, datasets: [], decodeDatasets: [], moduleUrl: import.meta.url },
      ...{ jobLogDir: '', mode: 'eval', overrides: [], classVars: '', numThreads: 1 },
      ...(engine === 'eager' ? { debug: 'eager' } : { engine }),
    };
    const steps = new EvalSteps(options, task, state);
    /** Masked tokens of each of `count` equal batches. */
    const masked = async (count: number): Promise<number[]> => {
      const evaluation = new Evaluation({});
      const sums = [0];
      for (let i = 1; i <= count; i++) {
        await steps.run('masks', batch, evaluation);
        // A mean over batches.
        sums.push(evaluation.result().metrics.num_predictions!.value * i);
      }
      return sums.slice(1).map((sum, i) => Math.round(sum - sums[i]!));
    };
    const [first, again] = [await masked(4), await masked(4)];
    expect(new Set(first).size).toBeGreaterThan(1);
    expect(again).toEqual(first);
  },
);
