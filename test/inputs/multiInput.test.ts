/** @file Several inputs beside one another: batches by name, larger ones folded, one state, one end. */
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type Batch,
  EndOfData,
  type LmBatch,
  MultiInput,
  SyntheticLmInput,
  specsOf,
} from '../../src/inputs/index.js';

const synthetic = (batchSize: number, more: Partial<Config<SyntheticLmInput>> = {}) =>
  SyntheticLmInput.config({ seqLen: 3, vocabSize: 9, batchSize, ...more });

const config = (more: Partial<Config<MultiInput>> = {}) =>
  MultiInput.config({
    name: 'pair',
    batchSize: 2,
    isTraining: true,
    inputs: { small: synthetic(2), large: synthetic(6, { inputRandomSeed: 1 }) },
    ...more,
  });

const ids = (batch: Batch, name: string) => (batch[name] as LmBatch).ids;

test('a batch has one of each input by its name; one of three times the size has three rows of each row', async () => {
  const input = build(config());
  const batch = await input.getNext();
  const large = build(synthetic(6, { inputRandomSeed: 1, isTraining: true }));
  expect(ids(batch, 'small').shape).toEqual([2, 3]);
  expect(ids(batch, 'large').shape).toEqual([2, 3, 3]);
  expect(ids(batch, 'large').data).toEqual((await large.getNext()).ids!.data);
  expect(specsOf(batch)).toEqual(input.batchSpecs());
});

test('the state is that of every input, and a peek takes nothing', async () => {
  const input = build(config());
  await input.getNext();
  const state = JSON.parse(JSON.stringify(input.getState()));
  expect(state).toMatchObject({ small: { position: 2 }, large: { position: 6 } });
  const peeked = await input.peek();
  const next = await input.getNext();
  expect(peeked).toEqual(next);
  const again = build(config());
  again.setState(state);
  expect(await again.getNext()).toEqual(next);
  expect(() => again.setState({ small: state.small })).toThrow(
    "Input 'pair' cannot resume from the saved state: it lacks large.",
  );
});

test('hosts give their index to every input, and share no row', async () => {
  const hosts = [0, 1].map((infeedHostIndex) => build(config({ numInfeedHosts: 2, infeedHostIndex })));
  const batches = await Promise.all(hosts.map((host) => host.getNext()));
  const one = build(
    config({ batchSize: 4, inputs: { small: synthetic(4), large: synthetic(12, { inputRandomSeed: 1 }) } }),
  );
  const whole = await one.getNext();
  for (const name of ['small', 'large'])
    expect([...batches.flatMap((batch) => [...ids(batch, name).data])]).toEqual([...ids(whole, name).data]);
});

test('the first input to end ends all, and none goes ahead of the others', async () => {
  const input = build(
    config({
      isTraining: false,
      evalLoopNumBatches: 5,
      inputs: { long: synthetic(2, { numBatches: 3 }), short: synthetic(2, { numBatches: 1 }) },
    }),
  );
  await input.getNext();
  const state = input.getState();
  await expect(input.getNext()).rejects.toThrow(EndOfData);
  expect(input.getState()).toEqual(state);
  input.reset();
  expect(input.getState()).toMatchObject({ long: { position: 0 }, short: { position: 0 } });
});

test('what does not fit is refused with its path and the reason', () => {
  const made = (more: Partial<Config<MultiInput>>) => () => build(config(more));
  expect(made({ inputs: { a: synthetic(3) } })).toThrow(
    "MultiInput 'pair': inputs.a.batchSize: expected a multiple of batchSize 2, got 3.",
  );
  expect(made({ defaultInput: 'smal' })).toThrow(
    "MultiInput 'pair': defaultInput: expected one of small, large; got 'smal'.",
  );
  expect(made({ inputs: {} })).toThrow('must name at least one input');
  expect(made({ isTraining: false })).toThrow(
    "MultiInput 'pair': an evaluation to the end of the data reads one input, as inputs end at different batches; got " +
      'small, large. Set evalLoopNumBatches to a number of batches.',
  );
});
