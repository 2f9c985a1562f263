/** @file A language model of a few thousand parameters with its training program, in this process. */
import { type Bfloat16Products, type Engine, flatViews } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type InputSource, SyntheticLmInput } from '../../src/inputs/index.js';
import type { BaseNormalization } from '../../src/layers/index.js';
import { AdamW, Learner } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { SplitState } from '../../src/programs/ranks/splitState.js';
import type { TrainMemory } from '../../src/programs/taskState.js';
import { heldByEngine, outlineOf, trainStateOf } from '../../src/programs/taskState.js';
import { TrainProgram } from '../../src/programs/trainProgram.js';
import type { JobOptions, JobRanks } from '../../src/runs/options.js';
import { type Mesh, SingleTask, Train } from '../../src/tasks/index.js';

/** Rows of several blocks of a chain. */
const batchSize = 9;
const seqLen = 16;
const vocabSize = 64;

/** Random tokens: the same in every run. */
export const tokens = (): InputSource =>
  build(SyntheticLmInput.config({ batchSize, seqLen, vocabSize, isTraining: true }));

/** A program that trains from initial values, and the state that it trains. */
export async function tinyTraining(
  engine: Engine,
  numThreads: number,
  {
    fpropDtype = 'float32',
    input = tokens(),
    Model = LanguageModel,
    emaDecay = 0,
    finalLnTpl,
    debug,
    isHeld = false,
    edit = () => {},
    ranks,
    mesh,
    bfloat16Products,
  }: {
    fpropDtype?: 'float32' | 'bfloat16';
    input?: InputSource;
    Model?: typeof LanguageModel;
    emaDecay?: number;
    finalLnTpl?: Config<BaseNormalization>;
    debug?: JobOptions['debug'];
    /** Whether steps may hold the state on their device. */
    isHeld?: boolean;
    edit?: (config: Config<SingleTask>) => void;
    ranks?: JobRanks;
    /** Where ranks lie that hold parts of the state. */
    mesh?: Mesh;
    bfloat16Products?: Bfloat16Products | undefined;
  } = {},
): Promise<{ program: TrainProgram; state: TrainMemory; task: SingleTask; options: JobOptions }> {
  const lmTpl = gpt2Lm({ vocabSize, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: seqLen });
  if (finalLnTpl) lmTpl.finalLnTpl = finalLnTpl;
  const optimizer = AdamW.config({ learningRate: 1e-2, clipGradientNormToValue: 1, emaDecay });
  const config = SingleTask.config({
    model: Model.config({ fpropDtype, lmTpl }),
    train: Train.config({ learner: Learner.config({ optimizer }) }),
  });
  edit(config);
  const task = build(config);
  const isFirst = (ranks?.rank ?? 0) === 0;
  const own = isFirst || mesh === undefined ? trainStateOf(task) : outlineOf(task);
  const whole = isHeld || mesh !== undefined ? heldByEngine(own) : own;
  const split = await SplitState.of({ ranks, mesh }, task, isFirst ? whole : undefined);
  const state = split === undefined ? whole : { ...whole, split };
  if (isFirst || mesh === undefined) await task.initialize(flatViews(state.layout, state.params));
  await split?.fill({});
  const options: JobOptions = {
    name: 'tiny',
    task: config,
    datasets: [],
    decodeDatasets: [],
    moduleUrl: import.meta.url,
    jobLogDir: '',
    mode: 'train',
    overrides: [],
    classVars: '',
    engine,
    numThreads,
    debug,
    bfloat16Products,
    ...{ ranks, mesh },
  };
  return {
    program: await TrainProgram.create(options, task, state, input),
    state,
    task,
    options,
  };
}
