/** @file Rows of an input in other batches: of any size, over any number of hosts, to the same end on all of them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config } from '../../src/hparams/index.js';
import {
  BaseInput,
  type Batch,
  EndOfData,
  type InputState,
  nextBatch,
  RebatchedInput,
} from '../../src/inputs/index.js';

/** The numbers from 1 to `count` in order, on whatever host; the last batch is as long as what is left. */
class Numbers extends BaseInput.with({ count: z.int().min(0) }) {
  #next = 0;
  override async getNext(): Promise<Batch> {
    const { count, batchSize } = this.hp;
    if (this.#next >= count) throw new EndOfData(this.name);
    const numbers = Array.from({ length: Math.min(batchSize, count - this.#next) }, () => ++this.#next);
    const paddings = new Float32Array(numbers.length);
    return {
      x: { shape: [numbers.length], dtype: 'int32', data: Int32Array.from(numbers) },
      outer: { paddings: { shape: [numbers.length], dtype: 'float32', data: paddings } },
    };
  }
  override batchSpecs() {
    const shape = [this.hp.batchSize];
    return { x: { shape, dtype: 'int32' }, outer: { paddings: { shape, dtype: 'float32' } } } as const;
  }
  override reset(): void {
    this.#next = 0;
  }
  override getState(): InputState {
    return { next: this.#next };
  }
  override setState(state: InputState): void {
    this.#next = state.next as number;
  }
}

const config = (count: number, inner: number, more: Partial<Config<RebatchedInput>>) =>
  RebatchedInput.config({
    name: 'again',
    batchSize: 4,
    input: Numbers.config({ count, batchSize: inner }),
    ...more,
  });

const numbers = (batch: Batch) => [...(batch.x as { data: Int32Array }).data];
const paddings = (batch: Batch) => [...((batch.outer as Batch).paddings as { data: Float32Array }).data];

async function all(input: BaseInput): Promise<number[][]> {
  const batches: number[][] = [];
  for (let batch = await nextBatch(input); batch; batch = await nextBatch(input))
    batches.push(numbers(batch));
  return batches;
}

test('rows keep their order in batches of another size; the last is padded, or dropped', async () => {
  const padded = build(config(10, 3, {}));
  expect(padded.batchSpecs()).toMatchObject({ x: { shape: [4] } });
  expect(await all(padded)).toEqual([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
    [9, 10, 0, 0],
  ]);
  padded.reset();
  const [, , last] = [await padded.getNext(), await padded.getNext(), await padded.getNext()];
  expect(paddings(last)).toEqual([0, 0, 1, 1]);
  expect(await all(build(config(10, 3, { surplus: 'drop' })))).toEqual([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ]);
});

test('hosts share the rows and end together, and a run goes on from any batch', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        count: fc.integer({ min: 0, max: 40 }),
        inner: fc.integer({ min: 1, max: 9 }),
        batchSize: fc.integer({ min: 1, max: 7 }),
        numInfeedHosts: fc.integer({ min: 1, max: 8 }),
        surplus: fc.constantFrom('pad' as const, 'drop' as const),
        stop: fc.nat(5),
      }),
      async ({ count, inner, batchSize, numInfeedHosts, surplus, stop }) => {
        const hosts = Array.from({ length: numInfeedHosts }, (_, infeedHostIndex) =>
          config(count, inner, { batchSize, numInfeedHosts, infeedHostIndex, surplus }),
        );
        const read = await Promise.all(hosts.map((host) => all(build(host))));
        const global = batchSize * numInfeedHosts;
        const steps = surplus === 'pad' ? Math.ceil(count / global) : Math.floor(count / global);
        expect(read.map((batches) => batches.length)).toEqual(hosts.map(() => steps));
        const rows = Array.from({ length: steps }, (_, step) =>
          read.flatMap((batches) => batches[step]!),
        ).flat();
        const expected = Array.from({ length: steps * global }, (_, i) => (i < count ? i + 1 : 0));
        expect(rows).toEqual(expected);

        const before = build(hosts[0]!);
        for (let i = 0; i < Math.min(stop, steps); i++) await before.getNext();
        const after = build(hosts[0]!);
        after.setState(JSON.parse(JSON.stringify(before.getState())));
        expect(await all(after)).toEqual(read[0]!.slice(Math.min(stop, steps)));
      },
    ),
  );
});

test('a state of something else is refused', () => {
  expect(() => build(config(3, 1, {})).setState({ position: 3 })).toThrow(
    "Input 'again': expected a state with that of the input and the rows taken of a batch, got {}.",
  );
});
