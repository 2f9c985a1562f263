/** @file Runs of the command, as tests of resuming look at them: what they wrote, how far they are, how they ended. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { SafetensorsFile } from '../../src/checkpoints/index.js';
import { type oneProcess, type Running, runCommand, startCommand, temporaryDirectory } from '../command.js';

/** The complete lines of metrics.jsonl. */
export function metricLines(directory: string): Record<string, unknown>[] {
  const path = join(directory, 'metrics.jsonl');
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** Fields that tell of time. */
const timed = /sec|mfu|peak|flops|wait|^checkpoints\//i;

/** The complete lines without what no two runs have alike: those of a run that goes on are those of one that did not stop. */
export function untimedLines(directory: string): Record<string, unknown>[] {
  return metricLines(directory).map((line) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !timed.test(name))),
  );
}

/** Steps with their losses. */
export function trainLosses(directory: string): [unknown, unknown][] {
  return metricLines(directory)
    .filter((line) => line.program === 'train')
    .map(({ step, loss }) => [step, loss]);
}

/** Waits until the run has written the summary of this step. */
export async function stepReached(
  directory: string,
  step: number,
  { child }: Pick<Running, 'child'>,
): Promise<void> {
  while (!trainLosses(directory).some(([at]) => Number(at) >= step)) {
    if (child.exitCode !== null) throw new Error(`the run ended before step ${step}`);
    await sleep(5);
  }
}

/** The bytes of the checkpoint at a step. */
export function stateAt(directory: string, step: number): Buffer {
  const name = `checkpoint_${String(step).padStart(8, '0')}`;
  return readFileSync(join(directory, 'checkpoints', name, 'state.safetensors'));
}

/** A run to the end in a directory of its own. */
export async function wholeRun(
  flags: (directory: string) => readonly string[],
  run: ReturnType<typeof oneProcess> = runCommand,
): Promise<string> {
  const directory = temporaryDirectory();
  const { code, stderr } = await run(flags(directory));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return directory;
}

/** A run that is killed so many times, at random steps before `last`, and then goes on to its end. */
export async function killedRun(
  flags: (directory: string) => readonly string[],
  last: number,
  kills = 2,
): Promise<string> {
  const directory = temporaryDirectory();
  for (let kill = 0; kill < kills; kill++) {
    const at = 1 + Math.floor(Math.random() * last);
    const run = startCommand(flags(directory));
    await stepReached(directory, at, run);
    run.child.kill('SIGKILL');
    expect((await run.finished).signal, `killed at step ${at}`).toBe('SIGKILL');
  }
  const { code, stdout } = await runCommand(flags(directory));
  expect(code, stdout).toBe(0);
  return directory;
}

/** Tensors of the checkpoint of a step by name: `params/lm/softmax/w`, `slots/m/lm/softmax/w`. */
export function tensorsAt(directory: string, step: number): Record<string, ArrayLike<number | bigint>> {
  const checkpoint = `checkpoint_${String(step).padStart(8, '0')}`;
  const file = new SafetensorsFile(join(directory, 'checkpoints', checkpoint, 'state.safetensors'));
  try {
    return Object.fromEntries(file.layout.tensors.map(({ name }) => [name, file.read(name)]));
  } finally {
    file.close();
  }
}
