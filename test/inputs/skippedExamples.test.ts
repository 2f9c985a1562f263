/** @file Broken examples that are left out: which ones, what their rows are, and counts over peeks, threads and resumptions. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { encode as encodePng } from 'fast-png';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { maskedCrc32c } from '../../src/files/index.js';
import { build, type Config, configurable } from '../../src/hparams/index.js';
import {
  AppendEos,
  ArrayFeature,
  AudioInput,
  type BaseInput,
  ByteTokenizer,
  CsvSource,
  type Example,
  Feature,
  ImageFolder,
  ImageInput,
  InputError,
  type InputSource,
  JsonLinesSource,
  LanguageModelFeatures,
  LogMel,
  Mixup,
  MultiInput,
  NumberFeature,
  nextBatch,
  openInput,
  RebatchedInput,
  RecordInput,
  SeqioInput,
  StreamInput,
  Task,
  TextLinesSource,
  TfRecordSource,
  Tokenize,
} from '../../src/inputs/index.js';
import { temporaryDirectory } from '../command.js';
import { shorts, wavOf } from './audio/sounds.js';

const directory = temporaryDirectory();

function fileOf(name: string, contents: string | Uint8Array): string {
  const path = join(directory, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, contents);
  return path;
}

const even = configurable(
  () => (example: Example) => {
    if ((example.n as number) % 2 === 1) throw new InputError('n is odd');
    return example;
  },
  {},
  { name: 'even' },
);

/** Lines of the numbers below `count`; every third is cut off, as is the line behind the last. */
function numbersFile(name: string, count: number): string {
  const lines = Array.from({ length: count }, (_, n) => JSON.stringify({ targets: `${n}.`, n }));
  return fileOf(name, lines.map((line, n) => `${n % 3 === 2 ? line.slice(0, 9) : line}\n`).join(''));
}

type Fields = Partial<Parameters<typeof SeqioInput.config>[0]>;

function seqio(
  file: string,
  fields: Fields = {},
  preprocessors: Config<Tokenize>[] = [],
): Config<SeqioInput> {
  const feature = Feature.config({ tokenizer: ByteTokenizer.config(), addEos: false });
  return SeqioInput.config({
    mixtureOrTask: Task.config({
      source: JsonLinesSource.config({ files: [file] }),
      preprocessors: [...preprocessors, Tokenize.config(), AppendEos.config()],
      features: { targets: feature },
    }),
    ...{ splitName: 'all', taskFeatureLengths: { targets: 4 }, batchSize: 2, onError: 'skip' as const },
    ...fields,
  });
}

const packed = {
  featureConverter: LanguageModelFeatures.config({ pack: true }),
  packingRows: 3,
  numLanes: 2,
};

/** The texts of a batch's rows. */
const textsOf = (batch: Awaited<ReturnType<typeof nextBatch>>): string[] => {
  const { labels, weights } = batch as unknown as Record<string, { data: Float32Array; shape: number[] }>;
  const [rows, length] = labels!.shape as [number, number];
  return Array.from({ length: rows }, (_, b) =>
    Array.from({ length }, (_, i) => b * length + i)
      .filter((i) => weights!.data[i] === 1)
      .map((i) => String.fromCharCode(labels!.data[i]!))
      .join(''),
  );
};

async function textsIn(input: InputSource, batches = Number.POSITIVE_INFINITY): Promise<string[]> {
  const texts: string[] = [];
  for (let t = 0; t < batches; t++) {
    const batch = await nextBatch(input);
    if (batch === undefined) break;
    texts.push(...textsOf(batch));
  }
  return texts;
}

test('where an example is a row, the row of a broken one is padding, and all others are where they would be', async () => {
  const file = numbersFile('rows.jsonl', 7);
  const input = build(seqio(file));
  await input.peek();
  const ids: number[] = [];
  const texts: string[] = [];
  for (let batch = await nextBatch(input); batch; batch = await nextBatch(input)) {
    texts.push(...textsOf(batch));
    ids.push(...(batch.exampleIds!.data as Int32Array));
  }
  expect(texts).toEqual(['0.', '1.', '', '3.', '4.', '', '6.', '']);
  expect(ids).toEqual([0, 1, -1, 3, 4, -1, 6, -1]);
  expect(input.skipped.take()).toEqual({
    count: 2,
    first: [3, 6].map((line) => expect.stringContaining(`${file}:${line}: not JSON: `)),
  });
  expect(input.skipped.take()).toEqual({ count: 0, first: [] });
});

test('what preprocessors refuse and what is no text is left out; nothing is where onError is fail', async () => {
  const file = numbersFile('odd.jsonl', 5);
  const steps = [even.config() as never];
  const input = build(seqio(file, packed, steps));
  expect((await textsIn(input)).join('')).toBe('0.4.');
  expect(input.skipped.take()).toEqual({
    count: 3,
    first: [`${file}:2: n is odd`, expect.stringContaining(`${file}:3: not JSON: `), `${file}:4: n is odd`],
  });
  await expect(build(seqio(file, { onError: 'fail' }, steps)).getNext()).rejects.toThrow(
    `SeqioInput 'input': ${file}:2: n is odd`,
  );
  await expect(build(seqio(file, { ...packed, onError: 'fail' }, steps)).getNext()).rejects.toThrow(
    `SeqioInput 'input': ${file}:2: n is odd`,
  );
  const lines = fileOf('latin1.txt', Uint8Array.of(49, 10, 233, 10, 50, 10));
  const x = { x: NumberFeature.config({ columns: 'text' }) };
  const source = TextLinesSource.config({ files: [lines] });
  const records = build(
    RecordInput.config({ source, features: x, split: 'all', batchSize: 3, onError: 'skip' }),
  );
  const batch = await records.getNext();
  expect([batch.x!.data, batch.weights!.data]).toEqual([Float32Array.of(1, 0, 2), Float32Array.of(1, 0, 1)]);
  expect(records.skipped.take()).toEqual({
    count: 1,
    first: [`${lines}:2, byte 2: the text is not UTF-8.`],
  });
});

test.each<[string, Fields]>([
  ['rows', {}],
  ['lanes', packed],
])(
  '%s: a run that is resumed after any batch counts what one without an end counts',
  async (name, fields) => {
    const config = seqio(numbersFile(`resumed-${name}.jsonl`, 20), { ...fields, isTraining: true });
    const whole = build(config);
    const counts: number[] = [];
    const texts: string[][] = [];
    let state = whole.getState();
    for (let t = 0; t < 25; t++) {
      if (t % 4 === 0) await whole.peek();
      texts.push(await textsIn(whole, 1));
      counts.push(whole.skipped.take().count);
      const resumed = build(config);
      resumed.setState(state);
      expect([await textsIn(resumed, 1), resumed.skipped.take().count]).toEqual([texts[t], counts[t]]);
      state = whole.getState();
    }
    expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(10);
  },
);

test.each<[string, Fields]>([
  ['rows', {}],
  ['lanes', packed],
])('%s: threads give the batches and the count of the input itself', async (name, fields) => {
  const config = seqio(numbersFile(`threads-${name}.jsonl`, 50), {
    ...{ ...fields, isTraining: true, prefetchBatches: 2, numWorkers: 2 },
  });
  const [ahead, plain] = [openInput(config), build(config)];
  const sums = [0, 0];
  const deadline = Date.now() + 30_000;
  for (let left = 20; left > 0; ) {
    expect(await ahead.getNext()).toEqual(await plain.getNext());
    for (const [i, input] of [ahead, plain].entries()) sums[i]! += input.skipped.take().count;
    expect(sums[0]).toBe(sums[1]);
    if ((ahead as unknown as { readers: number }).readers === 2) left--;
    else await sleep(20);
    expect(Date.now()).toBeLessThan(deadline);
  }
  expect(sums[0]).toBeGreaterThan(5);
  await ahead.close();
});

test.each<[string, Fields]>([
  ['rows', {}],
  ['lanes', packed],
])('%s: data without an example that can be read is an error', async (name, fields) => {
  const file = fileOf(`none-${name}.jsonl`, '{\n'.repeat(30));
  const input = build(seqio(file, { ...fields, isTraining: true }));
  await expect(textsIn(input, 2000)).rejects.toThrow(
    /^SeqioInput 'train': \d+ examples in a row are broken, too many for onError 'skip'\. The first: .*: not JSON: /,
  );
});

/** Which of 2,400 records are broken, and the number of them. */
const patterns = {
  'every other one': [(i: number) => i % 2 === 0, 1200],
  '999 in a row, twice': [(i: number) => i % 1200 < 999, 1998],
  '1,000 in a row': [(i: number) => i < 1000, null],
} as const;
type Pattern = keyof typeof patterns;
const records = configurable(
  function* records({ pattern }: { pattern: Pattern }) {
    for (let i = 0; i < 2400; i++) yield { x: patterns[pattern][0](i) ? 'none' : i };
  },
  { pattern: z.enum(Object.keys(patterns) as [Pattern]) },
);
const readers: Record<string, (pattern: Pattern) => Config<BaseInput>> = {
  RecordInput: (pattern) => RecordInput.config({ source: records.config({ pattern }), ...numbersOf }),
  StreamInput: (pattern) => StreamInput.config({ records: records.partial({ pattern }), ...numbersOf }),
  SeqioInput: (pattern) => {
    const lines = Array.from({ length: 2400 }, (_, i) =>
      patterns[pattern][0](i) ? '{' : '{"targets": "1."}',
    );
    const file = fileOf(`${pattern}.jsonl`, `${lines.join('\n')}\n`);
    return seqio(file, { ...packed, taskFeatureLengths: { targets: 3 }, batchSize: 600 });
  },
};
const numbersOf = {
  features: { x: NumberFeature.config({ columns: 'x' }) },
  ...{ split: 'all' as const, batchSize: 600, onError: 'skip' as const },
};

test.each(
  Object.keys(readers).flatMap((reader) =>
    (Object.keys(patterns) as Pattern[]).map((pattern) => [reader, pattern] as const),
  ),
)(
  '%s with broken records, %s: 1,000 without a whole one between them are too many',
  async (reader, pattern) => {
    const input = build(readers[reader]!(pattern));
    const broken = patterns[pattern][1];
    // Twice, and after a part of the first time.
    await nextBatch(input).catch(() => undefined);
    for (let time = 0; time < 2; time++) {
      input.reset();
      input.skipped.take();
      const read = async () => {
        while ((await nextBatch(input)) !== undefined);
      };
      if (broken === null)
        await expect(read()).rejects.toThrow(
          /1000 examples in a row are broken, too many for onError 'skip'\. The first: .*(record 0|:1): /,
        );
      else {
        await read();
        expect(input.skipped.take().count).toBe(broken);
      }
    }
  },
);

test('a file that vanishes is never left out', async () => {
  const file = numbersFile('gone.jsonl', 9);
  const inputs = [seqio(file), seqio(file, packed)].map((config) => build(config));
  for (const input of inputs) input.getState();
  rmSync(file);
  for (const input of inputs)
    await expect(input.getNext()).rejects.toThrow(
      `${file}, byte 0: the file vanished while it was being read.`,
    );
});

const png = (level: number) =>
  encodePng({ height: 2, width: 2, channels: 1, data: new Uint8Array(4).fill(level) });

test('damaged images and sounds; an image whose partner is damaged stays unmixed', async () => {
  fileOf('photos/a/1.png', png(100));
  const damaged = fileOf('photos/b/2.png', png(50).slice(0, 40));
  const images = (fields: Partial<Parameters<typeof ImageInput.config>[0]>) =>
    build(
      ImageInput.config({
        source: ImageFolder.config({ directory: join(directory, 'photos') }),
        ...{ height: 2, width: 2, channels: 1, split: 'all', batchSize: 2, onError: 'skip', ...fields },
      }),
    );
  const input = images({});
  expect((await input.getNext()).weights!.data).toEqual(Float32Array.of(1, 0));
  expect(input.skipped.take()).toEqual({
    count: 1,
    first: [expect.stringContaining(`${damaged} is a damaged PNG`)],
  });
  const mixed = images({
    mixings: [Mixup.config({ probability: 1 })],
    numClasses: 2,
    augmentsEvaluation: true,
  });
  for (let seed = 0; seed < 3; seed++) {
    mixed.reset();
    const { labels, weights } = await mixed.getNext();
    expect([labels!.data, weights!.data]).toEqual([Float32Array.of(1, 0, 0, 0), Float32Array.of(1, 0)]);
    expect(mixed.skipped.take().count).toBe(1);
  }
  rmSync(damaged);
  input.reset();
  await expect(input.peek()).rejects.toThrow(`ImageInput 'input': ${damaged} cannot be read: ENOENT`);
});

test('streams leave broken records out altogether, and count them once wherever a run is resumed', async () => {
  const some = configurable(
    function* some({ count }: { count: number }) {
      for (let x = 0; x < count; x++) yield { x: x % 4 === 1 ? 'none' : x };
    },
    { count: z.int() },
  );
  const config = StreamInput.config({
    ...{ records: some.partial({ count: 10 }), features: { x: NumberFeature.config({ columns: 'x' }) } },
    ...{ split: 'all', batchSize: 2, onError: 'skip', isTraining: true, shuffleBufferSize: 2 },
  });
  const whole = build(config);
  let state = whole.getState();
  let count = 0;
  for (let t = 0; t < 7; t++) {
    const batch = await whole.getNext();
    const resumed = build(config);
    resumed.setState(state);
    expect(await resumed.getNext()).toEqual(batch);
    const { count: more } = whole.skipped.take();
    expect(resumed.skipped.take().count).toBe(more);
    count += more;
    state = whole.getState();
  }
  expect(count).toBe(6);
});

test('damaged sounds; inputs that read others count what these leave out', async () => {
  const sound = wavOf(shorts([0.1, 0.2, 0.3, 0.4]));
  fileOf('words/a/1.wav', sound);
  const damaged = fileOf('words/b/2.wav', sound.slice(0, 30));
  const sounds = AudioInput.config({
    ...{ directory: join(directory, 'words'), numSamples: 4, split: 'all', batchSize: 1, onError: 'skip' },
    features: LogMel.config({ sampleRate: 16_000, numMels: 2, fftSize: 16, windowSize: 4, hopSize: 2 }),
  });
  const rebatched = build(RebatchedInput.config({ input: sounds, batchSize: 2 }));
  await rebatched.peek();
  expect((await rebatched.getNext()).weights!.data).toEqual(Float32Array.of(1, 0));
  expect(rebatched.skipped.take()).toEqual({
    count: 1,
    first: [expect.stringContaining(`${damaged} is not a readable WAV file`)],
  });
  const numbers = seqio(numbersFile('multi.jsonl', 6), { batchSize: 1 });
  const both = MultiInput.config({ inputs: { sounds, numbers }, batchSize: 1, isTraining: true });
  const multi = build(both);
  for (let t = 0; t < 6; t++) {
    await multi.peek();
    await multi.getNext();
  }
  expect(multi.skipped.take().count).toBe(3 + 2);
});

test('rows of CSV files whose values are none are left out', async () => {
  const file = fileOf('some.csv', 'x\n1\nno\n3\n');
  const input = build(
    RecordInput.config({
      source: CsvSource.config({ files: [file] }),
      features: { x: NumberFeature.config({ columns: 'x' }) },
      ...{ split: 'all', batchSize: 3, isTraining: true, onError: 'skip' },
    }),
  );
  for (let epoch = 0; epoch < 3; epoch++) {
    const { x, weights } = (await input.getNext()) as unknown as Record<string, { data: Float32Array }>;
    expect([[...x!.data].sort(), [...weights!.data].sort()]).toEqual([
      [0, 1, 3],
      [0, 1, 1],
    ]);
    expect(input.skipped.take()).toEqual({
      count: 1,
      first: [`${file}:3: feature 'x', column 'x': expected a number, got "no"`],
    });
  }
});

test('a TFRecord whose checksum differs is left out, the others are read', async () => {
  const frame = (text: string, flip = 0) => {
    const data = Buffer.from(text);
    const [head, tail] = [Buffer.alloc(12), Buffer.alloc(4)];
    head.writeUInt32LE(data.length);
    head.writeUInt32LE(maskedCrc32c(head.subarray(0, 8)), 8);
    tail.writeUInt32LE((maskedCrc32c(data) ^ flip) >>> 0);
    return Buffer.concat([head, data, tail]);
  };
  const file = fileOf('some.tfrecord', Buffer.concat([frame('7'), frame('8', 1), frame('9')]));
  const input = build(
    RecordInput.config({
      source: TfRecordSource.config({ files: [file] }),
      features: { data: ArrayFeature.config({ column: 'data', shape: [1] }) },
      ...{ split: 'all', batchSize: 3, onError: 'skip' },
    }),
  );
  const { data, weights } = await input.getNext();
  expect([data!.data, weights!.data]).toEqual([Float32Array.of(55, 0, 57), Float32Array.of(1, 0, 1)]);
  expect(input.skipped.take()).toEqual({
    count: 1,
    first: [`${file}, byte 17: record 1 is damaged: the CRC-32C of its 1 bytes differs from the file's.`],
  });
});
