/** @file ONNX Runtime makes no device id and calls nobody: in an application, its threads, and what it starts. */
import { beforeAll, describe, expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../../command.js';
import { buildListener, canListen, type Listener, listening } from '../../listener.js';

const application = 'test/compiler/onnx/applicationProgram.ts';

describe.skipIf(!canListen)(`telemetry${listening}`, () => {
  let listen: () => Listener;
  beforeAll(async () => {
    listen = await buildListener(temporaryDirectory());
  });

  test('is there to be turned off: by itself, the library makes a device id', async () => {
    const { env, written } = listen();
    const { code } = await startCommand(['bare', '0'], undefined, application, env).finished;
    expect(code).toBe(0);
    expect(written()).toContain('.cache/Microsoft/DeveloperTools/.onnxruntime/deviceid');
  });

  test.each(['main', 'worker'])('is off in the %s thread of an application', async (where) => {
    const { env, written, heard } = listen();
    const { stdout, stderr } = await startCommand([where, '0'], undefined, application, env).finished;
    expect({ stdout, stderr, written: written(), heard: heard() }).toEqual({
      stdout: `${where} thread\n`,
      stderr: '',
      written: [],
      heard: [],
    });
  });
});
