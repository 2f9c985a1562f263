/** @file What ONNX Runtime sends in its first 40 seconds: its first try comes after 9. */
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../../command.js';
import { buildListener, canListen, listening } from '../../listener.js';

test.skipIf(!canListen)(`the library by itself calls its maker, ours nobody${listening}`, async () => {
  const listen = await buildListener(temporaryDirectory());
  const heard = await Promise.all(
    ['bare', 'main', 'worker'].map(async (where) => {
      const listener = listen();
      const { code } = await startCommand(
        [where, '40'],
        undefined,
        'test/compiler/onnx/applicationProgram.ts',
        listener.env,
      ).finished;
      return [where, code, [...new Set(listener.heard().filter((line) => line.startsWith('lookup')))]];
    }),
  );
  expect(heard).toEqual([
    ['bare', 0, ['lookup mobile.events.data.microsoft.com']],
    ['main', 0, []],
    ['worker', 0, []],
  ]);
});
