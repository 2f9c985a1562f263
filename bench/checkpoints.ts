/**
 * @file Cost of checkpoints: how long saving keeps training waiting, and how long a state takes to restore, beside torch.save and
 * safetensors.torch on tensors of the same sizes. One run; prints a line of JSON for each measurement.
 *
 *     npx tsx bench/checkpoints.ts --shape=small --precision=bf16 --seconds=20
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Checkpointer } from '../src/checkpoints/index.js';
import { build } from '../src/hparams/index.js';
import { trainStateOf } from '../src/programs/taskState.js';
import { readMeasured } from './flags.js';
import { jobOptions, openProgram } from './gptJob.js';
import { hasPeers, peersPython } from './programs.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'small' },
    engine: { type: 'string', default: 'auto' },
    precision: { type: 'string', default: 'bf16' },
    seconds: { type: 'string', default: '20' },
  },
});
const { shape, engine, precision } = readMeasured(flags);
const options = jobOptions(shape, engine, undefined, precision);
const program = await openProgram(options);
const directory = mkdtempSync(join(tmpdir(), 'luthier-bench-checkpoints-'));
const seconds = () => performance.now() / 1000;
const percentile = (values: readonly number[], p: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * p))]!;
const tell = (line: Readonly<Record<string, unknown>>) => console.log(JSON.stringify(line));

/** Takes steps for so long, saving as soon as the last save is done where `saves`. */
async function train(checkpointer: Checkpointer, duration: number, saves: boolean) {
  const steps: number[] = [];
  const stalls: number[] = [];
  const began = seconds();
  let isSaving = false;
  while (seconds() - began < duration) {
    const at = seconds();
    await program.run();
    steps.push(seconds() - at);
    if (!saves || isSaving) continue;
    const stalled = seconds();
    await checkpointer.save(program.state);
    stalls.push(seconds() - stalled);
    isSaving = true;
    void checkpointer.waitUntilFinished().then(() => {
      isSaving = false;
    });
  }
  return { steps, stalls, duration: seconds() - began };
}

try {
  const settings = { experiment: 'bench', saveMaxToKeep: 1, saveKeepIntervalDuration: null };
  const checkpointer = new Checkpointer({ directory, ...settings });
  for (let i = 0; i < 3; i++) await program.run();
  // The copy is allocated by the first save.
  await checkpointer.save(program.state);
  await checkpointer.waitUntilFinished();
  checkpointer.takeStatistics();
  const each = Number(flags.seconds) / 2;
  const alone = await train(checkpointer, each, false);
  const saving = await train(checkpointer, each, true);
  await checkpointer.waitUntilFinished();
  const { bytes, saves, writeSeconds } = checkpointer.takeStatistics();
  const stall = saving.stalls.reduce((a, b) => a + b, 0);
  tell({
    what: 'saving',
    stateMb: bytes / saves / 1e6,
    stepMs: 1000 * median(alone.steps),
    stepWhileSavingMs: 1000 * median(saving.steps),
    saves,
    writeMs: (1000 * writeSeconds) / saves,
    stallMs: 1000 * median(saving.stalls),
    stallP99Ms: 1000 * percentile(saving.stalls, 0.99),
    continuousPercent: (100 * stall) / saving.duration,
    minutePercent: (100 * stall) / saving.stalls.length / 60,
  });
  const path = join(directory, `checkpoint_${String(program.state.step).padStart(8, '0')}`);
  await checkpointer.save(program.state);
  await checkpointer.close();
  const state = trainStateOf(build(options.task));
  const reader = new Checkpointer({ directory, ...settings, readOnly: true });
  const times: number[] = [];
  for (let i = 0; i < 3; i++) {
    const at = seconds();
    await reader.restore(state);
    times.push(seconds() - at);
  }
  await reader.close();
  const file = join(path, 'state.safetensors');
  tell({
    what: 'restoring',
    ms: 1000 * median(times),
    firstMs: 1000 * times[0]!,
    bytes: statSync(file).size,
  });
  if (hasPeers) {
    const script = fileURLToPath(new URL('peers/torch_checkpoint.py', import.meta.url));
    const { stdout, stderr } = spawnSync(peersPython, [script, file], { encoding: 'utf8' });
    process.stdout.write(stdout || stderr);
  }
} finally {
  rmSync(directory, { recursive: true });
}
process.exit();
