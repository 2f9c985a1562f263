/** @file Batches beyond the memory of the machine, or of the container that the process runs in. */
import { totalmem } from 'node:os';
import { afterEach, expect, test, vi } from 'vitest';
import { withinMemory } from '../../src/trained/batchMemory.js';

afterEach(() => void vi.restoreAllMocks());

const asked = (bytes: number) =>
  withinMemory({ batchSize: 1024, what: 'its arrays', bytes }, async () => 'made');
const tooMuch = (bytes: string, memory: string) =>
  `The batch size is 1,024: its arrays would take ${bytes}, and there are ${memory} of memory. ` +
  'Set a smaller batchSize (--batch_size).';

test("a container's memory counts where it is less, and the machine's where there is no container", async () => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(2 ** 30);
  expect(await asked(2 ** 30)).toBe('made');
  await expect(asked(2 ** 31)).rejects.toThrow(tooMuch('2,147,483,648 bytes', '1,073,741,824 bytes'));
  for (const none of [0, 2 ** 63, undefined as never]) {
    constrained.mockReturnValue(none);
    expect(await asked(2 ** 31)).toBe('made');
    await expect(asked(2 * totalmem())).rejects.toThrow('of memory. Set a smaller batchSize');
  }
});

test('what V8 refuses is too much as well; other errors are as they are', async () => {
  const failing = (error: unknown) =>
    withinMemory({ batchSize: 1, what: 'it', bytes: 2 ** 20 }, () => Promise.reject(error));
  const refused = new RangeError('Array buffer allocation failed');
  await expect(failing(refused)).rejects.toMatchObject({ cause: refused });
  await expect(failing(refused)).rejects.toThrow('The batch size is 1: it would take 1,048,576 bytes');
  const other = new RangeError('out of bounds');
  await expect(failing(other)).rejects.toBe(other);
});
