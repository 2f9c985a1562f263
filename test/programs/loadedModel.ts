/** @file Models whose weights come from a checkpoint, for tests. */
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config, type ConfigValues } from '../../src/hparams/index.js';
import type { TransformerLm } from '../../src/layers/index.js';
import { Adam, Learner } from '../../src/learners/index.js';
import { type BaseModel, LanguageModel } from '../../src/models/index.js';
import { InitFromCheckpoint } from '../../src/programs/initFromCheckpoint.js';
import { paramsOf } from '../../src/programs/taskState.js';
import { CheckpointLoadingRules, SingleTask, Train } from '../../src/tasks/index.js';
import { ints, run } from '../layers/helpers.js';

type Rules = Partial<ConfigValues<CheckpointLoadingRules>>;

/** A language model whose initial values come from a checkpoint. */
export const loaded = (lmTpl: Config<TransformerLm>, checkpoint: string, rules: Rules = {}) =>
  loadedModel(LanguageModel.config({ lmTpl }), checkpoint, rules);

/** The state of a model whose initial values come from a checkpoint, and what is told of it. */
export function loadedModel(model: Config<BaseModel>, checkpoint: string, rules: Rules = {}) {
  const task = build(
    SingleTask.config({
      model,
      train: Train.config({
        learner: Learner.config({ optimizer: Adam.config({ learningRate: 0.1 }) }),
        initFromCheckpoint: [CheckpointLoadingRules.config({ ...rules, checkpoint })],
      }),
    }),
  );
  const state = paramsOf(task);
  state.params.fill(Number.NaN);
  const given = InitFromCheckpoint.open(task, state)!;
  try {
    given.load();
  } finally {
    given.close();
  }
  return { task, state, lines: given.lines() };
}

/** Values of a loaded model by the paths of its variables. */
export const thetaOf = ({ state }: ReturnType<typeof loaded>): Record<string, Tensor> =>
  Object.fromEntries(
    state.layout.entries.map(({ name, shape }) => [
      name,
      tf.tensor(state.views[name]!, [...shape], 'float32') as Tensor,
    ]),
  );

/** Logits of one row of ids. */
export function logitsOf(loadedModel: ReturnType<typeof loaded>, ids: number[]): ArrayLike<number> {
  const shape = [1, ids.length];
  const batch = {
    ids: ints(ids, shape),
    labels: ints(ids, shape),
    weights: tf.ones(shape) as Tensor,
    paddings: tf.zeros(shape) as Tensor,
  };
  const model = loadedModel.task.model as LanguageModel;
  return run(thetaOf(loadedModel), () => model.computePredictions(batch).logits, { doEval: true }).dataSync();
}
