/** @file Experiments for the tests of the analysis, and their configs. */
import { z } from 'zod';
import { type ConfiguredExperiment, configure, type Override } from '../../src/cli/index.js';
import {
  AdamW,
  type BaseInput,
  type Batch,
  type Config,
  Experiment,
  gpt2Lm,
  LanguageModel,
  Learner,
  Linear,
  RowInput,
  SingleTask,
  SyntheticLmInput,
  sub,
  Train,
  tf,
} from '../../src/index.js';
import { Sgd } from '../../src/learners/index.js';
import type { WeightedScalars } from '../../src/models/index.js';
import { BaseModel, type TensorBatch } from '../../src/models/index.js';

/** A GPT of these sizes, with biases, on synthetic text. */
export class Gpt extends Experiment.with({
  layers: z.int().default(2),
  dims: z.int().default(32),
  heads: z.int().default(4),
  vocab: z.int().default(64),
  time: z.int().default(16),
  batch: z.int().default(8),
  hosts: z.int().default(1),
  dropoutProb: z.number().default(0),
}) {
  override task(): Config<SingleTask> {
    const { dims, heads, vocab, time, layers, dropoutProb } = this;
    const lmTpl = gpt2Lm({
      ...{ vocabSize: vocab, modelDims: dims, numLayers: layers, numHeads: heads, maxSeqLength: time },
      ...{ useBias: true, dropoutProb },
    });
    const learner = Learner.config({ optimizer: AdamW.config({ learningRate: 1e-3 }) });
    return SingleTask.config({ model: LanguageModel.config({ lmTpl }), train: Train.config({ learner }) });
  }
  override datasets(): Config<BaseInput>[] {
    const { batch, time, vocab, hosts } = this;
    const rows = { batchSize: batch, seqLen: time, vocabSize: vocab };
    return [SyntheticLmInput.config({ ...rows, isTraining: true, numInfeedHosts: hosts })];
  }
}

/** Pairs of a vector and a number. */
class PairInput extends RowInput.with({ dims: z.int() }) {
  protected override get numRows(): number {
    return Number.POSITIVE_INFINITY;
  }
  protected override emptyBatch(): Batch {
    const { batchSize, dims } = this.hp;
    const zeros = (...shape: number[]) =>
      ({ shape, dtype: 'float32', data: new Float32Array(shape.reduce((a, b) => a * b, 1)) }) as const;
    return { x: zeros(batchSize, dims), y: zeros(batchSize, 1) };
  }
  protected override fillRow(_row: number, _batch: Batch, _b: number): void {}
  protected override identity() {
    return {};
  }
}

/** Least squares: one linear layer, used once or, with the same weights, a second time. */
class Regression extends BaseModel.with({ linearTpl: sub(Linear), again: z.boolean().default(false) }) {
  #layers!: Linear[];
  protected override setup(): void {
    this.#layers = (this.hp.again ? ['first', 'second'] : ['first']).map((name) =>
      this.createChild(name, this.hp.linearTpl),
    );
  }
  override computePredictions(batch: TensorBatch) {
    return this.#layers.reduce((x, layer) => layer.fprop(x), batch.x!);
  }
  override computeLoss(
    predictions: tf.Tensor,
    batch: TensorBatch,
  ): [WeightedScalars, Record<string, tf.Tensor>] {
    const loss = tf.mean(tf.square(tf.sub(predictions, batch.y!)));
    return [{ total_loss: [loss, tf.scalar(1)] }, {}];
  }
}

/** `batch` pairs, `dims` numbers each. */
export class LeastSquares extends Experiment.with({
  dims: z.int().default(64),
  batch: z.int().default(32),
  outputs: z.int().default(1),
  again: z.boolean().default(false),
}) {
  override task(): Config<SingleTask> {
    const { dims, outputs, again } = this;
    const linearTpl = Linear.config({ inputDims: dims, outputDims: outputs });
    const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 0.1 }) });
    return SingleTask.config({
      model: Regression.config({ linearTpl, again }),
      train: Train.config({ learner }),
    });
  }
  override datasets(): Config<BaseInput>[] {
    return [PairInput.config({ dims: this.dims, batchSize: this.batch, isTraining: true })];
  }
}

/** An experiment's configs with these changes, as flags make them. */
export function configured(
  cls: typeof Gpt | typeof LeastSquares,
  changes: Record<string, string | number> = {},
): ConfiguredExperiment {
  const overrides = Object.entries(changes).map(
    ([path, text]): Override => ({ kind: 'set', path, text: String(text), origin: `--set ${path}=${text}` }),
  );
  return configure(
    { name: `tests.${cls.name}`, cls } as unknown as Parameters<typeof configure>[0],
    overrides,
  );
}
