/** @file A state that steps hold on their device: same bits, no traffic with the host but for those who read it. */
import { afterEach, expect, test, vi } from 'vitest';
import { compile, flatViews, type TensorMemory, tf } from '../../src/compiler/index.js';
import { Adafactor } from '../../src/learners/index.js';
import { runLoop } from '../../src/programs/loop.js';
import type { Program, ProgramRun } from '../../src/tasks/index.js';
import { openJob, tinyOptions } from './tinyJob.js';
import { tinyTraining } from './tinyTraining.js';

afterEach(() => void vi.restoreAllMocks());

type Options = NonNullable<Parameters<typeof tinyTraining>[2]>;

/** Elements that have gone to the backend and come back since the last call. */
function traffic(): () => { up: number; down: number } {
  let [up, down] = [0, 0];
  const engine = tf.engine();
  const { makeTensor, readSync, read } = engine;
  vi.spyOn(engine, 'makeTensor').mockImplementation((values: any, ...rest) => {
    up += values.length;
    return makeTensor.call(engine, values, ...rest);
  });
  const counted = <T extends { length: number }>(values: T): T => {
    down += values.length;
    return values;
  };
  vi.spyOn(engine, 'readSync').mockImplementation((id) => counted(readSync.call(engine, id) as any));
  vi.spyOn(engine, 'read').mockImplementation(async (id) => counted((await read.call(engine, id)) as any));
  return () => {
    const since = { up, down };
    [up, down] = [0, 0];
    return since;
  };
}

/** Reports of some steps, one or several a call, and the state behind them. */
async function trained(options: Options) {
  const { program, state } = await tinyTraining('eager', 1, options);
  const reports = [...(await program.runSteps(1)), ...(await program.runSteps(2))];
  await state.memory?.toHost();
  const norms = program.updater.gradNorms();
  return { reports, norms, params: state.params, slots: state.slots, grads: state.grads };
}

test.each<[string, Options]>([
  ['float32', {}],
  ['a moving average, products in bfloat16', { emaDecay: 0.9, fpropDtype: 'bfloat16' }],
  [
    'a slot of int8',
    { edit: (config) => void (config.train.learner.optimizer = Adafactor.config({ learningRate: 0.1 })) },
  ],
])('steps have the bits of those on host memory: %s', async (_, options) => {
  const expected = await trained(options);
  const held = await trained({ ...options, isHeld: true });
  expect(held).toEqual(expected);
  expect(new Set(held.reports.map(({ loss }) => loss)).size).toBe(3);
});

test('the state goes up once, and down where it is read', async () => {
  const since = traffic();
  const { program, state, task } = await tinyTraining('eager', 1, { isHeld: true });
  const { program: other } = await tinyTraining('eager', 1);
  const lengths = (arrays: readonly { length: number }[]) =>
    arrays.reduce((sum, { length }) => sum + length, 0);
  const { layout, changing } = state;
  const [variables, gradients] = [layout, changing].map((of) =>
    lengths(Object.values(flatViews(of, state.params))),
  );
  const groups = Object.values(program.updater.inputs.groups) as unknown as {
    param: Float32Array;
    grad: Float32Array;
    slots: Record<string, Float32Array>;
  }[];
  const updated = lengths(groups.flatMap(({ param, slots }) => [param, ...Object.values(slots)]));
  const ofState = {
    up: variables! + updated + lengths(groups.map(({ grad }) => grad)),
    down: gradients! + updated,
  };
  await program.runSteps(1);
  await other.runSteps(1);
  since();
  await program.runSteps(2);
  const held = since();
  await other.runSteps(2);
  const plain = since();
  // The rest are batches, keys, constants and scalars; losses, metrics and norms.
  expect({ up: plain.up - held.up, down: plain.down - held.down }).toEqual({
    up: 2 * ofState.up,
    down: 2 * ofState.down,
  });
  const began = state.params.slice();
  await state.memory!.toHost();
  // Weights, gradients and two slots, with the gaps between groups at most.
  expect(since().down).toBe(updated + gradients!);
  expect(state.params).not.toEqual(began);
  await state.memory!.toHost();
  expect(since()).toEqual({ up: 0, down: 0 });
  await program.runSteps(1);
  expect(since().up).toBe(held.up / 2);
  expect(task.trainablePaths().length).toBeGreaterThan(3);
});

test('programs see it on whichever engine they run, and steps see what others have written', async () => {
  const { program, state } = await tinyTraining('eager', 1, { isHeld: true });
  await program.runSteps(2);
  const [path, view] = Object.entries(flatViews(state.layout, state.params))[0]!;
  const stale = view.slice();
  const inputs = { x: { shape: [view.length], dtype: 'float32' } } as const;
  const double = ({ x }: any) => ({ x: tf.mul(x, 2) });
  for (const engine of ['onnx', 'eager'] as const) {
    const executable = await compile(double as any, inputs, { engine });
    const call = executable.bind({ inputs: { x: view }, outputs: { x: view } });
    await call.run();
    await executable.dispose();
  }
  await (state.memory as TensorMemory).toHost();
  const { program: other, state: expected } = await tinyTraining('eager', 1);
  await other.runSteps(2);
  const twice = flatViews(expected.layout, expected.params)[path]!;
  expect(stale).not.toEqual(twice);
  for (let i = 0; i < twice.length; i++) twice[i]! *= 4;
  expect(view).toEqual(twice);
  expect((await program.runSteps(1))[0]).toEqual((await other.runSteps(1))[0]);
});

test('closing brings it to the host, and leaves nothing on the device', async () => {
  const tensors = () => tf.memory().numTensors;
  const { program, state } = await tinyTraining('eager', 1, { isHeld: true });
  const { state: expected, program: other } = await tinyTraining('eager', 1);
  const began = tensors();
  await other.runSteps(1);
  const left = tensors() - began;
  await program.runSteps(1);
  expect(tensors() - began).toBeGreaterThan(2 * left + 10);
  await state.memory!.close();
  expect(state.params).toEqual(expected.params);
  expect(tensors() - began).toBe(2 * left);
});

test('programs of a job read what the steps before them have written', async () => {
  // No summaries, which read the state for themselves.
  const options = {
    ...tinyOptions({ summaryIntervalSteps: 100, evalIntervalSteps: 100 }),
    engine: 'eager' as const,
  };
  const seen: number[] = [];
  const watching = {
    name: 'watching',
    isDue: (step: number) => step === 2,
    run: async ({ params }: ProgramRun) => void seen.push(Object.values(params)[0]!.at(0)!),
    close: async () => {},
  };
  const { loop, start } = await openJob(options, [watching as unknown as Program]);
  const initial = start.state.params[0]!;
  await runLoop(loop);
  expect(start.state.memory).toBeDefined();
  expect(seen).toHaveLength(1);
  expect(seen[0]).not.toBe(initial);
});
