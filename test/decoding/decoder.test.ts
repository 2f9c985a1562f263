/** @file GreedyDecoder and SampleDecoder: prompts, ends of sequences, samples, repeatability. */
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import {
  type DecodeOutput,
  type DecodeRequest,
  type ExtendSampling,
  type ExtendStep,
  GreedyDecoder,
  type Int32Tensor,
  SampleDecoder,
} from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';

const int32 = (shape: number[], ...data: number[]): Int32Tensor => ({
  shape,
  dtype: 'int32',
  data: Int32Array.from(data),
});

/** Prompts of one length each, right-padded. */
function request(prompts: number[][], extendStep: ExtendStep, seed = 0): DecodeRequest {
  const size = Math.max(...prompts.map((prompt) => prompt.length));
  const padded = prompts.flatMap((prompt) => [...prompt, ...new Array<number>(size - prompt.length).fill(9)]);
  return {
    prefixIds: int32([prompts.length, size], ...padded),
    prefixLengths: int32([prompts.length], ...prompts.map((prompt) => prompt.length)),
    extendStep,
    key: prngKey(seed),
  };
}

/** A model that finds ids[step][row] most likely, whatever it is fed; it keeps what it was fed. */
function scripted(ids: number[][], vocabulary = 12) {
  const fed: number[][] = [];
  const extendStep: ExtendStep = async (current, step) => {
    expect(step).toBe(fed.length);
    fed.push([...current]);
    const logits = new Float32Array(current.length * vocabulary);
    for (const [row, id] of ids[step]!.entries()) logits[row * vocabulary + id] = 5;
    return logits;
  };
  return { extendStep, fed };
}

const rowsOf = ({ shape, data }: { shape: readonly number[]; data: ArrayLike<number> }) => {
  const width = shape.at(-1)!;
  return Array.from({ length: data.length / width }, (_, r) =>
    Array.from(data).slice(r * width, (r + 1) * width),
  );
};

test('greedy: the prompt, then the most likely tokens', async () => {
  const { extendStep, fed } = scripted([[1], [3]]);
  const output = await build(GreedyDecoder.config({ seqlen: 3 })).decode(request([[11]], extendStep));
  expect(output.outputIds).toEqual(int32([1, 3], 11, 1, 3));
  expect(output.decodeLengths).toEqual(int32([1], 3));
  expect(output.prefixLengths).toEqual(int32([1], 1));
  expect(output.prefixIds).toEqual(int32([1, 1], 11));
  const logprob = Math.fround(5 - Math.log(Math.exp(5) + 11));
  expect([...output.logprobs.data]).toEqual([1, logprob, logprob]);
  expect(fed).toEqual([[11], [1]]);
});

test('an end-of-sequence token ends its row alone, with zeros behind it', async () => {
  const { extendStep, fed } = scripted([
    [4, 4],
    [2, 5],
    [7, 6],
    [7, 7],
    [7, 8],
  ]);
  const output = await build(GreedyDecoder.config({ seqlen: 6, eosId: 2 })).decode(
    request([[11], [12]], extendStep),
  );
  expect(rowsOf(output.outputIds)).toEqual([
    [11, 4, 2, 0, 0, 0],
    [12, 4, 5, 6, 7, 8],
  ]);
  expect([...output.decodeLengths.data]).toEqual([3, 6]);
  expect([...output.logprobs.data.subarray(3, 6)]).toEqual([1, 1, 1]);
  expect(fed.at(-1)).toEqual([0, 7]);
});

test('decoding ends early once every row has ended', async () => {
  const { extendStep, fed } = scripted([[4], [2]]);
  await build(GreedyDecoder.config({ seqlen: 100 })).decode(request([[11]], extendStep));
  expect(fed).toEqual([[11], [4]]);
});

test('prompts are fed token by token; an end-of-sequence token among them ends nothing', async () => {
  const { extendStep, fed } = scripted([
    [8, 8],
    [8, 8],
    [8, 8],
    [3, 3],
    [2, 4],
  ]);
  const output = await build(GreedyDecoder.config({ seqlen: 6 })).decode(
    request([[2, 2, 2, 3], [5]], extendStep),
  );
  expect(fed.map(([first]) => first)).toEqual([2, 2, 2, 3, 3]);
  expect(rowsOf(output.outputIds)).toEqual([
    [2, 2, 2, 3, 3, 2],
    [5, 8, 8, 8, 3, 4],
  ]);
  expect([...output.decodeLengths.data]).toEqual([6, 6]);
  expect(rowsOf(output.prefixIds)).toEqual([
    [2, 2, 2, 3],
    [5, 0, 0, 0],
  ]);
  expect(rowsOf(output.logprobs)[0]!.slice(0, 4)).toEqual([1, 1, 1, 1]);
});

test('any of several end-of-sequence tokens ends a row, none does where there is none', async () => {
  const ids = [
    [1, 4],
    [5, 2],
    [5, 5],
  ];
  const several = await build(GreedyDecoder.config({ seqlen: 4, eosId: [1, 2] })).decode(
    request([[11], [11]], scripted(ids).extendStep),
  );
  expect([...several.decodeLengths.data]).toEqual([2, 3]);
  const none = await build(GreedyDecoder.config({ seqlen: 4, eosId: [] })).decode(
    request([[11], [11]], scripted(ids).extendStep),
  );
  expect([...none.decodeLengths.data]).toEqual([4, 4]);
});

test('maxDecodeSteps counts from the end of each prompt', async () => {
  const { extendStep } = scripted(new Array(9).fill([7, 7]));
  const output = await build(GreedyDecoder.config({ seqlen: 10, maxDecodeSteps: 2 })).decode(
    request([[5, 6, 5], [5]], extendStep),
  );
  expect(rowsOf(output.outputIds)).toEqual([
    [5, 6, 5, 7, 7, 0, 0, 0, 0, 0],
    [5, 7, 7, 0, 0, 0, 0, 0, 0, 0],
  ]);
  expect([...output.decodeLengths.data]).toEqual([5, 3]);
});

/** A model whose logits depend on the token it is fed. */
const markov: ExtendStep = async (ids) =>
  Float32Array.from(
    { length: ids.length * 12 },
    (_, i) => Math.sin(1 + (i % 12) * (3 + ids[Math.trunc(i / 12)]!)) * 2,
  );

test('sampling with k 1 is greedy in every sample', async () => {
  const greedy = await build(GreedyDecoder.config({ seqlen: 8 })).decode(request([[11], [4]], markov));
  const decoder = build(SampleDecoder.config({ seqlen: 8, k: 1, numSamples: 3 }));
  const sampled = await decoder.decode(request([[11], [4]], markov));
  expect(sampled.outputIds.shape).toEqual([2, 3, 8]);
  expect(sampled.decodeLengths.shape).toEqual([2, 3]);
  const [a, b] = rowsOf(greedy.outputIds);
  expect(rowsOf(sampled.outputIds)).toEqual([a, a, a, b, b, b]);
});

test('sampling with k 2 draws both of the two most likely tokens and no other', async () => {
  const vocabulary = 6;
  const extendStep: ExtendStep = async (ids) =>
    Float32Array.from({ length: ids.length * vocabulary }, (_, i) =>
      i % vocabulary === 3 || i % vocabulary === 5 ? 1 : 0,
    );
  const decoder = build(SampleDecoder.config({ seqlen: 40, k: 2, numSamples: 4 }));
  const { outputIds } = await decoder.decode(request([[0]], extendStep));
  const drawn = rowsOf(outputIds).flatMap((row) => row.slice(1));
  expect([...new Set(drawn)].sort()).toEqual([3, 5]);
});

test('the same key gives the same samples, another key others; samples differ from each other', async () => {
  const decoder = build(SampleDecoder.config({ seqlen: 20, numSamples: 2, eosId: [], sortSamples: false }));
  const first = await decoder.decode(request([[1], [1]], markov, 7));
  expect(await decoder.decode(request([[1], [1]], markov, 7))).toEqual(first);
  expect((await decoder.decode(request([[1], [1]], markov, 8))).outputIds).not.toEqual(first.outputIds);
  expect(new Set(rowsOf(first.outputIds).map(String)).size).toBe(4);
});

test('a row draws the same whatever the other rows are', async () => {
  const decoder = build(SampleDecoder.config({ seqlen: 20, eosId: [] }));
  const pair = await decoder.decode(request([[1], [5, 3]], markov, 3));
  const alone = await decoder.decode(request([[1]], markov, 3));
  expect(rowsOf(pair.outputIds)[0]).toEqual(rowsOf(alone.outputIds)[0]);
});

test('samples are sorted by the log-probability of what was drawn, best first', async () => {
  const options = { seqlen: 12, numSamples: 5 };
  const inputs = () => request([[1], [5, 3]], markov, 5);
  const plain = await build(SampleDecoder.config({ ...options, sortSamples: false })).decode(inputs());
  const sorted = await build(SampleDecoder.config(options)).decode(inputs());
  const scores = (output: typeof plain) =>
    rowsOf(output.logprobs).map((row) => row.reduce((sum, lp) => (lp >= 1 ? sum : sum + lp), 0));
  for (const prompt of [0, 1]) {
    const mine = (all: number[]) => all.slice(prompt * 5, prompt * 5 + 5);
    expect(mine(scores(sorted))).toEqual(mine(scores(plain)).sort((a, b) => b - a));
    expect(mine(scores(plain))).not.toEqual(mine(scores(sorted)));
    const together = (output: typeof plain) =>
      mine([...rowsOf(output.outputIds).keys()]).map((r) =>
        String([rowsOf(output.outputIds)[r], rowsOf(output.logprobs)[r], output.decodeLengths.data[r]]),
      );
    expect(together(sorted).sort()).toEqual(together(plain).sort());
  }
});

test('drawn prompt lengths lie between minPrefixLen and the example', () => {
  const decoder = build(GreedyDecoder.config({ minPrefixLen: 3 }));
  const lengths = int32([200], ...new Array<number>(100).fill(6), ...new Array<number>(100).fill(2));
  const { data, shape } = decoder.drawPrefixLengths(lengths, prngKey(1));
  expect(shape).toEqual([200]);
  expect([...new Set(data.subarray(0, 100))].sort()).toEqual([3, 4, 5, 6]);
  expect([...new Set(data.subarray(100))]).toEqual([2]);
});

test('bad input is named', async () => {
  const none = scripted([]).extendStep;
  await expect(build(GreedyDecoder.config()).decode(request([[1]], none))).rejects.toThrow(
    'GreedyDecoder.seqlen: The sequence length for decoding must be > 0, current value = 0.',
  );
  const decoder = build(GreedyDecoder.config({ seqlen: 2 }));
  await expect(decoder.decode(request([[1], [1, 2, 3]], none))).rejects.toThrow(
    'decode: prompt 1 has 3 tokens; prefixIds has room for 3 and the output (seqlen) for 2.',
  );
  const mismatched = { ...request([[1]], none), prefixLengths: int32([2], 1, 1) };
  await expect(decoder.decode(mismatched)).rejects.toThrow(
    'decode: prefixIds must be [B, P] with P > 0 and prefixLengths [B], got [1, 1] and [2].',
  );
});

test('positions that all prompts have go through prefill at once', async () => {
  const { extendStep, fed } = scripted(Array.from({ length: 20 }, () => [3, 4]));
  const filled: number[][] = [];
  const steps: number[] = [];
  const model = {
    prefill: async (ids: Int32Array, count: number) => {
      expect(count).toBe(9);
      filled.push([...ids]);
    },
    // The model that is scripted counts from 0.
    extendStep: async (ids: Int32Array, step: number) => {
      steps.push(step);
      return extendStep(ids, fed.length);
    },
  };
  const long = Array.from({ length: 12 }, (_, i) => i % 12);
  const short = Array.from({ length: 10 }, (_, i) => 11 - i);
  const decoder = build(GreedyDecoder.config({ seqlen: 14 }));
  const { prefixIds, prefixLengths, key } = request([long, short], extendStep);
  const output = await decoder.decode({ prefixIds, prefixLengths, key, ...model });
  expect(filled).toEqual([[...long.slice(0, 9), ...short.slice(0, 9)]]);
  expect(steps).toEqual([9, 10, 11, 12]);
  expect(fed[0]).toEqual([9, 2]);
  expect(rowsOf(output.outputIds)).toEqual([
    [...long, 3, 3],
    [...short, 4, 4, 4, 4],
  ]);
  expect(rowsOf(output.logprobs)[1]!.slice(0, 10)).toEqual(new Array(10).fill(1));
});

test('prompts of a few tokens, or of no length, do not go through prefill', async () => {
  const { extendStep, fed } = scripted(Array.from({ length: 20 }, () => [3, 4]));
  const prefill = async () => expect.fail('it was called');
  const decoder = build(GreedyDecoder.config({ seqlen: 14 }));
  const asked = request([new Array(12).fill(1), [5]], extendStep);
  await decoder.decode({ ...asked, prefill });
  expect(fed.length).toBe(13);
});

test('a greedy decoder draws several tokens at a time once all prompts have ended', async () => {
  const calls: [step: number, count: number][] = [];
  const extendGreedily = async (ids: Int32Array, step: number, count: number) => {
    calls.push([step, count]);
    const drawn = Array.from({ length: count * ids.length }, (_, i) =>
      // Row 0 ends at position 25, row 1 never.
      i % 2 === 0 && step + Math.trunc(i / 2) + 1 === 25 ? 2 : 6 + (i % 2),
    );
    return { ids: Int32Array.from(drawn), logprobs: Float32Array.from(drawn, (id) => -id) };
  };
  const extendStep = async () => expect.fail('it was called');
  const asked = { ...request([[5, 5, 5], [5]], extendStep), extendGreedily };
  const decoder = build(GreedyDecoder.config({ seqlen: 40 }));
  const output = await decoder.decode(asked);
  expect(calls).toEqual([
    [0, 1],
    [1, 1],
    [2, 16],
    [18, 16],
    [34, 5],
  ]);
  calls.length = 0;
  await build(GreedyDecoder.config({ seqlen: 300 })).decode(asked);
  // As many as there are, up to a limit.
  expect(calls.slice(2)).toEqual([
    [2, 16],
    [18, 16],
    [34, 32],
    [66, 64],
    [130, 64],
    [194, 64],
    [258, 41],
  ]);
  expect([...output.decodeLengths.data]).toEqual([26, 40]);
  const [ended, whole] = rowsOf(output.outputIds);
  expect(ended!.slice(0, 4)).toEqual([5, 5, 5, 6]);
  expect(ended!.slice(24)).toEqual([6, 2, ...new Array(14).fill(0)]);
  expect(whole).toEqual([5, ...new Array(39).fill(7)]);
  expect(rowsOf(output.logprobs)[0]!.slice(24, 28)).toEqual([-6, -2, 1, 1]);
  calls.length = 0;
  await build(GreedyDecoder.config({ seqlen: 40, maxDecodeSteps: 4 })).decode(asked);
  expect(calls).toEqual([
    [0, 1],
    [1, 1],
    [2, 4],
  ]);
  // A program that takes the likeliest tokens draws none for a sampler.
  const { extendStep: logits, fed } = scripted(Array.from({ length: 5 }, () => [3, 4]));
  await build(SampleDecoder.config({ seqlen: 5 })).decode({ ...asked, extendStep: logits });
  expect(fed.length).toBe(4);
});

test('a sampler gives a program that draws the numbers by which it would draw itself', async () => {
  // Logits of two tokens that are as likely: the number decides.
  const even = Float32Array.from({ length: 2 * 10 }, (_, i) => (i % 10 === 3 || i % 10 === 4 ? 0 : -100));
  const extendStep = async () => even;
  const given: Float32Array[] = [];
  const extendSampling: ExtendSampling = async (ids, _step, count, uniforms) => {
    expect(uniforms.length).toBe(count * ids.length);
    given.push(uniforms);
    const drawn = Int32Array.from(uniforms, (u) => (u < 0.5 ? 3 : 4));
    return { ids: drawn, logprobs: Float32Array.from(drawn, () => Math.log(0.5)) };
  };
  const decoder = build(SampleDecoder.config({ seqlen: 60, numSamples: 2, eosId: [] }));
  const asked = request([[5, 5, 5]], extendStep);
  const expected = await decoder.decode(asked);
  const output = await decoder.decode({ ...asked, extendSampling });
  expect(rowsOf(output.outputIds)).toEqual(rowsOf(expected.outputIds));
  // Two prompts' tokens one by one, then as many as a call may draw.
  expect(given.map(({ length }) => length / 2)).toEqual([1, 1, 16, 16, 25]);
});

test('a decoder with a way of its own to decode reads logits', () => {
  class Own extends SampleDecoder {
    override async decode(request: DecodeRequest): Promise<DecodeOutput> {
      return super.decode(request);
    }
  }
  expect(build(SampleDecoder.config({ k: 3 })).rule).toEqual({ temperature: 1, k: 3, p: null });
  expect(build(GreedyDecoder.config()).rule).toEqual({ temperature: 0, k: 0, p: null });
  expect(build(Own.config()).rule).toBeNull();
});
