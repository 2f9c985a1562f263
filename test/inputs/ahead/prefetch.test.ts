import { execFile } from 'node:child_process';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, expect, test, vi } from 'vitest';
import { build, copyWith } from '../../../src/hparams/index.js';
import {
  ByteTokenizer,
  CharTokenizer,
  EndOfData,
  Feature,
  type InputSource,
  openInput,
  Rekey,
  SeqioInput,
  Task,
  TextInput,
  TextLinesSource,
  Tokenize,
} from '../../../src/inputs/index.js';
import { longTest } from '../../longTest.js';
import { corpusDirectory, readAll, take } from '../corpus.js';
import { CountingInput, SlowRows } from '../ownInput.js';

// Threads start slowly on a machine that does much else.
vi.setConfig({ testTimeout: 60_000 });

const OWN = new URL('../ownInput.ts', import.meta.url).href;
const opened: InputSource[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((input) => input.close()));
});

function open(...args: Parameters<typeof openInput>): InputSource {
  const input = openInput(...args);
  opened.push(input);
  return input;
}

function textConfig() {
  const directory = corpusDirectory({ 'a.txt': 'the quick brown fox jumps over the lazy dog '.repeat(50) });
  const files = [join(directory, 'a.txt')];
  return TextInput.config({ files, seqLen: 16, batchSize: 4, isTraining: true, prefetchBatches: 2 });
}

/** Takes batches slowly until the worker makes them. */
async function untilAhead(input: InputSource, check: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!isAhead(input) && Date.now() < deadline) {
    await check();
    // Threads may take seconds to start, and data end.
    await sleep(100);
  }
  expect(isAhead(input)).toBe(true);
}

const readersOf = (input: InputSource): number => (input as unknown as { readers: number }).readers;
const isAhead = (input: InputSource): boolean => readersOf(input) > 0;

test('batches and states are those of the input itself, before and after the worker takes over', async () => {
  const config = textConfig();
  const input = open(config);
  const plain = build(config);
  const step = async () => {
    expect(await input.getNext()).toEqual(await plain.getNext());
    expect(input.getState()).toEqual(plain.getState());
  };
  await untilAhead(input, step);
  for (let i = 0; i < 100; i++) await step();
  expect(await input.peek()).toEqual(await plain.peek());
  expect(input.getState()).toEqual(plain.getState());
  await step();
});

test('reset and setState forget what was read ahead', async () => {
  const config = textConfig();
  const input = open(config);
  const expected = await take(build(config), 30);
  await untilAhead(input, async () => void (await input.getNext()));
  for (let round = 0; round < 5; round++) {
    input.reset();
    expect(await take(input, 10 + round)).toEqual(expected.slice(0, 10 + round));
    await input.peek();
    const state = input.getState();
    input.reset();
    input.setState(state);
    expect(await take(input, 5)).toEqual(expected.slice(10 + round, 15 + round));
  }
});

longTest(
  'three threads give the batches and states of one reader, before and after a reset, to the same end',
  async () => {
    const config = SlowRows.config({ batchSize: 2, numRows: 401, prefetchBatches: 2, numWorkers: 3 });
    const input = open(config, { modules: [OWN] });
    const plain = build(config);
    const step = async () => {
      expect(await input.getNext()).toEqual(await plain.getNext());
      expect(input.getState()).toEqual(plain.getState());
    };
    await untilAhead(input, step);
    expect(readersOf(input)).toBe(3);
    for (const start of [undefined, 0, 150]) {
      for (const each of [input, plain]) if (start !== undefined) each.setState({ position: start });
      expect(await input.peek()).toEqual(await plain.peek());
      const rest = (401 - (plain.getState().position as number)) / 2;
      for (let i = 0; i < rest; i++) await step();
      for (let i = 0; i < 2; i++) await expect(input.getNext()).rejects.toThrow(EndOfData);
      await expect(plain.getNext()).rejects.toThrow(EndOfData);
      expect(input.getState()).toEqual(plain.getState());
    }
  },
);

longTest('where nothing is said, threads join until batches come in time, at most one a core', async () => {
  const config = SlowRows.config({ batchSize: 1, milliseconds: 5, isTraining: true });
  const input = open(config, { modules: [OWN] });
  const plain = build(copyWith(config, { milliseconds: 0 }));
  const wanted = Math.min(2, availableParallelism());
  const deadline = Date.now() + 30_000;
  while (readersOf(input) < wanted && Date.now() < deadline)
    expect(await input.getNext()).toEqual(await plain.getNext());
  expect(readersOf(input)).toBe(wanted);
  for (let i = 0; i < 20; i++) expect(await input.getNext()).toEqual(await plain.getNext());
});

longTest('an input that cannot deal its batches out has one thread, whatever is asked for', async () => {
  const input = open(
    CountingInput.config({ batchSize: 1, numBatches: 5000, prefetchBatches: 2, numWorkers: 4 }),
    {
      modules: [OWN],
    },
  );
  await untilAhead(input, async () => void (await input.getNext()));
  expect(readersOf(input)).toBe(1);
});

test('what one of several threads cannot read ends the input at that batch, not before', async () => {
  const config = SlowRows.config({
    batchSize: 1,
    numRows: 5000,
    failAt: 4000,
    prefetchBatches: 4,
    numWorkers: 2,
  });
  const input = open(config, { modules: [OWN] });
  await untilAhead(input, async () => void (await input.getNext()));
  input.setState({ position: 3990 });
  for (let row = 3990; row < 4000; row++)
    expect((await input.getNext()).x!.data).toEqual(Int32Array.of(row + 1));
  await expect(input.getNext()).rejects.toThrow(
    "Input 'input' failed in its prefetch thread: cannot make row 4000",
  );
});

test('data ends for a reader ahead as for any other, and begins again after reset', async () => {
  const config = textConfig();
  config.isTraining = false;
  config.prefetchBatches = 2;
  const expected = await readAll(build(config));
  const input = open(config);
  expect(await readAll(input)).toEqual(expected);
  const deadline = Date.now() + 30_000;
  while (!isAhead(input) && Date.now() < deadline) {
    input.reset();
    expect(await readAll(input)).toEqual(expected);
    // Threads may take seconds to start, and data end.
    await sleep(100);
  }
  input.reset();
  expect(await readAll(input)).toEqual(expected);
  await expect(input.peek()).rejects.toThrow(EndOfData);
  await expect(input.getNext()).rejects.toThrow(EndOfData);
});

test('a class of one’s own is read ahead from its module, batches of changing shape too', async () => {
  const config = CountingInput.config({ batchSize: 1, prefetchBatches: 3, numBatches: 100_000 });
  const input = open(config, { modules: [OWN] });
  const plain = build(config);
  const step = async () => expect(await input.getNext()).toEqual(await plain.getNext());
  await untilAhead(input, step);
  for (let i = 0; i < 10; i++) await step();
  input.reset();
  plain.reset();
  for (let i = 0; i < 10; i++) await step();
});

test('an error in the worker has the original message', async () => {
  const config = CountingInput.config({
    batchSize: 1,
    prefetchBatches: 3,
    failAt: 20_000,
    numBatches: 100_000,
  });
  const input = open(config, { modules: [OWN] });
  await untilAhead(input, async () => void (await input.getNext()));
  input.setState({ count: 19_995 });
  await take(input, 5);
  const message = "Input 'input' failed in its prefetch thread: cannot count to 20000";
  await expect(input.getNext()).rejects.toThrow(message);
  await expect(input.getNext()).rejects.toThrow(message);
});

/** Reads `count` batches of an input that reads ahead where it can; what it told before the first of them. */
async function toldBefore(
  config: Parameters<typeof openInput>[0],
  modules: readonly string[] = [],
  count = 20,
): Promise<string[]> {
  const told: string[] = [];
  const input = open(config, { modules, tell: (line) => told.push(line) });
  expect(await input.getNext()).toEqual(await build(config).getNext());
  const before = [...told];
  await take(input, count - 1);
  expect([told, isAhead(input)]).toEqual([before, false]);
  return told;
}

longTest('a class of a program is found by the module that declares it', async () => {
  const config = CountingInput.config({ batchSize: 1, prefetchBatches: 3, numBatches: 100_000 });
  const input = open(config);
  const plain = build(config);
  await untilAhead(input, async () => expect(await input.getNext()).toEqual(await plain.getNext()));
});

test('a class that no thread finds is told before the first batch, and read in the main thread', async () => {
  class Unexported extends CountingInput {}
  expect(await toldBefore(Unexported.config({ batchSize: 1, prefetchBatches: 3 }))).toEqual([
    expect.stringMatching(
      /^Input 'input' is read in the main thread, which may take longer: a prefetch thread cannot load its classes\. 'Unexported' is unknown: the document has it from \.\/test\/inputs\/ahead\/prefetch\.test\.ts, which /,
    ),
  ]);
});

longTest(
  'a module is loaded only for classes that inputs do not have, and told of where no thread can load it',
  async () => {
    const modules = [new URL('../topLevelAwait.ts', import.meta.url).href];
    const input = open(textConfig(), { modules });
    await untilAhead(input, async () => void (await input.getNext()));
    const own = CountingInput.config({ batchSize: 1, prefetchBatches: 3 });
    expect(await toldBefore(own, modules)).toEqual([
      expect.stringMatching(/cannot load its classes\. .*await/s),
    ]);
  },
);

test('a closed input gives no more', async () => {
  const input = open(textConfig());
  await input.getNext();
  await input.close();
  await expect(input.getNext()).rejects.toThrow("Input 'train' is closed.");
});

test('the main thread reads where prefetchBatches is 0, and in evaluation by default', () => {
  const config = textConfig();
  config.prefetchBatches = 0;
  expect(open(config)).toBeInstanceOf(TextInput);
  delete (config as { prefetchBatches?: unknown }).prefetchBatches;
  expect(open(config)).not.toBeInstanceOf(TextInput);
  config.isTraining = false;
  expect(open(config)).toBeInstanceOf(TextInput);
});

test('where nothing is said, training has a worker once making batches takes a noticeable part of the time', async () => {
  const config = textConfig();
  delete (config as { prefetchBatches?: unknown }).prefetchBatches;
  const input = open(config);
  const plain = build(config);
  const deadline = Date.now() + 30_000;
  while (!isAhead(input) && Date.now() < deadline)
    expect(await input.getNext()).toEqual(await plain.getNext());
  expect(isAhead(input)).toBe(true);
  for (let i = 0; i < 50; i++) expect(await input.getNext()).toEqual(await plain.getNext());
});

test('missing files are found when the input is opened', () => {
  const config = textConfig();
  config.files = ['nowhere/*.txt'];
  expect(() => open(config)).toThrow(/^TextInput 'train': No file matches 'nowhere\/\*\.txt' \(looked in /);
});

longTest('under tsx the worker takes over too, and never keeps the process alive', async () => {
  const script = fileURLToPath(new URL('./prefetchProgram.ts', import.meta.url));
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', tsx, script], {
    timeout: 60_000,
  });
  expect(stdout).toBe('the worker reads ahead\n');
});

/** Takes batches until one fails. */
async function untilFailure(input: InputSource): Promise<void> {
  for (;;) {
    await input.getNext();
    await sleep(5);
  }
}

test('files that are deleted before the thread reads them are named', async () => {
  const directory = corpusDirectory({ 'a.txt': 'the quick brown fox '.repeat(20), 'b.txt': 'jumps' });
  const config = textConfig();
  config.files = [join(directory, '*.txt')];
  const input = open(config);
  rmSync(join(directory, 'b.txt'));
  await expect(untilFailure(input)).rejects.toThrow(
    `Input 'train' failed in its prefetch thread: ${directory}/b.txt was deleted after the start. Restore it.`,
  );
});

test('a file that changes while threads read its lines ends the input, with file and byte', async () => {
  const directory = corpusDirectory({ 'a.txt': '0 1 2 3\n'.repeat(500) });
  const path = join(directory, 'a.txt');
  const mixtureOrTask = Task.config({
    source: TextLinesSource.config({ files: [path] }),
    preprocessors: [Rekey.config({ keyMap: { targets: 'text' } }), Tokenize.config()],
    features: { targets: Feature.config({ tokenizer: ByteTokenizer.config(), addEos: false }) },
  });
  const input = open(
    SeqioInput.config({
      ...{ mixtureOrTask, splitName: 'all', taskFeatureLengths: { targets: 8 }, batchSize: 2 },
      ...{ isTraining: true, prefetchBatches: 2, numWorkers: 2 },
    }),
  );
  await untilAhead(input, async () => void (await input.getNext()));
  appendFileSync(path, 'more');
  await expect(untilFailure(input)).rejects.toThrow(
    new RegExp(
      `^Input 'train' failed in its prefetch thread: SeqioInput 'train': ${path}, byte \\d+: the file grew from 4000 to 4004 bytes while it was being read\\.`,
    ),
  );
});

test('the thread reads with the vocabulary that was learned at the start', async () => {
  const path = join(corpusDirectory({ 'a.txt': 'It was the best of times, '.repeat(20) }), 'a.txt');
  const config = textConfig();
  Object.assign(config, { files: [path], tokenizer: CharTokenizer.config() });
  const input = open(config);
  expect(input.dataIdentity()).toMatchObject({
    vocabSize: 14,
    tokenizer: { class: 'CharTokenizer', learned: { vocabulary: ' ,Iabefhimostw' } },
    files: [{ name: path, path, size: 520 }],
  });
  writeFileSync(path, 'It was the worst of times, '.repeat(20));
  await expect(untilFailure(input)).rejects.toThrow(
    `Input 'train' failed in its prefetch thread: TextInput 'train': CharTokenizer: the character "r" (U+0072) at line 1, column 14 of ${path} is not among the 14 characters of its vocabulary.`,
  );
});
