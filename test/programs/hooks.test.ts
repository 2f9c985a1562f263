/** @file Hooks of programs: their order, what ends a job, errors of hooks beside that of the job. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DuePrograms } from '../../src/programs/duePrograms.js';
import { runLoop } from '../../src/programs/loop.js';
import { Run, type RunParts } from '../../src/programs/run.js';
import { strayFailures } from '../../src/runs/jobErrors.js';
import type { JobOptions } from '../../src/runs/options.js';
import type { Program, ProgramRun, SingleTask } from '../../src/tasks/index.js';

type Hook = 'start' | 'run' | 'onCheckpoint' | 'onError' | 'end';
type Act = (run: ProgramRun) => void;

/** A job of a few steps without a model: what happens in it, in order. */
function job(mode: JobOptions['mode'] = 'train', { onEvalError = 'continue', numTrainSteps = 2 } = {}) {
  const happened: string[] = [];
  const stop: { received: 'SIGTERM' | undefined } = { received: undefined };
  const state = { step: 0 };
  const reporter = {
    tell: (line: string) => happened.push(line),
    failed: (program: string, step: number, { message }: Error, goesOn: boolean) =>
      happened.push(`${program} failed at ${step}, ${goesOn ? 'goes on' : 'stops'}: ${message}`),
    summary: (program: string, step: number, summaries: object) =>
      happened.push(`${program} at ${step}: ${JSON.stringify(summaries)}`),
  };
  const options = { jobLogDir: 'out', mode } as JobOptions;
  const run = new Run({ options, state, reporter, stop } as unknown as RunParts);
  const task = { hp: { train: { hp: { onEvalError, numTrainSteps } } } } as unknown as SingleTask;
  const train: Program = {
    name: 'train',
    isDue: (step) => step < numTrainSteps,
    run: async () => {
      state.step += 1;
      happened.push(`step ${state.step}`);
      programs?.reach(state.step);
      return undefined;
    },
    close: async () => {},
  };
  let programs: DuePrograms | undefined;
  return {
    ...{ happened, run, stop, train },
    /** Runs the job with these programs, all pending at first in a job on a checkpoint. */
    loop: (list: readonly Program[], own: Program = train) => {
      const trains = mode.startsWith('train');
      programs = new DuePrograms(options, task, list, trains ? [] : list.map(({ name }) => name));
      return runLoop({ run, ...(trains && { train: own }), programs, strays: strayFailures() });
    },
  };
}

/** A program that tells of its hooks, and acts in some of them. */
function telling(
  { happened }: ReturnType<typeof job>,
  name: string,
  acts: Partial<Record<Hook, Act>> = {},
  more: Partial<Program> = {},
): Program {
  const hook = (which: Hook) => async (run: ProgramRun, about?: unknown) => {
    const what =
      about instanceof Error ? ` ${about.message}` : about === undefined ? '' : ` ${JSON.stringify(about)}`;
    happened.push(`${name} ${which} ${run.step}${what}`);
    acts[which]?.(run);
    return undefined;
  };
  const [start, run, onCheckpoint, onError, end] = (
    ['start', 'run', 'onCheckpoint', 'onError', 'end'] as const
  ).map(hook);
  return {
    ...{
      name,
      isDue: () => true,
      start: start!,
      run: run!,
      onCheckpoint: onCheckpoint!,
      onError: onError!,
      end: end!,
    },
    close: async () => {},
    ...more,
  };
}

const fails = (message: string) => () => {
  throw new Error(message);
};

test('start, run and end come in the order of the list, each once at its time', async () => {
  const it = job();
  await it.loop([telling(it, 'a'), telling(it, 'b')]);
  expect(it.happened).toEqual([
    ...['a start 0', 'b start 0', 'step 1', 'a run 1', 'b run 1', 'step 2', 'a run 2', 'b run 2'],
    ...['a end 2', 'b end 2'],
  ]);
});

test('a program without hooks takes part; summaries are reported', async () => {
  const it = job();
  const plain: Program = {
    ...{ name: 'plain', isDue: (_, isLast) => isLast, close: async () => {} },
    run: async () => ({ loss: 3 }),
  };
  await it.loop([plain]);
  expect(it.happened).toEqual(['step 1', 'step 2', 'plain at 2: {"loss":3}']);
});

test('a program that asks for a checkpoint has the others run first; checkpoints that are whole are told at the next pause', async () => {
  const it = job();
  const announce: Act = ({ step }) => it.run.checkpointIsWhole({ step, path: join('out', `${step}`) });
  const asking = telling(it, 'asking', { run: (run) => run.step === 1 && run.save() });
  const saving = telling(it, 'checkpoints', { run: announce, end: announce }, { isDue: () => false });
  await it.loop([asking, telling(it, 'b'), saving]);
  expect(it.happened).toEqual([
    ...['asking start 0', 'b start 0', 'checkpoints start 0', 'step 1', 'asking run 1', 'b run 1'],
    ...['checkpoints run 1', 'step 2'],
    ...['asking', 'b', 'checkpoints'].map((name) => `${name} onCheckpoint 2 {"step":1,"path":"out/1"}`),
    ...['asking run 2', 'b run 2', 'asking end 2', 'b end 2', 'checkpoints end 2'],
    ...['asking', 'b', 'checkpoints'].map((name) => `${name} onCheckpoint 2 {"step":2,"path":"out/2"}`),
  ]);
});

test('an error: the last program acts first, and errors of hooks stand beside it', async () => {
  const it = job();
  const broken = { ...it.train, run: async () => Promise.reject(new Error('the disk is full')) };
  const list = [telling(it, 'a'), telling(it, 'b', { onError: fails('no network') }), telling(it, 'c')];
  await expect(it.loop(list, broken)).rejects.toThrow('the disk is full');
  expect(it.happened).toEqual([
    ...[
      'a start 0',
      'b start 0',
      'c start 0',
      'c onError 0 the disk is full',
      'b onError 0 the disk is full',
    ],
    ...['b failed, too, in its onError: no network', 'a onError 0 the disk is full'],
  ]);
});

test('errors of start and end fail the job; all programs end nevertheless', async () => {
  const beginning = job();
  await expect(beginning.loop([telling(beginning, 'a', { start: fails('no') })])).rejects.toThrow('no');
  expect(beginning.happened).toEqual(['a start 0', 'a onError 0 no']);
  const ending = job('train', { numTrainSteps: 0 });
  const list = [
    telling(ending, 'a', { end: fails('first') }),
    telling(ending, 'b', { end: fails('second') }),
  ];
  await expect(ending.loop(list)).rejects.toThrow('first');
  expect(ending.happened).toEqual([
    ...['a start 0', 'b start 0', 'a end 0', 'b end 0', 'b onError 0 first', 'a onError 0 first'],
  ]);
});

test('errors of run and onCheckpoint are those of an evaluation, unless the program must succeed', async () => {
  const failing = (it: ReturnType<typeof job>, more = {}) => telling(it, 'a', { run: fails('oh') }, more);
  const goingOn = job('train', { numTrainSteps: 1 });
  goingOn.run.checkpointIsWhole({ step: 0, path: 'p' });
  await goingOn.loop([telling(goingOn, 'a', { onCheckpoint: fails('no ink'), run: fails('oh') })]);
  expect(goingOn.happened).toEqual([
    ...['a start 0', 'a onCheckpoint 0 {"step":0,"path":"p"}', 'a failed at 0, goes on: no ink'],
    ...['step 1', 'a run 1', 'a failed at 1, goes on: oh', 'a end 1'],
  ]);
  const stopping = job('train', { onEvalError: 'stop' });
  await expect(stopping.loop([failing(stopping)])).rejects.toThrow('oh');
  expect(stopping.happened.slice(-2)).toEqual(['a failed at 1, stops: oh', 'a onError 1 oh']);
  const vital = job();
  await expect(vital.loop([failing(vital, { mustSucceed: true })])).rejects.toThrow('oh');
  expect(vital.happened.slice(-2)).toEqual(['a run 1', 'a onError 1 oh']);
});

test('a signal: programs that have not run stay pending, and each ends', async () => {
  const it = job();
  const stopping = telling(it, 'a', {
    run: (run) => {
      it.stop.received = 'SIGTERM';
      run.throwIfStopped();
    },
    end: (run) => run.throwIfStopped(),
  });
  await it.loop([stopping, telling(it, 'b')]);
  expect(it.happened).toEqual(['a start 0', 'b start 0', 'step 1', 'a run 1', 'a end 1', 'b end 1']);
});

test('a program ends training from any hook: what is due at the end runs once', async () => {
  for (const hook of ['start', 'run'] as const) {
    const it = job('train', { numTrainSteps: 9 });
    const atEnd = telling(it, 'first', {}, { isDue: (_, isLast) => isLast });
    const ending = telling(it, 'a', { [hook]: (run: ProgramRun) => run.endTraining('enough') });
    await it.loop([atEnd, ending]);
    expect(it.run.ended).toBe('enough');
    const step = hook === 'start' ? 0 : 1;
    expect(it.happened.filter((line) => line.includes(' run '))).toEqual(
      hook === 'start' ? ['first run 0', 'a run 0'] : ['a run 1', 'first run 1'],
    );
    expect(it.happened.slice(-2)).toEqual([`first end ${step}`, `a end ${step}`]);
  }
});

test('a job on a checkpoint: the same hooks once, no saving, no end of training, any error ends it', async () => {
  const it = job('eval');
  await it.loop([telling(it, 'a', { run: (run) => run.endTraining('enough') }), telling(it, 'b')]);
  expect(it.happened).toEqual([
    ...['a start 0', 'b start 0', 'a run 0', 'a would end training at step 0: enough', 'b run 0'],
    ...['a end 0', 'b end 0'],
  ]);
  const saving = job('decode');
  await expect(saving.loop([telling(saving, 'a', { run: (run) => run.save() })])).rejects.toThrow(
    'a asks for a checkpoint, and --mode=decode reads one and saves none. ' +
      'Let the program ask where run.isTraining alone.',
  );
  expect(saving.run.viewOf('a').isTraining).toBe(false);
});
