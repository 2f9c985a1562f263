import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { CharTokenizer, EndOfData, InputError, type LmBatch, TextInput } from '../../../src/inputs/index.js';
import { runs } from '../../faults/campaign.js';
import { corpusDirectory, readAll, rowTexts, take } from '../corpus.js';

/** 256 different bytes, so that a label says where it stood. */
const BYTES = Uint8Array.from({ length: 256 }, (_, index) => index);

const labelsOf = (batches: readonly LmBatch[]): number[] =>
  batches.flatMap((batch) => [...batch.labels.data].filter((_, at) => batch.weights.data[at] === 1));

test('evaluation reads windows in order, the last one padded with weight 0', async () => {
  const directory = corpusDirectory({ 'a.txt': 'abcdefghijklmnopqrst' });
  const input = build(
    TextInput.config({ files: [join(directory, '*.txt')], split: 'all', seqLen: 4, batchSize: 3 }),
  );
  const batches = await readAll(input);
  expect(batches.map(rowTexts)).toEqual([
    ['abcd>bcde', 'efgh>fghi', 'ijkl>jklm'],
    ['mnop>nopq', 'qrs>rst'],
  ]);
  expect(batches[1]!.ids).toEqual({
    shape: [3, 4],
    dtype: 'int32',
    data: Int32Array.from([...Buffer.from('mnopqrs\0\0\0\0\0')]),
  });
  expect([...batches[1]!.weights.data]).toEqual([1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
  expect([...batches[1]!.paddings.data]).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
  await expect(input.getNext()).rejects.toThrow(EndOfData);
  input.reset();
  expect(await readAll(input)).toEqual(batches);
});

test('evaluation over hosts: each label once, and every host ends after the same number of batches', async () => {
  const files = [join(corpusDirectory({ 'a.bin': BYTES }), 'a.bin')];
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 60 }),
      fc.boolean(),
      async (numInfeedHosts, batchSize, seqLen, packed) => {
        const hosts = Array.from({ length: numInfeedHosts }, (_, infeedHostIndex) =>
          TextInput.config({
            files,
            split: 'validation',
            validationFraction: 0.5,
            seqLen,
            batchSize,
            packed,
            numInfeedHosts,
            infeedHostIndex,
          }),
        );
        const read = await Promise.all(hosts.map((config) => readAll(build(config))));
        expect(new Set(read.map((batches) => batches.length)).size).toBe(1);
        const labels = read.flatMap(labelsOf).sort((a, b) => a - b);
        expect(labels).toEqual(Array.from({ length: 127 }, (_, index) => 129 + index));
      },
    ),
    { numRuns: runs(30, 8) },
  );
});

test('training over hosts gives the rows of one host, each to one of them', async () => {
  const files = [join(corpusDirectory({ 'a.bin': BYTES }), 'a.bin')];
  for (const sampling of ['permuted', 'random', 'sequential'] as const) {
    const config = { files, seqLen: 8, sampling, isTraining: true, inputRandomSeed: 5 };
    const whole = await take(build(TextInput.config({ ...config, batchSize: 6 })), 20);
    const shards = await Promise.all(
      [0, 1, 2].map((infeedHostIndex) =>
        take(build(TextInput.config({ ...config, batchSize: 2, numInfeedHosts: 3, infeedHostIndex })), 20),
      ),
    );
    whole.forEach((batch, step) => {
      expect(shards.flatMap((shard) => rowTexts(shard[step]!))).toEqual(rowTexts(batch));
    });
  }
});

test('a permuted epoch has each window once, and the next epoch is another order', async () => {
  const directory = corpusDirectory({ 'a.bin': BYTES });
  const config = TextInput.config({
    files: [join(directory, 'a.bin')],
    split: 'all',
    seqLen: 5,
    batchSize: 1,
  });
  config.isTraining = true;
  // 256 tokens hold 50 windows of 5 at each of the 5 places to begin.
  const batches = await take(build(config), 100);
  const epochs = [batches.slice(0, 50), batches.slice(50)].map((epoch) => labelsOf(epoch));
  for (const labels of epochs) {
    expect(labels.length).toBe(250);
    const sorted = [...labels].sort((a, b) => a - b);
    expect(sorted).toEqual(Array.from({ length: 250 }, (_, index) => sorted[0]! + index));
  }
  expect(epochs[0]).not.toEqual(epochs[1]);
  config.inputRandomSeed = 1;
  expect(labelsOf(await take(build(config), 50))).not.toEqual(epochs[0]);
});

test('one shuffled pass that does not repeat has every label once', async () => {
  const directory = corpusDirectory({ 'a.bin': BYTES });
  const config = TextInput.config({
    files: [join(directory, 'a.bin')],
    split: 'all',
    seqLen: 7,
    batchSize: 4,
  });
  config.sampling = 'permuted';
  const labels = labelsOf(await readAll(build(config)));
  expect(labels).not.toEqual([...labels].sort((a, b) => a - b));
  expect(labels.sort((a, b) => a - b)).toEqual(Array.from({ length: 255 }, (_, index) => index + 1));
});

test('an input set to a saved state goes on with exactly the next batch', async () => {
  const directory = corpusDirectory({ 'a.bin': BYTES, 'b.txt': 'hello world', 'c.txt': 'x' });
  const files = [join(directory, '*')];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('permuted', 'random', 'sequential'),
      fc.boolean(),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 0, max: 30 }),
      async (sampling, packed, batchSize, steps) => {
        fc.pre(!(packed && sampling === 'random'));
        const config = TextInput.config({ files, seqLen: 9, batchSize, sampling, packed, isTraining: true });
        const input = build(config);
        await take(input, steps);
        const state = JSON.parse(JSON.stringify(input.getState()));
        const peeked = await input.peek();
        const expected = await take(input, 5);
        const resumed = build(config);
        resumed.setState(state);
        expect(await take(resumed, 5)).toEqual(expected);
        expect(peeked).toEqual(expected[0]);
      },
    ),
    { numRuns: runs(40, 8) },
  );
});

test('a state goes on with another batch size and another number of hosts', async () => {
  const files = [join(corpusDirectory({ 'a.bin': BYTES }), 'a.bin')];
  const config = { files, seqLen: 8, isTraining: true };
  const input = build(TextInput.config({ ...config, batchSize: 6 }));
  await take(input, 3);
  const other = build(TextInput.config({ ...config, batchSize: 2, numInfeedHosts: 2 }));
  other.setState(input.getState());
  expect(rowTexts(await other.getNext())).toEqual(rowTexts(await input.getNext()).slice(0, 2));
});

test('a state of another corpus or another shape of rows is an error that says what changed', async () => {
  const directory = corpusDirectory({ 'a.txt': 'abcdefghij' });
  const split = 'all' as const;
  const config = { files: [join(directory, 'a.txt')], split, seqLen: 4, batchSize: 1 };
  const state = build(TextInput.config(config)).getState();
  expect(() => build(TextInput.config({ ...config, seqLen: 5 })).setState(state)).toThrow(
    "Input 'input' cannot resume from the saved state, as its data has changed since: seqLen is 5, was 4. Restore the data, or start a new run in another directory.",
  );
  writeFileSync(join(directory, 'a.txt'), 'abcdefghiX');
  expect(() => build(TextInput.config(config)).setState(state)).toThrow(
    /corpus is 1 document of 10 tokens \(sha256 [0-9a-f]{16}\), was 1 document of 10 tokens \(sha256 [0-9a-f]{16}\)\./,
  );
  const characters = build(TextInput.config({ ...config, tokenizer: CharTokenizer.config() }));
  const learned = characters.getState();
  writeFileSync(join(directory, 'a.txt'), 'bcdefghijk');
  const others = build(TextInput.config({ ...config, tokenizer: CharTokenizer.config() }));
  expect(() => others.setState(learned)).toThrow(/tokenizer is CharTokenizer of 10 characters/);
  expect(() => build(TextInput.config(config)).setState({ step: 3 })).toThrow(
    `Input 'input': expected a state with a position, 0 or a positive integer, got {"step":3}.`,
  );
});

test('files are held out by their place in the order, or by name', async () => {
  const directory = corpusDirectory({ 'a.txt': 'aa', 'b.txt': 'bb', 'c.txt': 'cc', 'd.txt': 'dd' });
  const config = { files: [join(directory, '*.txt')], seqLen: 8, batchSize: 1 };
  const text = async (values: object): Promise<string[]> =>
    (await readAll(build(TextInput.config({ ...config, ...values })))).flatMap(rowTexts);
  const byOrder = { splitBy: 'file', validationFraction: 0.25 } as const;
  expect(await text({ ...byOrder, split: 'train' })).toEqual(['aabbc>abbcc']);
  expect(await text({ ...byOrder, split: 'validation' })).toEqual(['d>d']);
  const byName = { validationFiles: [join(directory, '[bc].txt')] };
  expect(await text({ ...byName, split: 'train' })).toEqual(['aad>add']);
  expect(await text({ ...byName, split: 'validation' })).toEqual(['bbc>bcc']);
  expect(await text({ ...byName, split: 'all' })).toEqual(['aaddbbc>addbbcc']);
});

test('characters learn the vocabulary of both splits, and ids become text again', async () => {
  const directory = corpusDirectory({ 'a.txt': 'héllo wörld, 😀 and so on until z' });
  const input = build(
    TextInput.config({
      files: [join(directory, 'a.txt')],
      tokenizer: CharTokenizer.config(),
      validationFraction: 0.3,
      seqLen: 6,
      batchSize: 2,
    }),
  );
  const tokenizer = input.tokenizer as CharTokenizer;
  expect(tokenizer.vocabulary).toBe(' ,adhilnorstuwzéö😀');
  expect(tokenizer.vocabSize).toBe(18);
  const batch = (await input.getNext()) as LmBatch;
  expect(input.idsToStrings(batch.ids)).toEqual(['héllo ', 'wörld,']);
  expect(input.idsToStrings(batch.ids, [2, 0])).toEqual(['hé', '']);
});

test('missing and empty corpora are errors that name the input and the place', () => {
  const directory = corpusDirectory({
    'tiny.txt': 'ab',
    'empty.txt': '',
    'one/a.txt': 'a',
    'one/b.txt': 'b',
  });
  const messageOf = (values: Partial<Parameters<typeof TextInput.config>[0]>): string => {
    const base = { files: [join(directory, 'tiny.txt')], seqLen: 4, batchSize: 1 };
    try {
      build(TextInput.config({ ...base, ...values })).getState();
    } catch (error) {
      expect(error).toBeInstanceOf(InputError);
      return (error as Error).message;
    }
    throw new Error('nothing was thrown');
  };
  expect(messageOf({ files: [join(directory, 'tinny.txt')] })).toBe(
    `TextInput 'input': No file matches '${directory}/tinny.txt' (looked in ${process.cwd()}). Did you mean '${directory}/tiny.txt'? A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.`,
  );
  expect(messageOf({ files: [join(directory, 'empty.txt')] })).toBe(
    `TextInput 'input': The corpus is empty: no text in 1 file (${directory}/empty.txt).`,
  );
  expect(messageOf({ split: 'validation' })).toBe(
    `TextInput 'input': Split 'validation' has 1 token of 1 file (${directory}/tiny.txt), expected at least 2. It is cut by splitBy 'text' and validationFraction 0.1; validationFiles can name the files to hold out.`,
  );
  expect(messageOf({ split: 'all', isTraining: true, sampling: 'random' })).toBe(
    "TextInput 'train': sampling 'random' needs more than seqLen = 4 tokens, and split 'all' has 2.",
  );
  expect(messageOf({ split: 'all', packed: true, files: [join(directory, 'one/*.txt')] })).toBe(
    "TextInput 'input': No document has two tokens, so there is nothing to predict.",
  );
});

test('fields that contradict each other are errors of the config', () => {
  const base = { files: ['nowhere.txt'], seqLen: 4, batchSize: 1 };
  const making = (values: Partial<Parameters<typeof TextInput.config>[0]>) => () =>
    build(TextInput.config({ ...base, ...values }));
  expect(making({ sampling: 'random' })).toThrow(
    "Building TextInput failed: sampling 'random' has no end; set repeat, or use 'permuted'.",
  );
  expect(making({ sampling: 'random', isTraining: true, packed: true })).toThrow(
    "Building TextInput failed: sampling 'random' draws windows, and packed rows are whole; use 'permuted'.",
  );
  expect(making({ infeedHostIndex: 2, numInfeedHosts: 2 })).toThrow(
    'infeedHostIndex (TextInput): must be below numInfeedHosts, as hosts are counted from 0; infeedHostIndex is 2 (at test/inputs/text/textInput.test.ts:',
  );
});

test('names are letters, digits and a few signs', () => {
  expect(() => TextInput.config({ name: 'my data' })).toThrow(
    /^TextInput\.name: expected a string like \/\^\[a-zA-Z0-9\.:_\+-\]\+\$\/ or null, got 'my data'/,
  );
  for (const name of ['.', '..'])
    expect(() => TextInput.config({ name })).toThrow(
      `TextInput.name: expected a name that a directory can have, got '${name}'`,
    );
  expect(build(TextInput.config({ name: 'val.small', files: ['x'], seqLen: 1, batchSize: 1 })).name).toBe(
    'val.small',
  );
});

test('evalLoopNumBatches is positive, -1, or null by default; an evaluation starts at the first batch', () => {
  const config = TextInput.config();
  expect([config.evalLoopNumBatches, config.resetForEval]).toEqual([null, true]);
  config.evalLoopNumBatches = -1;
  for (const count of [0, -2]) {
    expect(() => (config.evalLoopNumBatches = count)).toThrow(
      `evalLoopNumBatches must be positive or -1, found ${count}.`,
    );
  }
});
