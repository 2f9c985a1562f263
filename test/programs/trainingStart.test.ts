/** @file What training starts from, and what it then compiles: a new run, one that goes on, one with values of another. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import { compileTraining } from '../../src/programs/trainingLoop.js';
import { openStart, type TrainingStart } from '../../src/programs/trainingStart.js';
import { strayFailures } from '../../src/runs/jobErrors.js';
import { CheckpointLoadingRules } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { tinyOptions } from './tinyJob.js';

const close = ({ checkpointer, dataset, given }: TrainingStart) => {
  given?.close();
  return Promise.all([checkpointer.close(), dataset.close()]);
};

const open = (options: ReturnType<typeof tinyOptions>) =>
  openStart(options, build(options.task), (line) => expect.fail(line));

longTest(
  'a run that begins has zeros, which compiling fills; one that goes on has the state and position of its checkpoint',
  async () => {
    const options = tinyOptions();
    const first = await open(options);
    expect([first.restored, first.given, first.state.step]).toEqual([undefined, undefined, 0]);
    expect(first.state.params.every((value) => value === 0)).toBe(true);
    const program = await compileTraining(options, build(options.task), first, strayFailures());
    const { state } = first;
    expect(state.params.some((value) => value !== 0)).toBe(true);
    const initial = state.params.slice();
    await program.run();
    await program.run();
    const { inputState } = program;
    const best = { step: 1, metric: 'mine/score', value: 3 };
    await first.checkpointer.save(state, { inputState, best });
    await close(first);

    const second = await open(options);
    expect(second.restored).toEqual({
      ...{ path: join(options.jobLogDir, 'checkpoints/checkpoint_00000002'), jobLogDir: options.jobLogDir },
      ...{ progress: undefined, best, changes: undefined, unfrozen: [], average: undefined },
    });
    expect([second.given, second.state.step]).toEqual([undefined, 2]);
    expect(second.state.params).toEqual(state.params);
    expect(second.state.params).not.toEqual(initial);
    expect(second.state.slots).toEqual(state.slots);
    expect(second.input.getState()).toEqual(inputState);
    // Its values are not drawn again.
    await compileTraining(options, build(options.task), second, strayFailures());
    expect(second.state.params).toEqual(state.params);
    await close(second);

    const rules = CheckpointLoadingRules.config({ checkpoint: options.jobLogDir });
    const third = await open(
      tinyOptions({ initFromCheckpoint: [rules] as Config<CheckpointLoadingRules>[] }),
    );
    expect([third.restored, third.state.step]).toEqual([undefined, 0]);
    expect(third.given!.kept).toEqual([]);
    const fineTuned = tinyOptions({ initFromCheckpoint: [rules] as Config<CheckpointLoadingRules>[] });
    await compileTraining(fineTuned, build(fineTuned.task), third, strayFailures());
    expect(third.state.params).toEqual(state.params);
    await close(third);
  },
);

test('a directory that has none of the checkpoint that is asked for is refused before anything is compiled', async () => {
  const jobLogDir = temporaryDirectory();
  await expect(open({ ...tinyOptions({}, { jobLogDir }), checkpoint: 7 })).rejects.toThrow(
    `--checkpoint=7: --job_log_dir=${jobLogDir} has no checkpoint to go on from. Give the directory of a run that was ` +
      'trained, or start from another run by its path, as --checkpoint=out/run.',
  );
});
