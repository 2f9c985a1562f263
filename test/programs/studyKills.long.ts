/** @file A study whose processes are killed, the parent's and those of trials: it ends with every trial once. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import { drawBelow } from '../../src/inputs/random.js';
import { readTrials } from '../../src/search/studies/index.js';
import { type Running, startCommand, temporaryDirectory } from '../command.js';

const cwd = join(import.meta.dirname, '../fixtures/searched');
const NUM_TRIALS = process.env.SHORT === '1' ? 8 : 24;
const KILLS = process.env.SHORT === '1' ? 4 : 10;

/** Processes whose parent is `pid`, as /proc has them. */
function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => {
      try {
        const stat = readFileSync(`/proc/${each}/stat`, 'latin1');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid;
      } catch {
        return false;
      }
    });
}

/** Ends of trials in the records, as often as they were written. */
function ends(directory: string): number[] {
  const processes = join(directory, 'processes');
  if (!existsSync(processes)) return [];
  return readdirSync(processes)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(processes, name), 'utf8').split('\n'))
    .filter((line) => line.includes('"event":"told"') && line.endsWith('}'))
    .map((line) => JSON.parse(line).trial);
}

test('kills of parent and children lose and repeat no trial', async () => {
  const job = temporaryDirectory();
  const directory = join(job, 'killed');
  const flags = ['--exp=searched.Tuned', '--study=killed', `--job_log_dir=${job}`, '--sweep_parallel=2'];
  const start = () => startCommand([...flags, `--num_trials=${NUM_TRIALS}`], cwd);
  const key = prngKey(Number(process.env.SEED ?? 0));
  let study: Running = start();
  let [parents, children] = [0, 0];
  for (let kill = 0; kill < KILLS && study.child.exitCode === null; kill++) {
    const told = ends(directory).length;
    // At another place of the next trials each time: at once, or while they run.
    while (ends(directory).length <= told && study.child.exitCode === null) await sleep(5);
    await sleep(drawBelow(key, 2 * kill, 1500));
    const workers = childrenOf(study.child.pid!);
    if (kill % 2 === 0 && workers.length > 0) {
      process.kill(workers[drawBelow(key, 2 * kill + 1, workers.length)]!, 'SIGKILL');
      children++;
    } else {
      study.child.kill('SIGKILL');
      await study.finished;
      parents++;
      study = start();
    }
  }
  const { code, stdout, stderr } = await study.finished;
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain(`${NUM_TRIALS} trials: ${NUM_TRIALS} done.`);
  const all = Array.from({ length: NUM_TRIALS }, (_, i) => i);
  expect(ends(directory).sort((a, b) => a - b)).toEqual(all);
  expect(readTrials(directory).map(({ number, state }) => `${number} ${state}`)).toEqual(
    all.map((number) => `${number} done`),
  );
  expect(parents + children).toBe(KILLS);
  expect(Math.min(parents, children)).toBeGreaterThan(0);
});
