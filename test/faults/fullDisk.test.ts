/** @file A disk that is full when training saves its last state. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../command.js';
import { canInject, faultEnv } from './preload.js';

test.runIf(canInject)(
  'the last save is told, the exit code is 1, and the checkpoint before is there',
  async () => {
    const directory = temporaryDirectory();
    const part = 'checkpoint_00000006/state';
    const fault = { calls: ['write'], part, nth: 1, times: 1e6, how: 'ENOSPC' } as const;
    const env = faultEnv(temporaryDirectory(), directory, fault, join(directory, 'calls'));
    const flags = ['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--set', 'numTrainSteps=6'];
    const { code, stdout, stderr } = await startCommand(flags, undefined, undefined, env).finished;
    const problem = `${directory}/checkpoints/checkpoint_00000006: cannot be written: ENOSPC: `;
    expect({ code, stderr }, stdout).toEqual({ code: 1, stderr: expect.stringContaining(problem) });
    expect(stdout).toMatch(/\nNot saved at step 6: .*ENOSPC.*\. The newest checkpoint is that of step 4\.\n/);
    expect(readdirSync(join(directory, 'checkpoints')).sort()).toEqual([
      'checkpoint_00000000',
      'checkpoint_00000004',
    ]);
  },
);
