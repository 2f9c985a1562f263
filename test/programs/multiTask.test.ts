/** @file Training of several tasks in turn: each as if alone, resumed with the same bits, told by name; settings that are wrong. */
import { expect, test } from 'vitest';
import { heldViews } from '../../src/compiler/index.js';
import { build, type Config, type ConfigError, copyWith, derive } from '../../src/hparams/index.js';
import { ByWeight, InTurn, InterleavedInput } from '../../src/inputs/index.js';
import { AdamW, Learner, Linear, Sgd } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { KindSteps } from '../../src/programs/kindSteps.js';
import { runLoop } from '../../src/programs/loop.js';
import { heldByEngine, trainStateOf } from '../../src/programs/taskState.js';
import { TrainProgram } from '../../src/programs/trainProgram.js';
import { MultiTask, SingleTask, Train } from '../../src/tasks/index.js';
import { longTest } from '../longTest.js';
import { openJob, tinyOptions, tokens } from './tinyJob.js';

const pattern = ['copy', 'lm', 'copy', 'copy', 'lm'];

const lmInput = () => tokens('lm', { isTraining: true, seqLen: 6 });
const copyInput = () => tokens('copy', { isTraining: true, inputRandomSeed: 3, batchSize: 3 });

/** A decay that differs from step to step, so that learners that count wrong steps differ. */
const falling = () => Linear.config({ start: [0, 1], limit: [10, 0] } as never);

const lmLearner = () =>
  Learner.config({
    optimizer: AdamW.config({
      learningRate: 0.01,
      lrSchedule: falling(),
      decoupledWeightDecay: 0.1,
    } as never),
    bpropVariableExclusion: ['.*ln.*'],
  });
const copyLearner = () =>
  Learner.config({
    optimizer: Sgd.config({ learningRate: 0.1, momentum: 0.9, lrSchedule: falling() } as never),
    bpropVariableExclusion: ['lm/softmax/.*'],
  });

function optionsOf(numTrainSteps: number, jobLogDir?: string) {
  const every = { saveIntervalSteps: 100, evalIntervalSteps: 100, evalSkipTrain: false };
  const options = tinyOptions(
    { numTrainSteps, ...every },
    { mode: 'train_and_eval', ...(jobLogDir !== undefined && { jobLogDir }) },
  );
  const { model, train, decode } = options.task;
  const learner = lmLearner();
  const copy = SingleTask.config({
    model,
    train: Train.config({ learner: copyLearner(), numSubBatches: 3 }),
  });
  const task = MultiTask.config({
    ...{ model, decode },
    train: copyWith(train, { learner }),
    auxiliaryTasks: { copy },
  }) as Config<MultiTask>;
  const inputs = { lm: lmInput(), copy: copyInput() };
  const data = InterleavedInput.config({ inputs, isTraining: true, which: InTurn.config({ pattern }) });
  return {
    ...options,
    task: task as Config<SingleTask>,
    datasets: [data, tokens('copy', { numBatches: 1, seqLen: 5 })] as never,
  };
}

async function run(numTrainSteps: number, jobLogDir?: string) {
  const options = optionsOf(numTrainSteps, jobLogDir);
  const job = await openJob(options);
  await runLoop(job.loop);
  await job.start.state.memory?.toHost();
  return { ...job, options };
}

const whole = run(5);

test('each task moves the variables as it would alone, by its own data, learner, slots and steps', async () => {
  const { start, loop, task } = await whole;
  // Both alone, whose variables are made the same before each step.
  const alone = async (config: Config<SingleTask>, input: ReturnType<typeof lmInput>) => {
    const single = build(config);
    const state = trainStateOf(single);
    await single.initialize(state.views);
    const options = { ...optionsOf(5), task: config };
    return { state, program: await TrainProgram.create(options, single, state, build(input)) };
  };
  const { model, train } = tinyOptions().task;
  const tasks = {
    lm: await alone(
      SingleTask.config({ model, train: copyWith(train, { learner: lmLearner() }) }),
      lmInput(),
    ),
    copy: await alone(
      SingleTask.config({ model, train: Train.config({ learner: copyLearner(), numSubBatches: 3 }) }),
      copyInput(),
    ),
  };
  let newest = tasks.lm.state;
  for (const name of pattern) {
    const { state, program } = tasks[name as 'lm' | 'copy'];
    for (const [path, values] of Object.entries(newest.views)) state.views[path]!.set(values as never);
    await program.run();
    newest = state;
  }
  for (const [path, values] of Object.entries(start.state.views))
    expect([...values], path).toEqual([...newest.views[path]!]);
  expect(Object.keys(start.state.slots)).toEqual(['m', 'v', 'copy.m']);
  const slot = (state: typeof newest, name: string) =>
    heldViews(state.slotLayouts[name] as never, state.slots[name] as never);
  for (const [mine, of, its] of [
    ['m', tasks.lm, 'm'],
    ['copy.m', tasks.copy, 'm'],
  ] as const)
    expect(slot(start.state, mine)).toEqual(slot(of.state, its));
  expect(loop.run.newest.of('train')!.metrics).toMatchObject({ 'lm/loss': { weight: 1 } });
  // An evaluation of the name of a task is that task's, as that of the next training batch is, the sixth: copy.
  expect(Object.keys(loop.run.newest.of('eval_train')!.metrics)).toContain('copy/log_pplx');
  expect(loop.run.newest.of('eval_test_copy')!.metrics).toHaveProperty('log_pplx');
  expect(task.layout('copy').groups.map(({ name }) => name)).not.toContain('frozen');
});

longTest('a run that goes on has the bits of one that did not stop, and tells metrics by name', async () => {
  const { start } = await whole;
  const first = await run(3);
  const second = await run(5, first.options.jobLogDir);
  expect([...second.start.state.params]).toEqual([...start.state.params]);
  expect(second.start.state.slots).toEqual(start.state.slots);
});

test('settings that are wrong are named before the first step', async () => {
  const options = optionsOf(5);
  const errorOf = (act: () => unknown): string => {
    try {
      act();
    } catch (error) {
      return (error as ConfigError).message.replaceAll(/ ?\(at [^)]*\)/g, '');
    }
    return 'none';
  };
  const multi = options.task as Config<MultiTask>;
  const narrow = gpt2Lm({ vocabSize: 256, modelDims: 4, numLayers: 1, numHeads: 2, maxSeqLength: 8 });
  const other = copyWith(multi.auxiliaryTasks.copy!, { model: LanguageModel.config({ lmTpl: narrow }) });
  expect(errorOf(() => build(copyWith(multi, { auxiliaryTasks: { copy: other } } as never)))).toMatch(
    /^task\.auxiliaryTasks\.copy\.model: the variable '.*' is \[.*\], and in task\.model it is \[.*\]: tasks that are trained in turn have the same variables\.\n/,
  );
  const data = options.datasets[0] as unknown as Config<InterleavedInput>;
  const editing = (edit: (draft: Config<InterleavedInput>) => unknown) =>
    derive(data, (draft) => void edit(draft));
  expect(
    errorOf(() => build(editing((d) => (d.which = InTurn.config({ pattern: ['lm', 'cpy'] }))))),
  ).toContain(
    "Input 'train': which (InTurn) takes batch 1 from 'cpy', which is none of its inputs. Did you mean 'copy'? They are: lm, copy.",
  );
  const task = build(multi);
  const check = (input: Config<InterleavedInput>) => {
    const state = heldByEngine(trainStateOf(task));
    new KindSteps({ options, task, state, input: build(input) }).check();
  };
  expect(errorOf(() => check(data))).toBe('none');
  const unnamed = editing((d) => Object.assign(d, { inputs: { lm: lmInput() }, which: InTurn.config() }));
  expect(errorOf(() => check(unnamed))).toBe(
    "task.auxiliaryTasks.copy: the training data 'train' has the inputs lm, so nothing trains 'copy': name an input of " +
      'an InterleavedInput so, or leave out the task.',
  );
  const uneven = editing((d) => Object.assign(d.inputs, { copy: tokens('copy', { isTraining: true }) }));
  expect(errorOf(() => check(uneven))).toContain('which needs a multiple of 3 rows');
  const averaging = copyWith(multi.auxiliaryTasks.copy!, {});
  averaging.train = Train.config({
    learner: Learner.config({ optimizer: Sgd.config({ learningRate: 1, emaDecay: 0.9 }) }),
  });
  expect(errorOf(() => build(copyWith(multi, { auxiliaryTasks: { copy: averaging } } as never)))).toContain(
    "auxiliaryTasks (MultiTask): 'copy' averages parameters (emaDecay), which the main task alone does",
  );
});

test('inputs by weight come in their shares, the same in every run', () => {
  const draws = (randomSeed: number) => {
    const which = build(ByWeight.config({ weights: { a: 3, b: 1, c: 0 }, randomSeed }));
    return Array.from({ length: 4000 }, (_, i) => which.at(i));
  };
  const names = draws(7);
  const share = names.filter((name) => name === 'a').length / names.length;
  // Four standard deviations.
  expect(Math.abs(share - 0.75)).toBeLessThan(4 * Math.sqrt((0.75 * 0.25) / names.length));
  expect(names).not.toContain('c');
  expect(draws(7)).toEqual(names);
  expect(draws(8)).not.toEqual(names);
});
