/** @file Inference that is killed at random system calls, and started again: each example is there once. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { loadInferOutputs } from '../../../src/trained/index.js';
import { startCommand, temporaryDirectory } from '../../command.js';
import { draw, oneIn, title, tries } from '../../faults/campaign.js';
import { callsIn, canInject, faultEnv } from '../../faults/preload.js';
import { Reviews } from '../../fixtures/classifiers/experiments/classifiers.js';
import { classifiers, reviews, trainedOn } from '../../trained/classifierRuns.js';

/** Calls that change files; a kill comes before one of them. */
const calls = ['create', 'write', 'fsync', 'ftruncate', 'rename', 'mkdir', 'unlink', 'rmdir'];
const logs = temporaryDirectory();
let jobLogDir: string;
let data: string;

beforeAll(async () => {
  data = reviews(temporaryDirectory());
  jobLogDir = await trainedOn(Reviews, data, { numTrainSteps: 1 });
});

/** Infers ten examples in five batches, each of which is saved. @param nth call at which it is killed; 0: none */
async function infer(format: string, nth: number, name: string) {
  const flags = [
    ...['--mode=infer', '--exp=classifiers.Reviews', `--job_log_dir=${jobLogDir}`, '--engine=onnx'],
    ...['--set', `data=${data}`, '--set', 'datasets[1].batchSize=2', '--num_threads=1'],
    ...[
      '--set',
      `task.inferWriter=InferWriter(outputFormat=${format}, outputNumShards=3, saveIntervalSeconds=0)`,
    ],
  ];
  const [log, trace] = [join(logs, `${name}.log`), join(logs, `${name}.trace`)];
  const fault = { calls, part: 'output', nth, how: 'kill', trace } as const;
  const ended = await startCommand(flags, classifiers, undefined, faultEnv(logs, jobLogDir, fault, log))
    .finished;
  return {
    ...ended,
    count: callsIn(trace).filter(({ call, path }) => calls.includes(call) && path.includes('output')).length,
  };
}

const directory = (): string => join(jobLogDir, 'output/validation/checkpoint_00000001');

const shards = (): string[] =>
  readdirSync(directory())
    .filter((name) => name.startsWith('output.'))
    .map((name) => readFileSync(join(directory(), name), 'latin1'));

test.runIf(canInject).each(oneIn(2, ['jsonl', 'tfrecord']))(
  title('%s: SIGKILL at random calls'),
  async (format) => {
    const { code, stderr, count } = await infer(format, 0, `${format}-whole`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const whole = shards();
    expect(count).toBeGreaterThan(40);
    let kills = 0;
    for (const [i, nth] of draw(fc.integer({ min: 1, max: count }), tries(60, 2), 0x1fe5).entries()) {
      if (kills === 0) rmSync(directory(), { recursive: true, force: true });
      // A killed job goes on, and is killed again at times.
      const killed = await infer(format, nth, `${format}-${i}`);
      if (killed.signal === 'SIGKILL') kills++;
      else expect(killed).toMatchObject({ code: 0, stderr: '' });
      if (killed.signal === 'SIGKILL' && i % 3 !== 2) continue;
      expect(await infer(format, 0, `${format}-${i}-end`)).toMatchObject({ code: 0, stderr: '' });
      expect(shards()).toEqual(whole);
      expect(readdirSync(join(directory(), '..'))).toEqual(['checkpoint_00000001']);
      const ids = loadInferOutputs(directory()).examples.map(({ example_id }) => example_id);
      expect(ids).toEqual([...Array(10).keys()]);
      kills = 0;
    }
  },
);
