/** @file Classifier-free guidance: against two decodes that are combined by hand, in the step and on the host. */
import { afterAll, expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import { type DecodeOutput, SampleDecoder, Stepper } from '../../src/decoding/index.js';
import { argmax } from '../../src/decoding/sampling.js';
import { build } from '../../src/hparams/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { int32, randomParams } from './randomModels.js';

const [V, SEQLEN] = [17, 24];
const PROMPTS = [
  [3, 9, 14, 2, 7],
  [11, 6],
];

const model = build(
  LanguageModel.config({
    lmTpl: gpt2Lm({ vocabSize: V, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN }),
  }),
) as LanguageModel;
const params = randomParams(model, 2, 3);
const opened: Stepper[] = [];
afterAll(() => Promise.all(opened.map((stepper) => stepper.dispose())));

async function stepperOf(rows: number, rule: SampleDecoder['rule']): Promise<Stepper> {
  const compileOptions = (name: string) => ({ name, numThreads: 1 });
  const stepper = await Stepper.create({ model, params, rows, seqlen: SEQLEN, rule, compileOptions });
  opened.push(stepper);
  return stepper;
}

const fields = { seqlen: SEQLEN, maxDecodeSteps: 12, eosId: [] as number[], temperature: 0 };
const prompts = {
  prefixIds: int32([2, 5], [...PROMPTS[0]!, ...PROMPTS[1]!, 0, 0, 0]),
  prefixLengths: int32([2], [5, 2]),
};

async function decode(config: object, more: object = {}): Promise<DecodeOutput> {
  const decoder = build(SampleDecoder.config({ ...fields, ...config })) as SampleDecoder;
  const stepper = await stepperOf(decoder.numRows(2), decoder.rule);
  return decoder.decode({ ...prompts, ...stepper.calls, ...more, key: prngKey(5) });
}

/** Greedy continuations of the prompts by guided logits, two rows of the model after the other. */
async function byHand(scale: number, unconditional: number[][]): Promise<number[][]> {
  const stepper = await stepperOf(2, null);
  const found: number[][] = [];
  for (const [i, prompt] of PROMPTS.entries()) {
    const both = [prompt, unconditional[i]!];
    stepper.reset();
    const before = both.flatMap((ids) => [...ids.slice(0, -1), 0, 0, 0, 0, 0].slice(0, 5));
    const positions = Int32Array.from(both, ({ length }) => length - 1);
    await stepper.prefill(Int32Array.from(before), 5, positions);
    let current = Int32Array.from(both, (ids) => ids.at(-1)!);
    const drawn: number[] = [];
    for (let step = 0; step < fields.maxDecodeSteps; step++) {
      const logits = await stepper.extendRows(
        current,
        positions.map((position) => position + step),
      );
      const [cond, uncond] = [logits.slice(0, V), logits.slice(V)];
      const id = argmax(uncond.map((value, v) => value + scale * (cond[v]! - value)));
      drawn.push(id);
      current = Int32Array.of(id, id);
    }
    found.push([...prompt, ...drawn]);
  }
  return found;
}

const rowsOf = ({ outputIds, decodeLengths }: DecodeOutput, samples: number): number[][] =>
  Array.from(decodeLengths.data, (length, row) => [
    ...outputIds.data.slice(row * SEQLEN, row * SEQLEN + length),
  ]).filter((_, row) => row % samples === 0);

test('each sample follows its scale; the unconditional prompt is the last token, or another', async () => {
  const last = PROMPTS.map((prompt) => prompt.slice(-1));
  const expected = await byHand(2.5, last);
  const output = await decode({ cfGuidanceScale: [2.5, 1], numSamples: 2, sortSamples: false });
  expect(output.outputIds.shape).toEqual([2, 2, SEQLEN]);
  expect(rowsOf(output, 2)).toEqual(expected);
  const plain = rowsOf(await decode({}), 1);
  expect(output.prefixLengths.data).toEqual(Int32Array.of(5, 5, 2, 2));
  const second = Array.from([1, 3], (row) => [
    ...output.outputIds.data.slice(row * SEQLEN, row * SEQLEN + output.decodeLengths.data[row]!),
  ]);
  expect(second).toEqual(plain);
  expect(expected).not.toEqual(plain);
  const others = [[1], [8, 8, 4]];
  const unconditional = { prefixIds: int32([2, 3], [1, 0, 0, 8, 8, 4]), prefixLengths: int32([2], [1, 3]) };
  expect(rowsOf(await decode({ cfGuidanceScale: -1 }, { unconditional }), 1)).toEqual(
    await byHand(-1, others),
  );
});

test('on the host, rows of a prompt and its unconditional one draw one token, by guided logits', async () => {
  const logitOf = (id: number, row: number, other: number) =>
    3 * Math.sin(1 + id * (other + 2) + 5 * (row % 2));
  const fed: number[][] = [];
  const extendStep = async (ids: Int32Array) => {
    fed.push([...ids]);
    return Float32Array.from({ length: 4 * V }, (_, i) =>
      logitOf(ids[Math.floor(i / V)]!, Math.floor(i / V), i % V),
    );
  };
  const decoder = build(SampleDecoder.config({ ...fields, cfGuidanceScale: 2 })) as SampleDecoder;
  const prefill = async () => {};
  const { outputIds } = await decoder.decode({ ...prompts, extendStep, prefill, key: prngKey(0) });
  let id = PROMPTS[0]!.at(-1)!;
  for (let step = 0; step < fields.maxDecodeSteps; step++) {
    const guided = Float32Array.from({ length: V }, (_, other) => {
      const [cond, uncond] = [0, 1].map((row) => Math.fround(logitOf(id, row, other))) as [number, number];
      return uncond + 2 * (cond - uncond);
    });
    id = argmax(guided);
    expect(outputIds.data[PROMPTS[0]!.length + step]).toBe(id);
  }
  for (const ids of fed.slice(0, -1)) expect([ids[0], ids[2]]).toEqual([ids[1], ids[3]]);
  const wrong = SampleDecoder.config({ ...fields, cfGuidanceScale: [1, 2, 3] });
  const request = { ...prompts, extendStep, prefill, key: prngKey(0) };
  await expect((build(wrong) as SampleDecoder).decode(request)).rejects.toThrow(
    'SampleDecoder.cfGuidanceScale: expected a number or 1, one of each sample, got 3.',
  );
});
