/** @file Steps: one or several a call, the same bits; batches that are not as the others; the end of the data. */
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { type Batch, EndOfData, type InputSource } from '../../src/inputs/index.js';
import { LanguageModel, type TensorBatch } from '../../src/models/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { longTest } from '../longTest.js';
import { tinyTraining, tokens } from './tinyTraining.js';

/** An input that ends after so many batches, with a NaN among the weights of batch number `bad`, counted from 0. */
function limited(batches: number, bad = -1): InputSource {
  const input = tokens();
  const getNext = input.getNext.bind(input);
  let given = 0;
  input.getNext = async (): Promise<Batch> => {
    if (given === batches) throw new EndOfData(input.name);
    const batch = await getNext();
    const { weights } = batch as unknown as { weights: { data: Float32Array } };
    if (given++ === bad) weights.data[5] = Number.NaN;
    return batch;
  };
  return input;
}

/** Looks up the token behind each one: an index that the program works out. */
class Shifted extends LanguageModel {
  override fprop(batch: TensorBatch): ReturnType<LanguageModel['fprop']> {
    const ids = tf.add(batch.ids as Tensor, tf.scalar(1, 'int32'));
    return super.fprop({ ...batch, ids });
  }
}

/** Tokens that have one behind them, but for the last one of row 2 in batch number `bad`, counted from 0. */
function shiftable(bad: number): InputSource {
  const input = tokens();
  const getNext = input.getNext.bind(input);
  let given = 0;
  input.peek = getNext;
  input.getNext = async (): Promise<Batch> => {
    const batch = await getNext();
    const { ids } = batch as unknown as { ids: { data: Int32Array } };
    ids.data.forEach((id, i) => {
      ids.data[i] = Math.min(id, 62);
    });
    if (given++ === bad) ids.data[47] = 63;
    return batch;
  };
  return input;
}

test.each(['native', 'onnx', 'eager'] as const)(
  '%s: an index that a step works out is told after the steps that came before, which are whole',
  async (engine) => {
    const opened = (bad: number) => tinyTraining(engine, 2, { input: shiftable(bad), Model: Shifted });
    const [{ program, state }, sound] = [await opened(5), await opened(-1)];
    for (let step = 0; step < 5; step++) await sound.program.run();
    const most = Math.min(7, program.mostSteps);
    while (state.step + most <= 5) await program.runSteps(most);
    if (state.step < 5) expect(await program.runSteps(most)).toHaveLength(5);
    await expect(program.runSteps(1)).rejects.toThrow(
      /^Input 'train', step 6: indices\[2,15\] worked out from its batch, 64 is not one of the 64 rows of float32\[64,16\], 0 to 63 \(in layer 'lm\/.*'\)\.$/,
    );
    expect(state.step).toBe(5);
    expect(program.isWhole).toBe(true);
    expect(program.inputState).toEqual(sound.program.inputState);
    expect(state.params).toEqual(sound.state.params);
    expect(state.slots).toEqual(sound.state.slots);
  },
);

test.each([['onnx', 1], ...(hasCompiler ? [['native', 1] as const, ['native', 2] as const] : [])] as const)(
  'steps are the same, one or several a call, on %s and %i threads, also where one is left out',
  async (engine, threads) => {
    const opened = () => tinyTraining(engine, threads, { input: limited(12, 6) });
    const [one, several] = [await opened(), await opened()];
    const expected = [];
    for (let step = 0; step < 12; step++) expected.push(await one.program.run());
    const reports = [];
    for (const count of [1, 3, 7, 1]) reports.push(await several.program.runSteps(count));
    expect(reports.map(({ length }) => length)).toEqual([1, 3, 7, 1]);
    expect(reports.flat()).toEqual(expected);
    expect(expected.map(({ update }) => update.isValidStep)).toEqual([1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1]);
    expect(several.state.params).toEqual(one.state.params);
    expect(several.state.slots).toEqual(one.state.slots);
    expect(several.program.updater.gradNorms()).toEqual(one.program.updater.gradNorms());
    expect(several.state.step).toBe(12);
  },
);

describe.skipIf(!hasCompiler)('steps of machine code', () => {
  test.each(['float32', 'bfloat16'] as const)(
    'in %s are the same on any number of threads',
    async (fpropDtype) => {
      const trained = async (threads: number) => {
        const { program, state } = await tinyTraining('native', threads, { fpropDtype });
        const reports = await program.runSteps(3);
        return { reports, params: state.params, slots: state.slots };
      };
      const expected = await trained(1);
      expect(new Set(expected.reports.map(({ loss }) => loss)).size).toBe(3);
      for (const threads of [2, 4]) expect(await trained(threads), `${threads} threads`).toEqual(expected);
    },
  );

  test('go on to the end of the data; only then it is an error', async () => {
    const { program, state } = await tinyTraining('native', 2, { input: limited(5) });
    expect(await program.runSteps(3)).toHaveLength(3);
    expect(await program.runSteps(3)).toHaveLength(2);
    expect(state.step).toBe(5);
    await expect(program.runSteps(3)).rejects.toThrow(
      "Input 'train' has no more data at step 5, and training reads its data over and over. Set repeat=true of the input, " +
        'let an input of your own start over, or end the training here: --set task.train.numTrainSteps=5.',
    );
  });

  longTest('are at most as many a call as there is memory for', async () => {
    // 9 rows of 16 tokens; what a model does not read may be large.
    const ofMegabytes = (size: number): InputSource => {
      const input = tokens();
      const add = async (batch: Promise<Batch>): Promise<Batch> => ({
        ...(await batch),
        extra: { shape: [size << 18], dtype: 'float32', data: new Float32Array(size << 18) },
      });
      const { getNext, peek } = input;
      input.getNext = () => add(getNext.call(input));
      input.peek = () => add(peek.call(input));
      return input;
    };
    const most = async (input: InputSource) => (await tinyTraining('native', 2, { input })).program.mostSteps;
    expect([await most(ofMegabytes(5)), await most(ofMegabytes(100))]).toEqual([3, 1]);
    const { program } = await tinyTraining('native', 2);
    expect(program.mostSteps).toBe(16);
    const timely = [undefined, 1e-4, 0.03, 0.2].map((seconds) => program.timelySteps(seconds));
    expect(timely).toEqual([1, 16, 3, 1]);
    await expect(program.runSteps(17)).rejects.toThrow('17 steps at once, and the program takes 1 to 16');
  });
});
