/** @file The object that every program gets: what it evaluates, decodes, saves and reads, built-in or a user's own. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readCheckpoint } from '../../src/checkpoints/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type BaseInput, type SyntheticLmInput, TextInput } from '../../src/inputs/index.js';
import { runLoop } from '../../src/programs/loop.js';
import type { DecodeResult, EvalResult, Program, ProgramRun, WeightedValues } from '../../src/tasks/index.js';
import { TrackMetric } from '../../src/tasks/index.js';
import { project } from '../command.js';
import { metricLines } from './runs.js';
import { openJob, tinyOptions, tokens } from './tinyJob.js';

/** A program that does something at every step, and at the end. */
function acting(
  name: string,
  run: (run: ProgramRun) => Promise<unknown>,
  more: Partial<Program> = {},
): Program {
  const act = async (view: ProgramRun) => {
    await run(view);
    return undefined;
  };
  return { name, isDue: () => true, run: act, close: async () => {}, ...more };
}

const validation = (values: Partial<Config<SyntheticLmInput>> = {}) =>
  tokens('validation', { numBatches: 3, inputRandomSeed: 5, ...values });

const stepsOf = (directory: string) =>
  readdirSync(join(directory, 'checkpoints')).map((name) => Number(name.slice('checkpoint_'.length)));

test('a user program evaluates and decodes as built-in ones do, as a config and as an input', async () => {
  const options = tinyOptions({}, { mode: 'train_and_decode' });
  const text = () =>
    TextInput.config({
      ...{ name: 'validation', files: [join(project, 'corpus/counting.txt')], split: 'validation' as const },
      ...{ seqLen: 8, batchSize: 2, evalLoopNumBatches: 3 },
    });
  const data = text();
  const job = {
    ...options,
    datasets: [...options.datasets, data as Config<BaseInput>],
    decodeDatasets: [data as Config<BaseInput>],
  };
  const seen: [EvalResult, EvalResult, WeightedValues, DecodeResult][] = [];
  const input = build(text());
  const mine = acting('mine', async (run) => {
    if (run.step % 2 !== 0) return;
    const [byConfig, byInput] = [await run.evaluate(text()), await run.evaluate(input)];
    seen.push([byConfig, byInput, run.metrics('eval_test_validation')!, await run.decode(text())]);
  });
  const { loop, measurements } = await openJob(job, [mine]);
  await runLoop(loop);
  expect(seen).toHaveLength(2);
  for (const [byConfig, byInput, builtIn] of seen) {
    expect(byConfig.metrics).toEqual(builtIn);
    expect(byInput.metrics).toEqual(builtIn);
    expect(byConfig.batches).toBe(3);
    expect(byConfig.end).toBeNull();
  }
  // The weights have changed between the two.
  expect(seen[1]![2]).not.toEqual(seen[0]![2]);
  const written = readFileSync(
    join(options.jobLogDir, 'decoder_out/validation/decoder_out_4_shard_0.jsonl'),
    'utf8',
  );
  const decoded = seen[1]![3];
  expect(decoded.examples.map((example) => JSON.stringify(example))).toEqual(written.trim().split('\n'));
  expect(decoded.path).toBeUndefined();
  const texts = decoded.examples.map(
    ({ prefix, decoded_substr, original }) =>
      `---\n${prefix}\n>>>\n${decoded_substr}\nREF\n${original.slice(prefix.length)}\n`,
  );
  expect(
    readFileSync(join(options.jobLogDir, 'decoder_out/validation/decoder_out_4_shard_0.txt'), 'utf8'),
  ).toBe(texts.join(''));
  const records = [
    'decode_test_validation.json',
    'eval_test_validation.json',
    'mine_validation.json',
    'train.json',
  ];
  expect(readdirSync(join(options.jobLogDir, 'data')).sort()).toEqual(records);
  await measurements.close();
  // The job closes what it opened; the input is its owner's.
  await expect(input.getNext()).resolves.toBeDefined();
  await input.close();
});

test('evaluations of programs change no bit of training', async () => {
  const train = async (programs: readonly Program[]) => {
    const { loop, run } = await openJob(tinyOptions(), programs);
    await runLoop(loop);
    return run.viewOf('any').params;
  };
  const evaluating = acting('mine', async (run) => {
    await run.evaluate('train');
    await run.evaluate(validation());
  });
  expect(await train([evaluating])).toEqual(await train([]));
});

test('the present parameters or their average', async () => {
  const results: (readonly [number, number, number])[] = [];
  const loss = ({ metrics }: EvalResult) => metrics.log_pplx!.value;
  const mine = acting('mine', async (run) => {
    const evaluate = async (useEmaStates?: boolean) =>
      loss(await run.evaluate(validation(), { useEmaStates }));
    results.push([await evaluate(), await evaluate(true), await evaluate(false)]);
  });
  const options = tinyOptions({ evalUseEmaStates: true }, { emaDecay: 0.9 });
  const { loop } = await openJob(options, [mine]);
  await runLoop(loop);
  for (const [usual, average, present] of results) {
    expect(usual).toBe(average);
    expect(present).not.toBe(average);
  }
  const asking = acting('mine', (run) => run.evaluate(validation(), { useEmaStates: true }));
  const { loop: without } = await openJob(tinyOptions(), [asking]);
  await expect(runLoop(without)).rejects.toThrow(
    'useEmaStates needs an average of the parameters: set task.train.learner.optimizer.emaDecay, to 0.999 say.',
  );
});

test('data that goes on begins where the last evaluation ended; else at its first batch', async () => {
  const rolling = () => validation({ numBatches: 3, resetForEval: false, evalLoopNumBatches: 2 });
  const losses: number[] = [];
  let from: EvalResult['end'] = null;
  const mine = acting('mine', async (run) => {
    const anew = await run.evaluate(rolling());
    const goingOn: EvalResult = await run.evaluate(rolling(), { from });
    from = goingOn.end;
    losses.push(anew.metrics.log_pplx!.value, goingOn.metrics.log_pplx!.value);
  });
  const { loop } = await openJob(tinyOptions({ numTrainSteps: 2 }), [mine]);
  await runLoop(loop);
  const [first, same, second, other] = losses;
  expect(same).toBe(first);
  expect(other).not.toBe(second);
});

test('results that are reported are metrics of the program, which others read and which can be tracked', async () => {
  const trackMetric = TrackMetric.config({ evaluation: 'mine', metric: 'log_pplx', mode: 'max' });
  const mine = acting('mine', async (run) => run.report(await run.evaluate(validation())));
  const read: unknown[] = [];
  const reader = acting('reader', async (run) => {
    read.push([run.step, run.metricsStep('mine'), run.metrics('mine')?.log_pplx?.weight]);
    expect(run.metrics('none')).toBeUndefined();
  });
  const options = tinyOptions({ trackMetric });
  await expect(openJob(options, [mine])).resolves.toMatchObject({ list: [{ name: 'mine' }] });
  const { loop, run } = await openJob(tinyOptions(), [mine, reader]);
  await runLoop(loop);
  expect(read).toEqual([1, 2, 3, 4].map((step) => [step, step, 48]));
  const lines = metricLines(run.viewOf('any').directory).filter(({ program }) => program === 'mine');
  expect(lines.map(({ step, batches }) => [step, batches])).toEqual([1, 2, 3, 4].map((step) => [step, 3]));
});

test('metrics of training are the means of its newest summary, in a resumed run too', async () => {
  const seen: unknown[] = [];
  const mine = acting('mine', async (run) => {
    const { loss, log_pplx } = run.metrics('train') ?? {};
    seen.push([run.step, run.metricsStep('train'), loss?.weight, log_pplx?.weight]);
  });
  const options = tinyOptions({ summaryIntervalSteps: 2, numTrainSteps: 3 });
  const { loop } = await openJob(options, [mine]);
  await runLoop(loop);
  expect(seen).toEqual([
    [1, undefined, undefined, undefined],
    [2, 2, 2, 32],
    [3, 3, 1, 16],
  ]);
  const line = metricLines(options.jobLogDir).findLast(({ program }) => program === 'train')!;
  expect(loop.run.viewOf('any').metrics('train')!.loss!.value).toBe(line.loss);
  const longer = tinyOptions({ summaryIntervalSteps: 5, numTrainSteps: 4 }, { jobLogDir: options.jobLogDir });
  const resumed = await openJob(longer, []);
  expect(resumed.run.viewOf('any').metricsStep('train')).toBe(3);
  expect(resumed.run.viewOf('any').metrics('train')).toEqual(loop.run.viewOf('any').metrics('train'));
});

test('a checkpoint where a program asks for one; the best is kept and named', async () => {
  const mine = acting('mine', async (run) => {
    if (run.step === 1) run.save('the loss fell');
    if (run.step === 3) run.saveBest('mine/score', 0.25);
  });
  const options = tinyOptions({ numTrainSteps: 5, saveIntervalSteps: 100, saveMaxToKeep: 1 });
  const { loop, lines, start } = await openJob(options, [mine]);
  await runLoop(loop);
  expect(lines).toEqual(['mine asks for a checkpoint at step 1: the loss fell']);
  expect(stepsOf(options.jobLogDir)).toEqual([3, 5]);
  const { metadata } = readCheckpoint(
    join(options.jobLogDir, 'checkpoints/checkpoint_00000005'),
    start.state,
  );
  expect(metadata.best).toEqual({ step: 3, metric: 'mine/score', value: 0.25 });
  // A run that goes on knows it.
  const resumed = await openJob({ ...options });
  expect(resumed.run.best).toEqual(metadata.best);
  expect(() => resumed.run.viewOf('mine').saveBest('score', Number.NaN)).toThrow(
    'mine: score is NaN, and the value of a best checkpoint is finite.',
  );
});

test('several evaluations at once come one after another; one that nobody awaits ends before the next step', async () => {
  const alone: number[] = [];
  const together: number[] = [];
  const stepsAtEnd: number[] = [];
  const loss = ({ metrics }: EvalResult) => metrics.log_pplx!.value;
  const other = () => validation({ inputRandomSeed: 6 });
  const mine = acting('mine', async (run) => {
    alone.push(loss(await run.evaluate(validation())), loss(await run.evaluate(other())));
    together.push(...(await Promise.all([run.evaluate(validation()), run.evaluate(other())])).map(loss));
    void run.evaluate(validation()).then(() => stepsAtEnd.push(run.step));
  });
  const { loop } = await openJob(tinyOptions({ numTrainSteps: 3 }), [mine]);
  await runLoop(loop);
  expect(together).toEqual(alone);
  expect(stepsAtEnd).toEqual([1, 2, 3]);
});
