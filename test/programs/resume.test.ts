/** @file A run that is stopped or killed and started again ends with the same bits as one that was not. */

import { cpSync, existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { oneProcess, runCommand, startCommand, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { killedRun, metricLines, stateAt, stepReached, trainLosses, untimedLines, wholeRun } from './runs.js';

/** What looks at a finished run, or is refused. */
const lookAt = oneProcess('src/main.ts');

const steps = 60;
const flags = (directory: string, mode = 'train') => [
  '--exp=tiny.Tiny',
  `--job_log_dir=${directory}`,
  `--mode=${mode}`,
  ...['--set', `numTrainSteps=${steps}`],
  ...['--set', 'task.train.evalIntervalSteps=7'],
  ...['--set', 'datasets[0].prefetchBatches=2'],
];

const finalState = (directory: string) => stateAt(directory, steps);

let uninterrupted: string;

beforeAll(async () => {
  uninterrupted = await wholeRun(flags);
});

longTest('SIGKILL at a random step, twice, then to the end', async () => {
  const directory = await killedRun(flags, steps - 10);
  expect(finalState(directory).equals(finalState(uninterrupted))).toBe(true);
  expect(untimedLines(directory)).toEqual(untimedLines(uninterrupted));
});

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('%s saves, exits with %i, and the run goes on from there', async (signal, code) => {
  const directory = temporaryDirectory();
  const run = startCommand(flags(directory));
  await stepReached(directory, 2, run);
  run.child.kill(signal);
  const stopped = await run.finished;
  expect(stopped.code).toBe(code);
  expect(stopped.stderr).toBe(`\n${signal}: saving a checkpoint, then leaving. Once more leaves at once.\n`);
  const lastStep = Number(trainLosses(directory).at(-1)![0]);
  const newest = readdirSync(join(directory, 'checkpoints')).sort().at(-1);
  expect(newest).toBe(`checkpoint_${String(lastStep).padStart(8, '0')}`);
  expect(stopped.stdout).toContain(
    `Saved at step ${lastStep} of ${steps}; the same command goes on from there.`,
  );

  const resumed = await runCommand(flags(directory));
  expect(resumed.stdout).toContain(`Going on from ${directory}/checkpoints/${newest}`);
  expect(finalState(directory).equals(finalState(uninterrupted))).toBe(true);
  expect(untimedLines(directory)).toEqual(untimedLines(uninterrupted));
});

longTest('in bfloat16 too; a run in float32 can go on in it', async () => {
  const bfloat16 = ['--set', 'task.model.fpropDtype=bfloat16'];
  const [whole, stopped] = [temporaryDirectory(), temporaryDirectory()];
  expect((await runCommand([...flags(whole), ...bfloat16])).code).toBe(0);
  expect(finalState(whole).equals(finalState(uninterrupted))).toBe(false);
  const run = startCommand([...flags(stopped), ...bfloat16]);
  await stepReached(stopped, 2, run);
  run.child.kill('SIGTERM');
  expect((await run.finished).code).toBe(143);
  const changed = temporaryDirectory();
  cpSync(uninterrupted, changed, { recursive: true });
  const more = [...flags(changed, 'train_and_decode'), ...bfloat16, '--set', `numTrainSteps=${steps + 5}`];
  const [resumed, goneOn] = [await runCommand([...flags(stopped), ...bfloat16]), await runCommand(more)];
  expect([resumed.code, goneOn.code], goneOn.stderr).toEqual([0, 0]);
  expect(finalState(stopped).equals(finalState(whole))).toBe(true);
  expect(trainLosses(changed).at(-1)![0]).toBe(steps + 5);
});

longTest('a finished run that is restarted evaluates and decodes without another step', async () => {
  const directory = temporaryDirectory();
  cpSync(uninterrupted, directory, { recursive: true });
  const again = await lookAt(flags(directory, 'train_and_decode'));
  expect(again.code, again.stderr).toBe(0);
  expect(trainLosses(directory)).toEqual(trainLosses(uninterrupted));
  expect(finalState(directory).equals(finalState(uninterrupted))).toBe(true);
  const programs = metricLines(directory).map((line) => line.program);
  expect(programs).toContain('eval_test_validation');
  expect(programs).toContain('decode_test_validation');
});

test('evaluation and decoding read the newest checkpoint; another number of samples is another file', async () => {
  const directory = temporaryDirectory();
  cpSync(uninterrupted, directory, { recursive: true });
  const evaluated = await lookAt(flags(directory, 'eval'));
  expect(evaluated.code, evaluated.stderr).toBe(0);
  expect(evaluated.stdout).toMatch(/^eval_test_validation at step 60: total_loss [\d.]+, .* 5 batches in /m);

  const decoded = await lookAt([...flags(directory, 'decode_once'), '--set', 'numSamples=3']);
  expect(decoded.code, decoded.stderr).toBe(0);
  const path = join(directory, 'decoder_out/validation/decoder_out_60_shard_0.jsonl');
  const examples = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(examples).toHaveLength(2);
  for (const { prefix, prefix_length, decoded: text, decoded_substr, sampled, original } of examples) {
    expect(prefix).toHaveLength(prefix_length);
    expect(original.startsWith(prefix)).toBe(true);
    expect(text).toBe(prefix + decoded_substr);
    expect(sampled).toHaveLength(3);
  }
  expect(decoded.stdout).toContain(`---\n${examples[0].prefix}\n>>>\n${examples[0].decoded_substr}`);
});

longTest('a truncated checkpoint is reported and kept; using the one before it requires a flag', async () => {
  const directory = temporaryDirectory();
  cpSync(uninterrupted, directory, { recursive: true });
  const broken = join(directory, 'checkpoints', `checkpoint_000000${steps}`);
  truncateSync(join(broken, 'state.safetensors'), 1000);
  const before = readFileSync(join(directory, 'experiment.json'), 'utf8');

  const refused = await lookAt(flags(directory));
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`checkpoint ${broken} is broken and was left in place`);
  expect(refused.stderr).toContain('--restore_previous_checkpoint resumes from there.');
  expect(readFileSync(join(directory, 'experiment.json'), 'utf8')).toBe(before);
  expect(existsSync(broken)).toBe(true);

  const allowed = await runCommand([...flags(directory), '--restore_previous_checkpoint']);
  expect(allowed.code, allowed.stderr).toBe(0);
  expect(finalState(directory).equals(finalState(uninterrupted))).toBe(true);
});

test('a checkpoint of other shapes is refused', async () => {
  const { code, stderr } = await lookAt([...flags(uninterrupted), '--set', 'modelDims=24']);
  expect(code).toBe(1);
  expect(stderr).toContain('checkpoint_00000060');
  expect(stderr).toContain('lm/');
  expect(stderr).not.toContain('    at ');
});
