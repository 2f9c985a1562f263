/** @file Training from --checkpoint: back to an earlier one, on from the state of another run, and what is refused. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { oneProcess, project, temporaryDirectory } from '../command.js';
import { stateAt, untimedLines } from './runs.js';

const run = oneProcess('src/main.ts', fileURLToPath(new URL('../fixtures/faults', import.meta.url)));

/** patient.Tracked: its best checkpoint is that of step 3, and it ends at step 9. */
const train = (directory: string, checkpoint?: string, ...sets: readonly string[]) =>
  run([
    ...['--exp=patient.Tracked', `--job_log_dir=${directory}`, '--mode=train_and_decode'],
    ...(checkpoint === undefined ? [] : [`--checkpoint=${checkpoint}`]),
    ...[`dataPath=${join(project, 'corpus/counting.txt')}`, 'numTrainSteps=12', ...sets].flatMap((set) => [
      '--set',
      set,
    ]),
  ]);

const checkpoints = (directory: string) => readdirSync(join(directory, 'checkpoints'));
const third = 'checkpoint_00000003';
const ninth = 'checkpoint_00000009';

test('a step or best goes back; later checkpoints and metrics are kept aside', async () => {
  const directory = temporaryDirectory();
  expect((await train(directory)).code).toBe(0);
  const [lines, state] = [untimedLines(directory), stateAt(directory, 9)];
  expect(checkpoints(directory)).toEqual([third, ninth]);

  const missing = await train(directory, '5');
  expect(missing).toMatchObject({
    code: 1,
    stderr: `${directory}/checkpoints: no checkpoint for step 5; there are checkpoints for steps 3, 9\n`,
  });
  expect(checkpoints(directory)).toEqual([third, ninth]);

  const failed = await train(directory, 'best', 'datasets[0].failsAt=7');
  const aside = join(directory, 'replaced_1');
  expect(failed.stdout).toContain(`Going back to step 3: the checkpoint of step 9 is kept in ${aside}.\n`);
  expect(failed.stdout).toContain(
    'Saved at step 7 of 12; the same command without --checkpoint goes on from there.\n',
  );
  expect(checkpoints(aside)).toEqual([ninth]);
  expect(stateAt(aside, 9)).toEqual(state);
  expect(untimedLines(aside)).toEqual(lines);

  // Without the flag it goes on, and ends as the run that did not go back.
  expect((await train(directory)).stdout).toContain(
    `Going on from ${directory}/checkpoints/checkpoint_00000007\n`,
  );
  expect(stateAt(directory, 9)).toEqual(state);
  expect((await train(directory, '3')).code).toBe(0);
  expect(readdirSync(directory).filter((name) => name.startsWith('replaced_'))).toEqual([
    'replaced_1',
    'replaced_2',
  ]);
  // The newest one has none after it.
  await train(directory, '9');
  expect(existsSync(join(directory, 'replaced_3'))).toBe(false);
});

test('a path starts a new run with the whole state of another; the same command resumes it', async () => {
  const [directory, other] = [temporaryDirectory(), temporaryDirectory()];
  expect((await train(other)).code).toBe(0);
  const from = join(other, '3');
  const failed = await train(directory, from, 'datasets[0].failsAt=7');
  expect(failed.stdout).toContain(`Going on from ${other}/checkpoints/${third}\n`);
  expect(failed.stdout).toContain('Saved at step 7 of 12; the same command goes on from there.\n');
  expect(checkpoints(directory)).toContain(third);
  expect(JSON.parse(readFileSync(join(directory, 'started_from.json'), 'utf8'))).toEqual({
    checkpoint: from,
    path: join(other, 'checkpoints', third),
  });
  expect(readFileSync(join(directory, 'data/train.json'))).toEqual(
    readFileSync(join(other, 'data/train.json')),
  );

  const resumed = await train(directory, from);
  expect(resumed.stdout).toContain(`Going on from ${directory}/checkpoints/checkpoint_00000007\n`);
  expect(stateAt(directory, 9)).toEqual(stateAt(other, 9));
  expect(checkpoints(other)).toEqual([third, ninth]);

  expect(await train(directory, other)).toMatchObject({
    code: 1,
    stderr:
      `--checkpoint=${other}: --job_log_dir=${directory} has a run that started from ${from}; its newest checkpoint is that ` +
      `of step 9. Take another --job_log_dir to start from ${other}, or leave out --checkpoint to go on with this run.\n`,
  });
  expect((await train(other, directory)).stderr).toContain(
    `--checkpoint=${directory}: --job_log_dir=${other} has a run that did not start from there; its newest checkpoint is `,
  );
  writeFileSync(join(directory, 'started_from.json'), '{"checkpoint": ');
  const { code, stderr } = await train(directory, from);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(
      /^\S+started_from\.json: not the record of a run's start \(.*JSON.*\)\. Restore it, or leave out --checkpoint to go on with this run\.\n$/,
    ),
  });
  const empty = temporaryDirectory();
  expect(await train(empty, 'best')).toMatchObject({
    code: 1,
    stderr:
      `--checkpoint=best: --job_log_dir=${empty} has no checkpoint to go on from. Give the directory of a run that was ` +
      'trained, or start from another run by its path, as --checkpoint=out/run.\n',
  });
});
