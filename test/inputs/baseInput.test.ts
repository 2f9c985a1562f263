/** @file What all inputs share: padding for programs, states in files, combinations that no evaluation can have. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import { type LmBatch, SyntheticLmInput, specsOf } from '../../src/inputs/index.js';

const config = (more: Partial<Config<SyntheticLmInput>> = {}) =>
  SyntheticLmInput.config({ name: 'made', batchSize: 2, seqLen: 3, vocabSize: 9, isTraining: true, ...more });

test('an input needs a batch size; all hosts together have one as much larger, and their indices are below their number', () => {
  expect(() => build(SyntheticLmInput.config({ seqLen: 3, vocabSize: 9 }))).toThrow(
    'A hyperparameter is not set: batchSize (SyntheticLmInput): expected a positive integer.',
  );
  const host = build(config({ numInfeedHosts: 3, infeedHostIndex: 2 }));
  expect([host.batchSize, host.getGlobalBatchSize()]).toEqual([2, 6]);
  expect(() => build(config({ numInfeedHosts: 3, infeedHostIndex: 3 }))).toThrow(
    'must be below numInfeedHosts, as hosts are counted from 0',
  );
});

test('programs get padding behind each batch: paddings 1, all else 0', async () => {
  const input = build(config({ batchPaddingSize: 1 }));
  const peeked = (await input.peekPadded()) as LmBatch;
  const batch = (await build(config()).getNext()) as LmBatch;
  expect(specsOf(peeked)).toEqual(input.paddedBatchSpecs());
  expect(peeked.ids.shape).toEqual([3, 3]);
  expect([...peeked.ids.data]).toEqual([...batch.ids.data, 0, 0, 0]);
  expect([...peeked.weights.data]).toEqual([1, 1, 1, 1, 1, 1, 0, 0, 0]);
  expect([...peeked.paddings.data]).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1]);
  expect(await input.getNextPadded()).toEqual(peeked);
  expect(input.getState()).toMatchObject({ position: 2 });
  expect(input.getGlobalBatchSize()).toBe(2);
});

test('peek gives what the next get gives, and a state taken after it is the one before', async () => {
  const input = build(config());
  const first = await input.getNext();
  const state = input.getState();
  const peeked = await input.peek();
  expect(input.getState()).toEqual(state);
  expect(await input.getNext()).toEqual(peeked);
  input.setState(state);
  expect(await input.getNext()).toEqual(peeked);
  expect(peeked).not.toEqual(first);
});

test('a state goes through a file', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'state-')), 'state.json');
  const input = build(config());
  await input.getNext();
  input.save(path);
  const next = await input.getNext();
  const again = build(config());
  again.restore(path);
  expect(await again.getNext()).toEqual(next);
  expect(() => again.restore(`${path}x`)).toThrow(
    `Input 'made': ${path}x holds no state of an input: ENOENT: no such file or directory, open '${path}x'.`,
  );
  for (const text of ['null', '[]', '{"position": -1}']) {
    writeFileSync(path, text);
    expect(() => again.restore(path)).toThrow(
      "Input 'made': expected a state with a position, 0 or a positive integer",
    );
  }
  writeFileSync(path, '{');
  expect(() => again.restore(path)).toThrow(`Input 'made': ${path} holds no state of an input: `);
});

test('an evaluation that cannot end, or has no beginning, is refused with the reason', () => {
  expect(() => build(config({ isTraining: false, evalLoopNumBatches: -1 }))).toThrow(
    "Input 'made' repeats endlessly, so an evaluation with evalLoopNumBatches -1 would never finish. " +
      'Set it to a number of batches, or let the data end (repeat, numBatches).',
  );
  expect(() => build(config({ resetForEval: false, evalLoopNumBatches: -1 }))).toThrow(
    'evalLoopNumBatches (SyntheticLmInput): must be a number of batches if resetForEval is false: -1 reads to the end of the data, and an evaluation that continues after the previous one cycles through it',
  );
  for (const evalLoopNumBatches of [0, -5])
    expect(() => build(config({ evalLoopNumBatches }))).toThrow(
      `evalLoopNumBatches must be positive or -1, found ${evalLoopNumBatches}.`,
    );
  build(config({ isTraining: false, numBatches: 4, evalLoopNumBatches: -1 }));
  build(config({ isTraining: false, resetForEval: false, evalLoopNumBatches: 2 }));
});
