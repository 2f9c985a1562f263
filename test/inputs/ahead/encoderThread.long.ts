/** @file Threads that encode: the ids of the tokenizer itself, its errors, and the event loop meanwhile. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { CharTokenizer, EncoderThread, InputError } from '../../../src/inputs/index.js';

test('texts are encoded as by the tokenizer, and the event loop goes on meanwhile', async () => {
  const config = CharTokenizer.config({ vocabulary: 'abc ' });
  const thread = new EncoderThread(config, []);
  const text = 'ab c'.repeat(100_000);
  let turns = 0;
  const counting = setInterval(() => turns++, 1);
  const [ids, error, more] = await Promise.all([
    thread.encode(text),
    thread.encode('abcd').catch((reason: Error) => reason),
    thread.encode('cab'),
  ]);
  clearInterval(counting);
  expect(ids).toEqual(build(config).encode(text));
  expect(turns).toBeGreaterThan(0);
  expect(error).toBeInstanceOf(InputError);
  expect((error as Error).message).toMatch(
    /^CharTokenizer: the character "d" \(U\+0064\) at line 1, column 4 of the text/,
  );
  expect([...more]).toEqual([2, 0, 1]);
  const asked = thread.encode('ab').catch((reason: Error) => reason.message);
  await thread.close();
  expect(await asked).toBe('The thread that encodes texts has ended: it was closed.');
});
