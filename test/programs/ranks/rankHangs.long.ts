/** @file A rank that hangs: the job ends in time, with its number, its machine and its last step, and a record of its collectives. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { describeMpis } from '../../collectives/describeMpis.js';
import { luthier, mpirun } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';
import { LIMIT } from '../watchdog/hangs.js';

describeMpis((mpi) => {
  test('rank 1, whose input never answers, is told, and what it and rank 0 wait for', async () => {
    const directory = temporaryDirectory();
    const args = [
      ...[resolve(luthier), 'train', '--exp=hanging.Hanging', `--job_log_dir=${directory}`],
      ...['--set', 'where=worker', '--set', 'datasets[0].host=1'],
    ];
    const { code, output } = await mpirun(mpi, 2, args, {}, resolve('test/fixtures/project')).ended;
    expect(code, output).not.toBe(0);
    const told = (rank: number) =>
      new RegExp(
        `Rank ${rank} on ${hostname()} hangs after step (\\d+): nothing has finished for ([\\d.]+) s .*It is in: (.*)\\.`,
      ).exec(output);
    const [step, seconds, unit] = told(1)!.slice(1);
    expect(unit).toBe('input');
    expect(Number(seconds)).toBeLessThan(LIMIT + 5);
    expect(told(0)![1]).toBe(step);
    expect(readFileSync(join(directory, 'hang_rank_1.txt'), 'utf8')).toContain(`after step ${step}`);
    const [waiting, hanging] = [0, 1].map((rank) =>
      readFileSync(join(directory, `collectives_rank_${rank}.txt`), 'utf8')
        .trim()
        .split('\n'),
    ) as [string[], string[]];
    // Rank 0 is in the collective of the next step, which rank 1 has not begun.
    expect(waiting.at(-1)).toMatch(/ allReduce of 2 ranks, 8 bytes: under way$/);
    expect(hanging.at(-1)).toMatch(/ broadcast of 2 ranks, 1 bytes: [\d.]+ ms$/);
    expect(hanging.length).toBeGreaterThan(10);
  });
}, 0);
