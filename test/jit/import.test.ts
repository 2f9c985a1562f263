/** @file What a program in TensorFlow.js notices when it imports luthier/jit and luthier/compiler. */
import { expect, test } from 'vitest';
import { startCommand } from '../command.js';

/** Gradients that are mended: tfjs's own is wrong for reflected pads, and computed in another way for the others. */
const MENDED = ['batchNorm', 'pad', 'resize'];

const without = (object: object, keys: readonly string[]): object =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));

test('an import changes nothing but gradients that are mended, and lets the program end', async () => {
  const { stdout, stderr, code } = await startCommand([], undefined, 'test/jit/importProgram.ts').finished;
  expect(code, stderr).toBe(0);
  const { known, result, before, imported, used } = JSON.parse(stdout.trim().split('\n').at(-1)!);
  expect(known).toEqual(['function', 'function']);
  expect(without(imported, ['gradients'])).toEqual(without(before, ['gradients']));
  expect(without(imported.gradients, MENDED)).toEqual(without(before.gradients, MENDED));
  expect(result).toEqual([2, 4]);
  // Use adds the backend that records, of a priority that makes it nobody's default, and keeps ONNX Runtime from telling.
  expect({ backends: used.backends, priorities: used.priorities }).toEqual({
    backends: ['cpu', 'luthier-trace'],
    priorities: [1, 0],
  });
  expect(used.environment).toEqual({ ...before.environment, ORT_DISABLE_TELEMETRY: '1' });
  const changed = ['backends', 'priorities', 'environment'];
  expect(without(used, changed)).toEqual(without(imported, changed));
});
