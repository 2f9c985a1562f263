/** @file Commands that a project's code ends or blocks. */
import { expect, test } from 'vitest';
import { startCommand } from '../command.js';

const returns = 'It returns or throws instead.';

test.concurrent.each([
  [
    'exits',
    1,
    null,
    `lm.Bad: code that runs while it is loaded ended the process with exit code 0. ${returns}\n`,
  ],
  [
    'fails',
    3,
    null,
    `lm.Bad: code that runs while it is loaded ended the process with exit code 3. ${returns}\n`,
  ],
  [
    'waits',
    1,
    null,
    `lm.Bad: code that runs while it is loaded waits for a promise that nothing settles, such as a top-level await. ${returns}\n`,
  ],
  ['loops', null, 'SIGKILL', 'lm.Bad: it was not loaded within 1 s: its code may loop without an end.\n'],
  ['exits later', 1, null, `An experiment's code ended the process with exit code 0. ${returns}\n`],
  ['returns', 0, null, ''],
])('code that %s', async (how, code, signal, said) => {
  const finished = await startCommand([how], undefined, 'test/system/foreignProgram.ts').finished;
  const stderr = finished.stderr.replace(/^Warning: Detected unsettled top-level await[\s\S]*?\n\n+/, '');
  expect({ ...finished, stderr }).toEqual({ code, signal, stdout: '', stderr: said });
});
