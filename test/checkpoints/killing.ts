/** @file A process that saves and is killed with SIGKILL, and the checks of what it leaves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Checkpointer, createTrainState } from '../../src/checkpoints/index.js';
import { typescript } from '../typescriptEnvironment.js';
import { slotsLike } from './slotsLike.js';

const program = fileURLToPath(new URL('./saveForever.ts', import.meta.url));

/** Runs the program, kills it `delay` milliseconds after its third report; the last step known to be saved. */
async function runAndKill(directory: string, delay: number): Promise<number> {
  const child = spawn(process.execPath, ['--import', typescript, program, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let reports = 0;
  let saved = -1;
  for await (const line of createInterface({ input: child.stdout })) {
    saved = Number(line);
    if (++reports === 3) void sleep(delay).then(() => child.kill('SIGKILL'));
  }
  const [, signal] = await closed;
  expect(signal).toBe('SIGKILL');
  return saved;
}

/**
 * Kills a process that saves all the time after each of the delays, in one directory. Each time all checkpoints are whole, the
 * newest is not older than what was reported as saved, and nothing else is left.
 */
export async function killWhileSaving(delays: readonly number[]): Promise<void> {
  const parent = mkdtempSync(join(tmpdir(), 'luthier-killed-'));
  const directory = join(parent, 'checkpoints');
  const size = 1 << 18;
  const layout = { size, entries: [{ name: 'lm/w', shape: [size], offset: 0, size }] };
  try {
    for (const delay of delays) {
      const saved = await runAndKill(directory, delay);
      const checkpointer = new Checkpointer({ directory, experiment: 'test.Kill' });
      expect(readdirSync(directory).every((name) => /^checkpoint_\d{8}$/.test(name))).toBe(true);
      for (const step of checkpointer.steps()) {
        const state = createTrainState(layout, slotsLike(layout, ['m']));
        const { inputState } = await checkpointer.restore(state, { step });
        expect(state.step).toBe(step);
        expect(inputState).toEqual({ batches: step });
        expect(state.params.every((value) => value === step)).toBe(true);
        expect(state.slots.m!.every((value) => value === -step)).toBe(true);
      }
      expect(checkpointer.latestStep(), `killed after ${delay} ms`).toBeGreaterThanOrEqual(saved);
    }
  } finally {
    rmSync(parent, { recursive: true });
  }
}
