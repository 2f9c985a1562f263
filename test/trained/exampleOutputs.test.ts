/** @file Decoded examples of several shards and steps, and folders that lack some. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadDecoderOutputs } from '../../src/trained/index.js';
import { temporaryDirectory } from '../command.js';

function folder(files: Record<string, string>): string {
  const directory = join(temporaryDirectory(), 'validation');
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

const shard = (n: number, step = 200): string => `decoder_out_${step}_shard_${n}.jsonl`;

test('shards of one step, an example a line', () => {
  const directory = folder({
    [shard(2)]: '{"decoded":"c"}\n{"decoded":"d"}\n',
    [shard(0)]: '{"decoded":"a"}\n',
    [shard(1)]: '',
    'notes.txt': 'other',
  });
  const outputs = {
    step: 200,
    numShards: 3,
    examples: [{ decoded: 'a' }, { decoded: 'c' }, { decoded: 'd' }],
  };
  expect(loadDecoderOutputs(directory)).toEqual(outputs);
  expect(loadDecoderOutputs(directory, 200)).toEqual(outputs);
});

test('several steps, a missing step, a missing shard, a torn line, an empty folder and none', () => {
  const both = folder({ [shard(0)]: '', [shard(0, 1000)]: '{"decoded":"a"}\n' });
  expect(() => loadDecoderOutputs(both)).toThrow(`${both} has outputs of the steps 200, 1000. Choose one.`);
  expect(loadDecoderOutputs(both, 1000).examples).toHaveLength(1);
  expect(() => loadDecoderOutputs(both, 5)).toThrow(`${both} has no outputs of step 5. It has: 200, 1000.`);
  const lacking = folder({ [shard(0)]: '', [shard(2)]: '' });
  expect(() => loadDecoderOutputs(lacking)).toThrow(
    `${lacking} has no ${shard(1)}, and has shard 2. Decode the step again.`,
  );
  const torn = folder({ [shard(0)]: '{"decoded":"a"}\n{"deco' });
  expect(() => loadDecoderOutputs(torn)).toThrow(`${torn}/${shard(0)}:2: not a decoded example: `);
  const wrong = folder({ [shard(0)]: '{"decoded":"a"}\nnull\n' });
  expect(() => loadDecoderOutputs(wrong)).toThrow(
    `${wrong}/${shard(0)}:2: not a decoded example: Invalid input: expected object, received null.`,
  );
  const empty = folder({});
  expect(() => loadDecoderOutputs(empty)).toThrow(
    `${empty} has no decoder_out_<step>_shard_<n>.jsonl. Decode the run first.`,
  );
  expect(() => loadDecoderOutputs(`${empty}/none`)).toThrow(`${empty}/none cannot be read: `);
});
