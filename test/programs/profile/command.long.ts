/** @file --profile: the files it writes, and what it shows; without it there are none. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand, temporaryDirectory } from '../../command.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { longTest } from '../../longTest.js';

async function run(directory: string, ...flags: string[]): Promise<string> {
  const common = ['--exp=Tiny', `--job_log_dir=${directory}`, '--num_threads=2'];
  // Rows for several blocks of a chain; a peak that need not be measured.
  const more = ['--set', 'datasets[0].batchSize=9', '--set', 'numTrainSteps=6', '--peak_tflops=1'];
  const { code, stdout, stderr } = await runCommand([...common, ...more, ...flags]);
  expect(code, stderr).toBe(0);
  return stdout;
}

test.skipIf(!hasCompiler)('a training run on machine code', async () => {
  const directory = temporaryDirectory();
  const stdout = await run(directory, '--engine=native', '--profile');
  const text = readFileSync(join(directory, 'profile/profile.txt'), 'utf8');
  expect(stdout).toContain(`All of it is in ${directory}/profile.`);
  expect(stdout).toContain('phase ');
  expect(text).toMatch(
    /^peak 1000 GFLOP\/s \(--peak_tflops=1\), memory [\d.]+ GB\/s \(read by all threads\)$/m,
  );
  for (const way of ['float32', 'bfloat16, bf16 instructions', 'bfloat16, float32 instructions'])
    expect(text).toMatch(new RegExp(`^${way}( +[\\d.]+)+$`, 'm'));
  expect(text).toMatch(/^bfloat16 by (bf16|float32) instructions$/m);
  for (const phase of ['step', 'input', 'summaries', 'checkpoints', 'evaluation', 'the rest'])
    expect(text).toMatch(new RegExp(`^${phase} +[\\d.]+ +[\\d.]+ +[\\d.]+$`, 'm'));
  // The first of the six steps warms up.
  expect(text).toMatch(/^train_step: 5 runs of [\d.]+ ms, on native, float32, 2 threads$/m);
  const layers = text.slice(text.indexOf('\nlayer '));
  for (const layer of [
    ...['lm', 'softmax', 'final_ln', 'self_attention', 'ff_layer', 'ffn_layer1', 'linear'],
    // The learner's update is part of the program.
    ...['update', 'AdamW_decay'],
  ])
    expect(layers).toMatch(new RegExp(`^ *${layer} +[\\d.]+ `, 'm'));

  const { traceEvents } = JSON.parse(readFileSync(join(directory, 'profile/trace.json'), 'utf8'));
  const spans = traceEvents.filter(({ ph }: { ph: string }) => ph === 'X');
  const names = new Set(spans.map(({ name }: { name: string }) => name));
  expect(names).toContain('lm/softmax');
  expect(names).toContain('lm/softmax (gradient)');
  expect(new Set(spans.map(({ tid }: { tid: number }) => tid))).toEqual(new Set([0, 1]));
  for (const { ts, dur } of spans) expect(ts >= 0 && dur >= 0).toBe(true);
});

longTest('ONNX Runtime only reports whole runs; nothing is reported without the flag', async () => {
  const directory = temporaryDirectory();
  await run(directory, '--engine=onnx', '--set', 'numTrainSteps=2');
  expect(existsSync(join(directory, 'profile'))).toBe(false);
  // It goes on, and profiles what is left; an evaluation of a checkpoint has programs of its own.
  await run(directory, '--engine=onnx', '--profile');
  const trained = readFileSync(join(directory, 'profile/profile.txt'), 'utf8');
  expect(trained).toMatch(/^train_step: 3 runs of [\d.]+ ms, on onnx, float32$/m);
  expect(JSON.parse(readFileSync(join(directory, 'profile/trace.json'), 'utf8')).traceEvents).toEqual([]);
  await run(directory, '--engine=onnx', '--profile', '--mode=eval');
  const evaluated = readFileSync(join(directory, 'profile/profile.txt'), 'utf8');
  expect(evaluated).toMatch(/^eval_step: 5 runs of /m);
  expect(evaluated).not.toContain('train_step');
});
