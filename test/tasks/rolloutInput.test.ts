/** @file RolloutInput: rows of sampled answers, their advantages, states, and errors with the answer. */
import { expect, test } from 'vitest';
import { SampleDecoder } from '../../src/decoding/index.js';
import { build, type Config, type ConfigValues, configurable } from '../../src/hparams/index.js';
import {
  CharTokenizer,
  type DataRecord,
  Feature,
  IterableSource,
  LanguageModelFeatures,
  type LmBatch,
  SeqioInput,
  Task,
  Tokenize,
} from '../../src/inputs/index.js';
import {
  type Answer,
  Decode,
  type DecodedExample,
  type Reward,
  RolloutInput,
} from '../../src/tasks/index.js';

/** Id 0 begins a text, and 1 ends it. */
const tokenizer = CharTokenizer.config({ vocabulary: '^$abcdefgh' });

class Prompts extends IterableSource.with({}) {
  protected override records(): DataRecord[] {
    return [
      { inputs: 'ab', targets: 'c$' },
      { inputs: 'd', targets: 'e$' },
      { inputs: 'ef', targets: 'g$' },
    ];
  }
}

class Unanswered extends IterableSource.with({}) {
  protected override records(): DataRecord[] {
    return [{ inputs: 'ab', targets: '' }];
  }
}

const rewardOf = (reward: Reward) => configurable((_: object) => reward, {}, { name: 'reward' }).config();

/** One for each letter of the answer that is in the target, and two for an end. */
const hits: Reward = ({ answer, target, isEnded }) =>
  [...answer].filter((letter) => target.includes(letter)).length + (isEnded ? 2 : 0);

function inputOf(
  values: Partial<ConfigValues<RolloutInput>> = {},
  numSamples = 2,
  targets = 2,
  source: Config<IterableSource> = Prompts.config(),
): RolloutInput {
  const feature = Feature.config({ tokenizer });
  const prompts = SeqioInput.config({
    mixtureOrTask: Task.config({
      source,
      preprocessors: [Tokenize.config()],
      features: { inputs: feature, targets: feature },
    }),
    splitName: 'all',
    taskFeatureLengths: { inputs: 2, targets },
    featureConverter: LanguageModelFeatures.config(),
    batchSize: 2,
    repeat: true,
  });
  return build(
    RolloutInput.config({
      name: 'train',
      isTraining: true,
      batchSize: 2 * numSamples,
      prompts,
      decode: Decode.config({ decoder: SampleDecoder.config({ seqlen: 6, eosId: 1, numSamples }) }),
      reward: rewardOf(hits),
      ...values,
    }),
  );
}

/** Answers that depend on the key: `c$` and a letter without an end. */
function withSampler(input: RolloutInput): { readonly keys: string[] } {
  const keys: string[] = [];
  input.sampler = async (prompts, key) => {
    keys.push(key.join());
    const { ids, paddings } = prompts as unknown as LmBatch;
    const [rows, size] = ids.shape as [number, number];
    return Array.from({ length: rows }, (_, row): DecodedExample => {
      const own = [...ids.data.subarray(row * size, (row + 1) * size)];
      const all = own.filter((_, t) => paddings.data[row * size + t] === 0);
      const prefix = all.length - 1;
      const sample = (answer: number[]) => ({
        ...{ decoded: '', decoded_substr: '', decode_length: prefix + answer.length },
        decoded_ids: [...all.slice(0, prefix), ...answer],
        logprobs: answer.map((_, i) => Math.fround(-0.1 * (i + 1))),
      });
      const sampled = [sample([4, 1]), sample([2 + (Math.abs(key[0]!) % 8)])];
      return { prefix: '', prefix_length: prefix, original: '', ids: all, ...sampled[0]!, sampled };
    });
  };
  return { keys };
}

const plain = (batch: object) =>
  Object.fromEntries(
    Object.entries(batch as LmBatch).map(([name, { data }]) => [name, [...(data as Float32Array)]]),
  );

test('answers stand behind their prompts, with weight, their log-probabilities, rewards and advantages', async () => {
  const input = inputOf();
  const seen: Answer[] = [];
  const judged = inputOf({
    reward: rewardOf((answer) => {
      seen.push(answer);
      return hits(answer);
    }),
  });
  withSampler(input);
  withSampler(judged);
  const batch = plain(await input.getNext());
  await judged.getNext();
  expect(seen.filter(({ isEnded }) => isEnded)).toEqual(
    expect.arrayContaining([{ prompt: 'ab', target: 'c', answer: 'c', ids: [4, 1], isEnded: true }]),
  );
  const row = (name: string, b: number) => batch[name]!.slice(6 * b, 6 * b + 6);
  const b = [0, 1, 2, 3].find((b) => row('ids', b)[1] === 2)!;
  expect(row('ids', b)).toEqual([0, 2, 3, 4, 0, 0]);
  expect(row('labels', b)).toEqual([2, 3, 4, 1, 0, 0]);
  expect(row('weights', b)).toEqual([0, 0, 1, 1, 0, 0]);
  expect(row('paddings', b)).toEqual([0, 0, 0, 0, 1, 1]);
  expect(row('oldLogProbs', b)).toEqual([0, 0, -0.1, -0.2, 0, 0].map(Math.fround));
  expect(batch.rewards![b]).toBe(3);
  const other = batch.rewards![b + 1]!;
  const deviation = (3 - other) / 2;
  expect(batch.advantages![b]).toBeCloseTo(deviation / (deviation + 1e-4), 6);
  expect(batch.advantages![b + 1]).toBeCloseTo(-deviation / (deviation + 1e-4), 6);
});

test('a state goes on exactly, within the steps on the same answers, too', async () => {
  for (const numIterations of [1, 3]) {
    const whole = inputOf({ numIterations });
    const { keys } = withSampler(whole);
    const batches: object[] = [];
    const states: string[] = [];
    for (let i = 0; i < 7; i++) {
      const peeked = plain(await whole.peek());
      batches.push(plain(await whole.getNext()));
      expect(peeked).toEqual(batches.at(-1));
      states.push(JSON.stringify(whole.getState()));
    }
    expect(new Set(keys).size).toBe(Math.ceil(7 / numIterations));
    if (numIterations === 3) expect(batches[1]).toEqual(batches[0]);
    expect(batches[3]).not.toEqual(batches[2]);
    for (const at of [0, 1, 2, 3]) {
      const resumed = inputOf({ numIterations });
      withSampler(resumed);
      resumed.setState(JSON.parse(states[at]!));
      for (const expected of batches.slice(at + 1)) expect(plain(await resumed.getNext())).toEqual(expected);
    }
    whole.reset();
    expect(plain(await whole.getNext())).toEqual(batches[0]);
  }
  expect(() => inputOf().setState({})).toThrow(
    "Input 'train' cannot resume from the saved state: it lacks prompts or taken.",
  );
});

test('without a model there are shapes alone', async () => {
  const input = inputOf();
  const { ids, rewards } = (await input.peek()) as unknown as Record<string, LmBatch['ids']>;
  expect([ids!.shape, rewards!.shape]).toEqual([[4, 6], [4]]);
  expect(Object.keys(input.batchSpecs())).toEqual([
    ...['ids', 'labels', 'paddings', 'weights'],
    ...['oldLogProbs', 'advantages', 'rewards'],
  ]);
  await expect(input.getNext()).rejects.toThrow(
    "RolloutInput 'train': answers are sampled by the model of a training job alone; look at its prompts instead.",
  );
});

test('a reward that is not finite, or fails, is told with its answer; so are settings that do not fit', async () => {
  const failing = async (reward: Reward, numTargets = 2) => {
    const input = inputOf(
      { reward: rewardOf((answer) => (answer.prompt === 'd' ? reward(answer) : 1)) },
      2,
      numTargets,
    );
    withSampler(input);
    for (let i = 0; i < 3; i++) await input.getNext();
  };
  await expect(failing(() => Number.NaN)).rejects.toThrow(
    /^RolloutInput 'train': batch \d, prompt [01], "d", answer "c": the reward is NaN\. A reward is a finite number\.$/,
  );
  await expect(failing(() => '1' as never)).rejects.toThrow(
    /: the reward is 1\. A reward is a finite number\.$/,
  );
  await expect(
    failing(() => {
      throw new Error('no judge');
    }),
  ).rejects.toThrow(/: the reward fails: no judge\. A reward is a finite number\.$/);
  expect(() => inputOf({ batchSize: 3 })).toThrow(
    "RolloutInput 'train': batchSize: expected 4, 2 answers to each of 2 prompts; got 3.",
  );
  expect(() => inputOf({}, 1)).toThrow(
    "RolloutInput 'train': decode.decoder: expected numSamples of 2 or more, since an answer is compared with the others to " +
      'its prompt; got 1.',
  );
});

test('a prompt without a target is refused', async () => {
  const input = inputOf({}, 2, 2, Unanswered.config());
  withSampler(input);
  await expect(input.getNext()).rejects.toThrow(
    "RolloutInput 'train': batch 0, prompt 0: it has no targets, so that its last token is a label alone; give it one target at " +
      'least, which no answer sees.',
  );
});
