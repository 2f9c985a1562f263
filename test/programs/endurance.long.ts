/** @file Training on machine code: the same bits every time, beside other programs, for thousands of steps, through NaN. */
import { describe, expect, test } from 'vitest';
import { compile, tf } from '../../src/compiler/index.js';
import { startCommand } from '../command.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { runs } from '../faults/campaign.js';
import { tinyTraining, tokens } from './tinyTraining.js';

const megabyte = 1 << 20;
const [steps, times] = [runs(10_000), runs(200)];

interface Memory {
  readonly resident: number;
  readonly mapped: number;
}

/** What enduranceProgram.ts saw. */
async function watched(...args: string[]): Promise<Record<'start' | 'warm' | 'end', Memory>> {
  const env = { NODE_OPTIONS: '--expose-gc' };
  const { code, stdout, stderr } = await startCommand(
    args,
    undefined,
    'test/programs/enduranceProgram.ts',
    env,
  ).finished;
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

describe.skipIf(!hasCompiler)('the native engine', () => {
  test.each([
    [1, 'float32'],
    [2, 'float32'],
    [1, 'bfloat16'],
    [2, 'bfloat16'],
  ] as const)(
    'gives the same bits on %i threads in %s, alone or beside another program',
    async (threads, fpropDtype) => {
      const take = async (others: number): Promise<Float32Array> => {
        const opened = await Promise.all(
          Array.from({ length: 1 + others }, () => tinyTraining('native', threads, { fpropDtype })),
        );
        for (let step = 0; step < 20; step++) await Promise.all(opened.map(({ program }) => program.run()));
        return opened[0]!.state.params;
      };
      const alone = await take(0);
      expect(alone.every(Number.isFinite)).toBe(true);
      expect(await take(0)).toEqual(alone);
      expect(await take(1)).toEqual(alone);
    },
  );

  test('a NaN in a batch makes the loss NaN; the step is skipped and reported, and training continues', async () => {
    const input = tokens();
    const getNext = input.getNext.bind(input);
    let batches = 0;
    input.getNext = async () => {
      const batch = await getNext();
      const isBad = ++batches === 3;
      const { weights } = batch as unknown as { weights: { data: Float32Array } };
      if (isBad) weights.data[5] = Number.NaN;
      return batch;
    };
    const { program, state } = await tinyTraining('native', 2, { input });
    const reports = [];
    const snapshots = [];
    for (let step = 0; step < 5; step++) {
      reports.push(await program.run());
      snapshots.push(state.params.slice());
    }
    expect(reports.map(({ loss }) => Number.isNaN(loss))).toEqual([false, false, true, false, false]);
    expect(reports.map(({ update }) => update.isValidStep)).toEqual([1, 1, 0, 1, 1]);
    expect(snapshots[2]).toEqual(snapshots[1]);
    expect(snapshots[3]).not.toEqual(snapshots[2]);
    expect(state.params.every(Number.isFinite)).toBe(true);
    expect(state.step).toBe(5);
  });

  test('timers go on while a program runs', async () => {
    const specs = { x: { shape: [512, 512], dtype: 'float32' } } as const;
    const f = ({ x }: any) => {
      let y = x;
      for (let i = 0; i < 40; i++) y = tf.tanh(tf.matMul(y, x));
      return y;
    };
    const program = await compile(f, specs, { engine: 'native', numThreads: 1 });
    const call = program.bind({ inputs: { x: new Float32Array(512 * 512).fill(1e-3) } });
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    // However fast the machine is, a timer's turn comes before that of many runs in a row.
    for (let run = 0; run < 5; run++) await call.run();
    clearInterval(timer);
    await program.dispose();
    expect(ticks).toBeGreaterThan(5);
  });

  test.skipIf(process.platform !== 'linux')(`takes no more memory with ${steps} steps`, async () => {
    const { warm, end } = await watched('steps', `${steps}`);
    expect(end.resident - warm.resident).toBeLessThan(16 * megabyte);
  });

  test.skipIf(process.platform !== 'linux')(
    `gives back what a program had: ${times} times opened, run and disposed of`,
    async () => {
      const { warm, end } = await watched('open', `${times}`);
      // Each has 4 MB or more; the heap of the process comes and goes by a few.
      expect(end.resident - warm.resident).toBeLessThan(64 * megabyte);
      expect(end.mapped - warm.mapped).toBeLessThan(256 * megabyte);
    },
  );
});
