/** @file A rank that hangs: the job ends in time, with its number, its machine and its last step, and a record of its collectives. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { describeMpis } from '../../collectives/describeMpis.js';
import { luthier, type Mpi, mpirun, ranksBelow } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';
import { stepReached } from '../runs.js';
import { LIMIT } from '../watchdog/hangs.js';

/** Two ranks of `hanging.Hanging`. */
function started(mpi: Mpi, directory: string, ...settings: string[]) {
  const args = [
    ...[resolve(luthier), 'train', '--exp=hanging.Hanging', `--job_log_dir=${directory}`],
    ...settings.flatMap((each) => ['--set', each]),
  ];
  return mpirun(mpi, 2, args, {}, resolve('test/fixtures/project'));
}

/** Step, seconds without progress and unit, as a rank tells them. */
const told = (output: string, rank: number): readonly string[] =>
  new RegExp(
    `Rank ${rank} on ${hostname()} hangs after step (\\d+): nothing has finished for ([\\d.]+) s .*It is in: (.*)\\.`,
  )
    .exec(output)!
    .slice(1);

const collectivesOf = (directory: string, rank: number): string[] =>
  readFileSync(join(directory, `collectives_rank_${rank}.txt`), 'utf8')
    .trim()
    .split('\n');

describeMpis((mpi) => {
  test.each([
    ['never answers', 'worker'],
    ['loops without an end', 'input'],
  ])('rank 1, whose input %s, is told, and what it and rank 0 wait for', async (_, where) => {
    const directory = temporaryDirectory();
    const { code, output } = await started(mpi, directory, `where=${where}`, 'datasets[0].host=1').ended;
    expect(code, output).not.toBe(0);
    const [step, seconds, unit] = told(output, 1);
    expect(unit).toBe('input');
    expect(Number(seconds)).toBeLessThan(LIMIT + 5);
    expect(told(output, 0)[0]).toBe(step);
    expect(output).not.toContain('tells nothing');
    expect(readFileSync(join(directory, 'hang_rank_1.txt'), 'utf8')).toContain(`after step ${step}`);
    // Rank 0 is in the collective of the next step, which rank 1 has not begun.
    expect(collectivesOf(directory, 0).at(-1)).toMatch(/ allReduce of 2 ranks, 8 bytes: under way$/);
    const hanging = collectivesOf(directory, 1);
    expect(hanging.at(-1)).toMatch(/ broadcast of 2 ranks, 1 bytes: [\d.]+ ms$/);
    expect(hanging.length).toBeGreaterThan(10);
  });

  test('rank 1, whose process is stopped, is named by rank 0', async () => {
    const directory = temporaryDirectory();
    const run = started(mpi, directory);
    await stepReached(directory, 40, run);
    process.kill(ranksBelow(run.child.pid!)[1]!, 'SIGSTOP');
    const began = performance.now();
    const { code, output } = await run.ended;
    // A busy machine takes longer to end processes.
    expect((performance.now() - began) / 1000).toBeLessThan(LIMIT + 5 + 10);
    expect(code, output).not.toBe(0);
    const [step] = told(output, 0);
    expect(Number(step)).toBeGreaterThanOrEqual(40);
    expect(output).toContain(
      ` Rank 1 on ${hostname()} tells nothing in ${join(directory, 'hang_rank_1.txt')}: its process is stopped, its machine does ` +
        'not answer, or it has another file system.',
    );
    expect(collectivesOf(directory, 0).at(-1)).toContain('under way');
  });
}, 0);
