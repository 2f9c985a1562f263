/** @file A disk that is full when training saves its last state, and all that the run leaves on it. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../command.js';
import { callsIn, canInject, faultEnv } from './preload.js';
import { diskAfter } from './unsynced.js';

test.runIf(canInject)(
  'the last save is told, the exit code is 1, and the checkpoint before is there',
  async () => {
    const directory = temporaryDirectory();
    const part = 'checkpoint_00000006/state';
    const logs = temporaryDirectory();
    const trace = join(logs, 'trace');
    const fault = { calls: ['write'], part, nth: 1, times: 1e6, how: 'ENOSPC', trace } as const;
    const env = faultEnv(logs, directory, fault, join(logs, 'calls'));
    const flags = ['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--set', 'numTrainSteps=6'];
    const { code, stdout, stderr } = await startCommand(flags, undefined, undefined, env).finished;
    const problem = `${directory}/checkpoints/checkpoint_00000006: cannot be written: ENOSPC: `;
    expect({ code, stderr }, stdout).toEqual({ code: 1, stderr: expect.stringContaining(problem) });
    expect(stdout).toMatch(/\nNot saved at step 6: .*ENOSPC.*\. The newest checkpoint is that of step 4\.\n/);
    expect(readdirSync(join(directory, 'checkpoints')).sort()).toEqual([
      'checkpoint_00000000',
      'checkpoint_00000004',
    ]);
    const inJob = (path: string): string =>
      path.slice(directory.length + 1).replace(/out\.tfevents\..*\.(\d)$/, '$1');
    const { early, unsynced, files } = diskAfter(callsIn(trace));
    // Logs, of which a power failure may take the end, and the folder of the save that failed and was removed.
    const logged = ['goodput.jsonl', 'metrics.jsonl', 'summaries/eval_train/', 'summaries/train/'];
    const events = ['summaries/eval_train/events.2', 'summaries/events.1', 'summaries/train/events.0'];
    const state = ['metadata.json', 'progress.json', 'state.safetensors', 'train_input.json'];
    const described = [
      ...['experiment.json', 'experiment_cls_vars.txt', 'model_params.txt', 'status.json'],
      ...['post_init_model_params.txt', 'train_state_provenance.txt'],
    ];
    expect({
      early: early.map(inJob),
      unsynced: unsynced.map(inJob),
      files: files.map(inJob),
    }).toEqual({
      early: [],
      unsynced: ['.train.lock', 'checkpoints/', ...logged, ...events].sort(),
      files: [
        ...['.train.lock', 'data/train.json', 'goodput.jsonl', 'metrics.jsonl', ...described, ...events],
        ...state.map((name) => `checkpoints/checkpoint_00000000/${name}`),
        ...state.map((name) => `checkpoints/checkpoint_00000004/${name}`),
      ].sort(),
    });
  },
);
