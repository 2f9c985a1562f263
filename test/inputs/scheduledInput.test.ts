/** @file ScheduledInput: rows in the order of its input, whatever the phases; one compilation a phase; bits of runs that go on. */
import { expect, test } from 'vitest';
import type { HostTensor } from '../../src/compiler/index.js';
import { build, type Config, derive } from '../../src/hparams/index.js';
import { ScheduledInput, type SyntheticLmInput } from '../../src/inputs/index.js';
import { runLoop } from '../../src/programs/loop.js';
import { longTest } from '../longTest.js';
import { openJob, tinyOptions, tokens } from '../programs/tinyJob.js';

const phases = [
  { fromStep: 0, batchSize: 2, seqLen: 4 },
  { fromStep: 2, batchSize: 4 },
  { fromStep: 4, batchSize: 2, seqLen: 4 },
];

const scheduled = (edit: (draft: Config<ScheduledInput>) => unknown = () => {}) =>
  derive(
    ScheduledInput.config({ input: tokens('rows') as Config<SyntheticLmInput>, isTraining: true, phases }),
    (draft) => void edit(draft),
  );

test('rows come in the order of the input, cut to the length of their phase', async () => {
  const plain = build(tokens('rows', { isTraining: true }));
  const input = build(scheduled());
  const ids = (batch: Awaited<ReturnType<typeof input.getNext>>) =>
    batch.ids as HostTensor as { shape: readonly number[]; data: Int32Array };
  const row = (data: Int32Array, i: number, of: number, length = of) => [
    ...data.subarray(i * of, i * of + length),
  ];
  let state = input.getState();
  for (const [rows, length] of [
    [2, 4],
    [2, 4],
    [4, 8],
    [4, 8],
    [2, 4],
    [2, 4],
  ] as const) {
    const { shape, data } = ids(await input.getNext());
    expect(shape).toEqual([rows, length]);
    for (let i = 0; i < rows; i += 2) {
      const next = ids(await plain.getNext());
      for (const k of [0, 1]) expect(row(data, i + k, length)).toEqual(row(next.data, k, 8, length));
    }
    // A batch can be read again from the state before it, in the middle of a phase as well.
    const after = input.getState();
    input.setState(state);
    expect(ids(await input.peek()).data).toEqual(data);
    expect(input.kindOf(state).name).toBe(length === 4 ? '2 rows of 4' : '4 rows');
    input.setState(after);
    state = after;
  }
});

longTest(
  'a run compiles each kind of batch once, counts its tokens, and goes on in a phase with the same bits',
  async () => {
    const run = async (numTrainSteps: number, jobLogDir?: string) => {
      const given = { numTrainSteps, saveIntervalSteps: 100, summaryIntervalSteps: 5 };
      const options = tinyOptions(given, jobLogDir === undefined ? {} : { jobLogDir });
      const job = await openJob({ ...options, datasets: [scheduled()] as never });
      const kinds = new Set<unknown>();
      const { runSteps } = job.program;
      job.program.runSteps = async (...args) => {
        const reports = await runSteps.apply(job.program, args);
        kinds.add(job.program.executable);
        return reports;
      };
      await runLoop(job.loop);
      await job.start.state.memory?.toHost();
      return { ...job, kinds: kinds.size, jobLogDir: options.jobLogDir };
    };
    const whole = await run(5);
    expect(whole.kinds).toBe(2);
    // 2 · 4 tokens at steps 1, 2 and 5, and 4 · 8 at steps 3 and 4.
    expect(whole.run.newest.of('train')!.metrics.num_predictions).toMatchObject({
      value: (3 * 8 + 2 * 32) / 5,
    });
    const first = await run(3);
    const second = await run(5, first.jobLogDir);
    expect([...second.start.state.params]).toEqual([...whole.start.state.params]);
    expect(second.start.state.slots).toEqual(whole.start.state.slots);
  },
);

test('phases that cannot be are named before the first batch', () => {
  const built = (edit: Parameters<typeof scheduled>[0]) => () => build(scheduled(edit));
  expect(built((d) => (d.phases = [{ fromStep: 1, batchSize: 2 }]))).toThrow(
    'expected the first phase from step 0 on',
  );
  expect(built((d) => (d.phases = [...phases, { fromStep: 3 }]))).toThrow(
    'expected phases in the order of their steps',
  );
  expect(built((d) => (d.phases = [{ fromStep: 0, batchSize: 3 }]))).toThrow(
    "Input 'train': phases[0].batchSize: expected a multiple of input.batchSize 2, got 3.",
  );
  expect(built((d) => (d.phases = [{ fromStep: 0, seqLen: 9 }]))).toThrow(
    "Input 'train': phases[0].seqLen: expected at most 8, the positions of 'ids', got 9.",
  );
});
