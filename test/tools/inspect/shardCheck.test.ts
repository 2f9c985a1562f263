/** @file The check of shards: inputs that share their data well, and those that do not. */
import { expect, test } from 'vitest';
import {
  BaseInput,
  type Batch,
  EndOfData,
  InputError,
  LanguageModelFeatures,
  SyntheticLmInput,
} from '../../../src/inputs/index.js';
import { inspectInput } from '../../../src/tools/inspect/inspection.js';
import { inspectReport } from '../../../src/tools/inspect/inspectReport.js';
import { checkShards } from '../../../src/tools/inspect/shardCheck.js';
import { numbersTask, seqio } from '../../inputs/seqio/corpora.js';

const ALL = Number.POSITIVE_INFINITY;
const good = { surplus: 0, missing: 0, endTogether: true };

test('data that ends: all rows, in the same order, though hosts are padded', async () => {
  const rows = seqio({ mixtureOrTask: numbersTask({ count: 13 }), batchSize: 2 });
  expect(await checkShards(rows, ALL)).toEqual({
    ...{ batches: 7, rows: 13, isWhole: true, repeated: 0, holds: true },
    verdicts: [2, 4].map((hosts) => ({ hosts, ...good, isSameOrder: true })),
  });
});

test('rows that fill no batch of all hosts are missed', async () => {
  const rows = seqio({ mixtureOrTask: numbersTask({ count: 13 }), batchSize: 2, evalAutoPad: false });
  const { holds, verdicts, rows: count } = await checkShards(rows, ALL);
  expect([holds, count]).toEqual([false, 12]);
  expect(verdicts).toMatchObject([
    { hosts: 2, ...good },
    { hosts: 4, ...good, missing: 4 },
  ]);
});

/** Packed rows of training data in lanes. */
const lanes = (numLanes: number) =>
  seqio({
    mixtureOrTask: numbersTask({ count: 40, sizes: [1, 2, 3] }),
    featureConverter: LanguageModelFeatures.config({ pack: true }),
    ...{ isTraining: true, numLanes },
  });

test("lanes: hosts meet after whole rounds, with rows in one host's order", async () => {
  const { holds, batches, isWhole, verdicts } = await checkShards(lanes(16), 5);
  expect({ holds, batches, isWhole }).toEqual({ holds: true, batches: 16, isWhole: false });
  expect(verdicts).toEqual([2, 4].map((hosts) => ({ hosts, ...good, isSameOrder: true })));
});

test('hosts that pass through lanes at different speeds are not compared', async () => {
  const { holds, batches, verdicts } = await checkShards(lanes(6), 5);
  expect([holds, batches]).toEqual([true, 12]);
  expect(verdicts).toMatchObject([
    { hosts: 2, ...good },
    { hosts: 4, skipped: '6 lanes are no multiple of 4, so hosts pass through them at different speeds' },
  ]);
});

test('hosts that cannot read the data fail the check, with the error', async () => {
  class Pair extends SyntheticLmInput.with({}) {
    override async getNext(): Promise<Batch> {
      if (this.hp.numInfeedHosts > 2) throw new InputError(`Input '${this.name}' is for two hosts.`);
      return super.getNext();
    }
  }
  const check = await checkShards(
    Pair.config({ ...{ seqLen: 4, vocabSize: 99, batchSize: 2 }, name: 'pair' }),
    4,
  );
  expect(check.holds).toBe(false);
  expect(check.verdicts).toMatchObject([
    { hosts: 2, ...good },
    { hosts: 4, error: "Input 'pair' is for two hosts." },
  ]);
  const shown = await inspectInput(SyntheticLmInput.config({ seqLen: 4, vocabSize: 99, batchSize: 2 }), {
    ...{ count: 1, batches: 1, shards: 0, pictures: false },
  });
  const { text, exitCode } = inspectReport({
    ...{ experiment: 'own.Own', dataset: { name: 'pair', path: 'datasets[0]' }, length: 4, files: {} },
    inspection: { ...shown, shards: check },
  });
  expect(exitCode).toBe(1);
  expect(text((_, line) => `<${line}>`)).toContain(
    "\n  <4 hosts  CANNOT be read: Input 'pair' is for two hosts.>",
  );
});

test('training without an end: as many batches as are asked for', async () => {
  const endless = SyntheticLmInput.config({ seqLen: 4, vocabSize: 99, batchSize: 2, isTraining: true });
  expect(await checkShards(endless, 8)).toMatchObject({ batches: 8, rows: 16, isWhole: false, holds: true });
  await expect(checkShards(endless, ALL)).rejects.toThrow(
    "--shards=all: dataset 'train' has no end; expected a number of batches.",
  );
});

/** Ten batches of one row, of which every host reads as `first` and `step` say. */
abstract class Counting extends BaseInput.with({}) {
  #t = 0;
  protected abstract row(t: number): number;

  override async getNext(): Promise<Batch> {
    const row = this.row(this.#t++);
    if (row >= 10) throw new EndOfData(this.name);
    return { x: { shape: [1], dtype: 'int32', data: Int32Array.of(row + 1) } };
  }
  override reset(): void {
    this.#t = 0;
  }
  override getState() {
    return { t: this.#t };
  }
  override setState(): void {}
}

/** Every host reads everything. */
class Unsharded extends Counting.with({}) {
  protected override row(t: number): number {
    return t;
  }
}

/** Hosts take turns, and end when their own rows do. */
class Uneven extends Counting.with({}) {
  protected override row(t: number): number {
    return t * this.hp.numInfeedHosts + this.hp.infeedHostIndex;
  }
}

test('finds rows that two hosts read, rows that none reads, and hosts that end apart', async () => {
  const everywhere = await checkShards(Unsharded.config({ batchSize: 1 }), ALL);
  expect(everywhere).toMatchObject({ rows: 10, holds: false });
  // Both read a batch more than half of the data, and are not at its end.
  expect(everywhere.verdicts[0]).toEqual({
    ...{ hosts: 2, surplus: 6, missing: 4, isSameOrder: false, endTogether: false },
  });
  const uneven = await checkShards(Uneven.config({ batchSize: 1 }), ALL);
  expect(uneven.verdicts).toEqual([
    { hosts: 2, ...good, isSameOrder: true },
    { hosts: 4, ...good, isSameOrder: true, endTogether: false },
  ]);
  expect(uneven.holds).toBe(false);
});
