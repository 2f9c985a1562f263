/** @file Training that is killed and stopped at any time, through the documented commands: nothing is lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { metricLines } from '../programs/runs.js';
import { draw, oneIn, title, tries } from './campaign.js';
import { type Form, forms, type Started, start, trainer } from './documented.js';
import { checkMetrics, checkTrajectory, lastStep, newest } from './trajectory.js';

const endless = 1_000_000;
const flags = (numTrainSteps: number): string[] => [
  '--exp=tiny.Tiny',
  ...['--set', `numTrainSteps=${numTrainSteps}`],
  ...['--set', 'task.train.evalIntervalSteps=1000000'],
  ...['--engine=onnx', '--num_threads=1'],
];

/** When a run is disturbed: so many steps after it has begun to train, and so many milliseconds later. */
interface Moment {
  readonly form: Form;
  readonly steps: number;
  readonly delay: number;
  readonly how: 'group' | 'launcher' | 'trainer';
  /** Before it has begun to train. */
  readonly early: boolean;
}
const moment = fc.record({
  form: fc.constantFrom(...forms),
  steps: fc.integer({ min: 1, max: 9 }),
  delay: fc.integer({ min: 0, max: 60 }),
  how: fc.constantFrom('group', 'launcher', 'trainer'),
  early: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
});

/** Waits for the moment; false where the run ended before it, which it must not. */
async function reach({ steps, delay, early }: Moment, directory: string, run: Started): Promise<void> {
  if (early) return void (await sleep(delay * 50));
  const until = Math.max(0, newest(directory)) + steps;
  while (lastStep(directory) < until || trainer(directory) === undefined) {
    if (run.child.exitCode !== null) throw new Error(`The run ended before step ${until}:\n${run.output()}`);
    await sleep(10);
  }
  await sleep(delay);
}

test(title('SIGKILL at random moments'), async () => {
  const directory = temporaryDirectory();
  let saved = -1;
  for (const at of draw(moment, tries(200, 2), 0x5161)) {
    const run = start(at.form, directory, flags(endless));
    await reach(at, directory, run);
    const pid = trainer(directory);
    if (at.how === 'group') process.kill(-run.child.pid!, 'SIGKILL');
    else if (at.how === 'launcher' || pid === undefined) run.child.kill('SIGKILL');
    else process.kill(pid, 'SIGKILL');
    await run.ended();
    expect(newest(directory), JSON.stringify(at)).toBeGreaterThanOrEqual(saved);
    saved = newest(directory);
  }
  await checkTrajectory(directory, flags);
  checkMetrics(directory);
});

const signals = [
  ['Ctrl-C', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const;
test.each(oneIn(signals.length, signals))(
  title('%s at random moments: the checkpoint has the newest step'),
  async (what, code) => {
    const directory = temporaryDirectory();
    for (const at of draw(moment, tries(40, 1), code)) {
      // What is typed before a terminal has its process is lost.
      const onTerminal = what === 'Ctrl-C' && at.how !== 'group' && !at.early;
      const run = start(at.form, directory, flags(endless), onTerminal);
      await reach(at, directory, run);
      if (what === 'Ctrl-C') run.interrupt();
      else if (at.how === 'group') process.kill(-run.child.pid!, what);
      else run.child.kill(what);
      const ended = await run.ended();
      const told = `${JSON.stringify(at)}\n${run.output().slice(-2000)}`;
      expect(ended, told).toBe(code);
      expect(Math.max(0, newest(directory)), told).toBe(lastStep(directory));
      checkMetrics(directory);
    }
    await checkTrajectory(directory, flags);
  },
);

test(title('two writers on one directory'), async () => {
  const directory = temporaryDirectory();
  for (const [first, second] of draw(fc.tuple(moment, moment), tries(20, 1), 0x2222)) {
    const runs = [first, second].map(({ form }) => start(form, directory, flags(endless)));
    const refused = await Promise.race(runs.map((run) => run.closed.then(() => run)));
    expect(refused.output()).toMatch(/in use by process \d+ on .* since /);
    const other = runs.find((run) => run !== refused)!;
    await reach({ ...first, early: false }, directory, other);
    other.interrupt();
    expect(await Promise.all([refused.closed, other.ended()])).toEqual([2, 130]);
    expect(newest(directory)).toBe(lastStep(directory));
    checkMetrics(directory);
  }
  await checkTrajectory(directory, flags);
  expect(metricLines(directory).length).toBeGreaterThan(0);
});
