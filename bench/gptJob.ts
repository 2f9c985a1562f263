/** @file Benchmark job: GPT on random tokens, as in peers/torch_gpt.py. */
import { type Engine, flatLayout, flatViews } from '../src/compiler/index.js';
import { build, type Config } from '../src/hparams/index.js';
import { type Batch, SyntheticLmInput } from '../src/inputs/index.js';
import { initVariables, listVariables } from '../src/layers/index.js';
import { AdamW, Learner } from '../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../src/models/index.js';
import { beginToInitialize, type FlatParams, trainStateOf } from '../src/programs/taskState.js';
import { TrainProgram } from '../src/programs/trainProgram.js';
import type { JobOptions } from '../src/runs/options.js';
import { SingleTask, Train } from '../src/tasks/index.js';
import type { Precision } from './results.js';
import type { Shape } from './shapes.js';

/** Repeats one batch of random tokens: the peers have no input pipeline either. */
class OneBatch extends SyntheticLmInput.with({}) {
  #batch: Promise<Batch> | undefined;

  override getNext(): Promise<Batch> {
    return this.peek();
  }

  override peek(): Promise<Batch> {
    this.#batch ??= super.peek();
    return this.#batch;
  }
}

/** The peers' model. */
export function gptModel(
  { layers, heads, width, context, vocabulary }: Shape,
  precision: Precision,
): Config<LanguageModel> {
  const lmTpl = gpt2Lm({
    vocabSize: vocabulary,
    modelDims: width,
    numLayers: layers,
    numHeads: heads,
    maxSeqLength: context,
  });
  return LanguageModel.config({ fpropDtype: precision === 'bf16' ? 'bfloat16' : 'float32', lmTpl });
}

/** Initial values of a model's variables, which all are drawn by seed 0. */
export function initialParams(model: LanguageModel): FlatParams {
  const layout = flatLayout(
    listVariables(model).map(({ path, shape }) => ({ name: path, shape, group: 'all' })),
  );
  const views = flatViews(layout, new Float32Array(layout.size));
  for (const [path, values] of initVariables(model, 0)) views[path]!.set(values);
  return { layout, views };
}

/** The task trained by peers/torch_gpt.py. */
function gptTask(shape: Shape, precision: Precision) {
  const optimizer = AdamW.config({
    learningRate: 1e-3,
    beta2: 0.99,
    decoupledWeightDecay: 0.1,
    skipLp1dVectors: true,
    clipGradientNormToValue: 1,
  });
  const train = Train.config({ learner: Learner.config({ optimizer }) });
  return SingleTask.config({ model: gptModel(shape, precision), train });
}

/** Opens this job's training program with initial values, like main.ts. */
export async function openProgram(options: JobOptions): Promise<TrainProgram> {
  const task = build(options.task);
  const state = trainStateOf(task);
  const initialized = await beginToInitialize(options, task, state);
  const program = TrainProgram.create(options, task, state, build(options.datasets[0]!));
  return (await Promise.all([program, initialized.done]))[0];
}

/** Options of a job that trains this task, like main.ts. */
export const jobOptions = (
  shape: Shape,
  engine: Engine = 'auto',
  numThreads?: number,
  precision: Precision = 'f32',
): JobOptions => optionsOf(gptTask(shape, precision), shape, engine, numThreads);

/** Options of a job that trains a task on one batch of random tokens. */
export function optionsOf(
  task: Config<SingleTask>,
  {
    batch: batchSize,
    context: seqLen,
    vocabulary: vocabSize,
  }: Pick<Shape, 'batch' | 'context' | 'vocabulary'>,
  engine: Engine,
  numThreads?: number,
): JobOptions {
  return {
    name: 'bench',
    task,
    datasets: [OneBatch.config({ batchSize, seqLen, vocabSize, isTraining: true })],
    decodeDatasets: [],
    moduleUrl: import.meta.url,
    jobLogDir: '',
    mode: 'train',
    overrides: [],
    classVars: '',
    engine,
    numThreads,
  };
}
