/** @file Fingerprints of inputs: rows far from the beginning and at the end, states, hosts, text, the thread that reads ahead. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Config, classOf } from '../../../src/hparams/index.js';
import {
  type BaseInput,
  type InputState,
  type LmBatch,
  SyntheticLmInput,
  TextInput,
} from '../../../src/inputs/index.js';
import { digest } from '../../../src/review/fingerprints/digests.js';
import { inputDigest, readingAhead } from '../../../src/review/fingerprints/inputFingerprint.js';
import { temporaryDirectory } from '../../command.js';

const corpus = join(temporaryDirectory(), 'corpus.txt');
writeFileSync(corpus, 'The quick brown fox jumps over the lazy dog.\n'.repeat(20));

/** Rows and text as they are: classes of this file, which may have other names. */
class Rows extends SyntheticLmInput {}
class Words extends TextInput {}
/** Rows that are others from some row on. */
class Later extends SyntheticLmInput {
  protected override fillRow(row: number, batch: LmBatch, b: number): void {
    super.fillRow(row < 29_000 ? row : row + 1, batch, b);
  }
}
/** Rows that are others in the last batch of 600. */
class AtEnd extends SyntheticLmInput {
  protected override fillRow(row: number, batch: LmBatch, b: number): void {
    super.fillRow(row < 599 ? row : 0, batch, b);
  }
}
/** Another batch fewer than the data has. */
class Shorter extends SyntheticLmInput {
  protected override get numRows(): number {
    return super.numRows - 1;
  }
}
/** A state that is a row too far. */
class Ahead extends SyntheticLmInput {
  override getState(): InputState {
    const { position, ...state } = super.getState();
    return { ...state, position: Number(position) + 1 };
  }
}
/** A first batch that comes once. */
class Forgetful extends SyntheticLmInput {
  override reset(): void {}
}
/** The same rows for each host. */
class Unsharded extends SyntheticLmInput {
  protected override fillRow(row: number, batch: LmBatch, b: number): void {
    super.fillRow(this.hp.infeedHostIndex === 0 ? row : b, batch, b);
  }
}
/** Text in capitals. */
class Loud extends TextInput {
  override idsToStrings(...given: Parameters<TextInput['idsToStrings']>): string[] {
    return super.idsToStrings(...given).map((text) => text.toUpperCase());
  }
}
/** Text that cannot be shown. */
class Speechless extends TextInput {
  override idsToStrings(): string[] {
    throw new Error('no words');
  }
}
/** For another reason. */
class Tired extends TextInput {
  override idsToStrings(): string[] {
    throw new Error('too late');
  }
}

const tokens = { batchSize: 2, seqLen: 4, vocabSize: 9 };
const training = { ...tokens, isTraining: true };
const text = { files: [corpus], batchSize: 2, seqLen: 16, isTraining: true };

test.each<[string, Config<BaseInput>, Config<BaseInput>]>([
  ['rows of a later epoch', Rows.config(training), Later.config(training)],
  ['the end', Rows.config({ ...tokens, numBatches: 300 }), AtEnd.config({ ...tokens, numBatches: 300 })],
  ['rows', Rows.config({ ...tokens, numBatches: 300 }), Shorter.config({ ...tokens, numBatches: 300 })],
  ['the state', Rows.config(training), Ahead.config(training)],
  ['the first batch once more', Rows.config(training), Forgetful.config(training)],
  [
    'another host',
    Rows.config({ ...training, numInfeedHosts: 3 }),
    Unsharded.config({ ...training, numInfeedHosts: 3 }),
  ],
  ['ids as text', Words.config(text), Loud.config(text)],
  ['why ids are no text', Speechless.config(text), Tired.config(text)],
])('%s', async (_, config, changed) => {
  // The name of the class alone would make another digest.
  for (const cls of [config, changed].map(classOf)) Object.defineProperty(cls, 'name', { value: 'Input' });
  const [first, second, other] = [
    await inputDigest(config),
    await inputDigest(config),
    await inputDigest(changed),
  ];
  expect(first).toEqual({ hash: expect.any(String), given: expect.any(String), rows: expect.any(Object) });
  expect(second).toEqual(first);
  expect(other).toEqual({ hash: expect.any(String), given: expect.any(String), rows: expect.any(Object) });
  expect(other.hash).not.toBe(first.hash);
});

test('rows are told by their places in batches as jobs read them, and data is opened twice at most', async () => {
  let opened = 0;
  class Placed extends SyntheticLmInput {
    protected override fillRow(row: number, batch: LmBatch, b: number): void {
      if (row === 0) opened++;
      super.fillRow(b === 6 ? row + 1 : row, batch, b);
    }
  }
  const [first, other] = [
    await inputDigest(Rows.config({ ...training, batchSize: 8 })),
    await inputDigest(Placed.config({ ...training, batchSize: 8 })),
  ];
  const differing = Object.keys(first.rows!).filter((row) => first.rows![row]![0] !== other.rows![row]![0]);
  expect(differing).toEqual(['row 6']);
  expect(Object.keys(first.rows!).slice(0, 12)).toEqual(Array.from({ length: 12 }, (_, row) => `row ${row}`));
  // The first row is read at the beginning, after a reset, and for the rows that are shown; once more of whole batches.
  expect(opened).toBe(4);
  opened = 0;
  await inputDigest(Placed.config({ ...training, batchSize: 4 }));
  expect(opened).toBe(3);
});

test('rows behind the first ones are told where they are read', async () => {
  const differing = async (config: Config<BaseInput>, changed: Config<BaseInput>) => {
    const [{ rows: before }, { rows: after }] = [await inputDigest(config), await inputDigest(changed)];
    return Object.keys(before!).filter((row) => before![row]![0] !== after![row]![0]);
  };
  const ending = { ...tokens, numBatches: 300 };
  expect(await differing(Rows.config(ending), AtEnd.config(ending))).toEqual(['row 599']);
  expect(await differing(Rows.config(training), Later.config(training))).toEqual([
    ...['row 30011', 'row 30012', 'row 1000003', 'row 1000004'],
  ]);
});

test('a class of the same name that gives the same is the same', async () => {
  class Same extends SyntheticLmInput {}
  Object.defineProperty(Same, 'name', { value: SyntheticLmInput.name });
  expect(await inputDigest(Same.config(training))).toEqual(
    await inputDigest(SyntheticLmInput.config(training)),
  );
});

test('a corpus that is not there is not compared', async () => {
  const { hash, notCompared } = await inputDigest(TextInput.config({ ...text, files: ['no/such.txt'] }));
  expect(hash).toBeUndefined();
  expect(notCompared).toMatch(/^InputError: TextInput 'train': No file matches 'no\/such\.txt'/);
});

test('batches that the model in training samples are not compared, whatever sizes they may have', async () => {
  class Sampled extends SyntheticLmInput {
    readonly followsTraining = true;
  }
  expect(await inputDigest(Sampled.config({ ...training, batchSize: 64 }))).toEqual({
    failed: ['all'],
    notCompared: "InputError: Sampled 'train' samples its batches from the model in training.",
  });
});

test('only data that may be read ahead depends on the sources of the thread', () => {
  const sources = ['batchTiming', 'ahead/prefetch', 'ahead/prefetchProtocol', 'ahead/prefetchWorker'].map(
    (name) => `src/inputs/${name}.ts`,
  );
  const { notRun } = readingAhead([SyntheticLmInput.config(tokens), SyntheticLmInput.config(training)]);
  expect(notRun).toEqual(
    Object.fromEntries(sources.map((file) => [file, digest(readFileSync(file, 'utf8'))])),
  );
  expect(readingAhead([SyntheticLmInput.config({ ...training, prefetchBatches: 0 })])).toEqual({
    hash: 'none',
  });
});
