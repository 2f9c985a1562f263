/** @file Processes of the toolchain: how they end, by themselves, late, and with this process. */
import { expect, it } from 'vitest';
import { runProcess } from '../../../../src/compiler/native/toolchain/process.js';
import { InterruptedError, stopGroups } from '../../../../src/system/groups.js';

const node = (text: string, seconds = 60) =>
  runProcess(process.execPath, ['-e', text], { env: process.env, seconds });

it('tells how they end, and what they say', async () => {
  expect(await node('console.log("out"); console.error("err"); process.exit(3)')).toMatchObject({ code: 3 });
  expect((await node('console.log("out")')).output).toBe('out\n');
  expect(await node('process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 60000)')).toMatchObject({
    code: 'ended by SIGTERM',
  });
  expect(await node('setTimeout(() => {}, 60000)', 0.5)).toMatchObject({ code: 'no answer within 0.5 s' });
});

it('one that is ended because this process is to stop has no result', async () => {
  const ended = node('setTimeout(() => {}, 60000)');
  stopGroups();
  await expect(ended).rejects.toThrow(
    new InterruptedError(`${process.execPath} was ended, for this process is to stop.`),
  );
});
