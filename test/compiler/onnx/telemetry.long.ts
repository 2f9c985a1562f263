/** @file What ONNX Runtime sends in its first 40 seconds, or 15 with SHORT=1: left to itself, it first tries after about 9. */
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../../command.js';
import { tries } from '../../faults/campaign.js';
import { buildListener, canListen, listening } from '../../listener.js';

const seconds = String(tries(40, 15));

test.skipIf(!canListen)(`what is called is heard, and ours calls nobody${listening}`, async () => {
  const listen = await buildListener(temporaryDirectory());
  const heard = await Promise.all(
    ['caller', 'main', 'worker'].map(async (where) => {
      const listener = listen();
      const { code } = await startCommand(
        [where, seconds],
        undefined,
        'test/compiler/onnx/applicationProgram.ts',
        listener.env,
      ).finished;
      return [where, code, [...new Set(listener.heard().filter((line) => line.startsWith('lookup')))]];
    }),
  );
  expect(heard).toEqual([
    ['caller', 0, ['lookup luthier.invalid']],
    ['main', 0, []],
    ['worker', 0, []],
  ]);
});
