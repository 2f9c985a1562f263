/** @file An own input of numbered rows: shuffled and without end in training, in order and once elsewhere. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config } from '../../src/hparams/index.js';
import { type Batch, EndOfData, InputError, RowInput } from '../../src/inputs/index.js';

/** The numbers from 1 to `count`; 0 is padding. */
class Numbers extends RowInput.with({ count: z.int().default(10) }) {
  protected override get numRows(): number {
    return this.hp.count;
  }
  protected override emptyBatch(): Batch {
    const { batchSize } = this.hp;
    return { x: { shape: [batchSize], dtype: 'float32', data: new Float32Array(batchSize) } };
  }
  protected override fillRow(row: number, batch: Batch, b: number): void {
    (batch.x as { data: Float32Array }).data[b] = row + 1;
  }
  protected override identity() {
    return { count: this.hp.count };
  }
}

const config = (values: Partial<Config<Numbers>>) =>
  Numbers.config({ name: 'numbers', batchSize: 4, ...values });

async function read(input: Numbers, batches: number): Promise<number[]> {
  const numbers: number[] = [];
  for (let i = 0; i < batches; i++)
    numbers.push(...((await input.getNext()).x as { data: Float32Array }).data);
  return numbers;
}

const rising = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);
const oneToTen = Array.from({ length: 10 }, (_, i) => i + 1);

test('elsewhere than in training rows come in their order, once, and padding fills the last batch', async () => {
  const input = build(config({}));
  expect(input.isEndless).toBe(false);
  expect(await read(input, 3)).toEqual([...oneToTen, 0, 0]);
  await expect(input.getNext()).rejects.toThrow(EndOfData);
  expect(input.getState()).toEqual({ position: 12, count: 10 });
});

test('in training each epoch has every row once, in an order of its own that the seed decides', async () => {
  const input = build(config({ isTraining: true }));
  expect(input.isEndless).toBe(true);
  const numbers = await read(input, 10);
  const epochs = [0, 10, 20, 30].map((start) => numbers.slice(start, start + 10));
  for (const epoch of epochs) expect(rising(epoch)).toEqual(oneToTen);
  expect(new Set(epochs.map(String)).size).toBe(4);
  expect(epochs.map(String)).not.toContain(String(oneToTen));
  expect(await read(build(config({ isTraining: true })), 10)).toEqual(numbers);
  expect(await read(build(config({ isTraining: true, inputRandomSeed: 1 })), 10)).not.toEqual(numbers);
});

test('hosts together read what one host reads, and a run goes on at the next row', async () => {
  const whole = await read(build(config({ isTraining: true })), 6);
  const hosts = [0, 1].map((infeedHostIndex) =>
    build(config({ isTraining: true, batchSize: 2, numInfeedHosts: 2, infeedHostIndex })),
  );
  const shared: number[] = [];
  for (let i = 0; i < 6; i++) for (const host of hosts) shared.push(...(await read(host, 1)));
  expect(shared).toEqual(whole);
  const first = build(config({ isTraining: true }));
  await read(first, 2);
  const second = build(config({ isTraining: true }));
  second.setState(first.getState());
  expect(await read(second, 4)).toEqual(whole.slice(8));
});

test('another seed or number of rows is another order, so a saved position is refused', () => {
  const state = build(config({ isTraining: true })).getState();
  const going = (values: Partial<Config<Numbers>>) => () =>
    build(config({ isTraining: true, ...values })).setState(state);
  expect(going({ inputRandomSeed: 7 })).toThrow(
    "Input 'numbers' cannot resume from the saved state, as its data has changed since: " +
      'shuffleSeed is 7, was 0. Restore the data, or start a new run in another directory.',
  );
  expect(going({ count: 11 })).toThrow(InputError);
  expect(() => build(config({ isTraining: true })).setState({ ...state, order: 'by hand' })).toThrow(
    "Input 'numbers' cannot resume from the saved state, as its data has changed since: " +
      'order is keyed permutation, was by hand. Restore the data, or start a new run in another directory.',
  );
});

test('a state that names no order goes on in that of versions before, until a reset', async () => {
  const { order: _, ...olderState } = build(config({ isTraining: true })).getState();
  const input = build(config({ isTraining: true, batchSize: 5 }));
  input.setState(olderState);
  const older = await read(input, 4);
  expect(older.slice(0, 10)).not.toEqual(older.slice(10));
  for (const epoch of [older.slice(0, 10), older.slice(10)]) expect(rising(epoch)).toEqual(oneToTen);
  const state = input.getState();
  expect(state.order).toBe('Fisher-Yates');
  const next = await read(input, 2);
  const other = build(config({ isTraining: true, batchSize: 5 }));
  other.setState(state);
  expect(await read(other, 2)).toEqual(next);
  input.reset();
  expect(input.getState()).toMatchObject({ position: 0, order: 'keyed permutation' });
  expect(await read(input, 4)).not.toEqual(older);
});

test('data without a row ends at once, in training too', async () => {
  await expect(build(config({ count: 0, isTraining: true })).getNext()).rejects.toThrow(
    "Input 'numbers' has no more data.",
  );
});
