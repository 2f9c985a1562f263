/** @file RolloutInput: batches of answers that the model in training samples to prompts, with their rewards. */
import { z } from 'zod';
import { foldIn, type PrngKey, prngKey } from '../compiler/index.js';
import { SampleDecoder } from '../decoding/index.js';
import { build, builds, copyWith, instance, sub } from '../hparams/index.js';
import {
  BaseInput,
  type Batch,
  type BatchSpecs,
  type BatchUnit,
  type DataIdentity,
  type IdVocabulary,
  InputError,
  type InputState,
  type LmBatch,
  lmBatchSpecs,
  type PartStates,
  paddingOf,
  partsBelow,
  type RowTraits,
  TOKEN_UNIT,
  textOf,
} from '../inputs/index.js';
import { Decode } from './decode.js';
import type { DecodedExample, Sample } from './results.js';
import { type Answer, advantagesOf, type Reward, rewardOf } from './rewards.js';

/** Answers to the prompts of a batch; the same key gives the same ones, as long as parameters are the same. */
export type Sampler = (prompts: Batch, key: PrngKey) => Promise<readonly DecodedExample[]>;

/** A sampled answer, as a state keeps it: plain numbers, which are those of float32. */
interface Row {
  /** Prompt and answer. */
  readonly ids: readonly number[];
  /** Tokens of the prompt. */
  readonly prefix: number;
  /** Of each token of the answer, when it was sampled. */
  readonly logprobs: readonly number[];
  readonly reward: number;
  readonly advantage: number;
}

/**
 * Batches for LanguageModelGRPO: a step draws a batch of `prompts`, samples `numSamples` answers to each from the model as it is,
 * and gives them to `reward`. Prompts are rows as decodes read them: `inputs`, then `targets`, which the reward may compare
 * with and the model never sees. A reward minus the mean of its prompt's, over their standard deviation, is the advantage.
 *
 * Samples are a function of the seed and the number of the batch of prompts; a state keeps those that are not used up, so
 * that a run resumes exactly.
 */
export class RolloutInput extends BaseInput.with({
  prompts: sub(BaseInput, null).describe('The prompts; batchSize is theirs times numSamples of the decoder.'),
  decode: instance(Decode, () => Decode.config({ decoder: SampleDecoder.config({ k: 0 }) })).describe(
    'How answers are sampled; rewards are those of the policy at temperature 1, without k and p.',
  ),
  reward: builds<Reward>(
    'a function from an answer to its reward',
    (made) => typeof made === 'function',
  ).describe('The reward of an answer: a pure function.'),
  numIterations: z
    .int()
    .positive()
    .default(1)
    .describe('Steps on the same answers; from the second one on, ratios differ from 1.'),
}) {
  /** Samples answers; a training job sets it. */
  sampler: Sampler | undefined;
  #prompts: BaseInput | undefined;
  /** Batches of prompts that were taken. */
  #taken = 0;
  /** Answers of which steps are left, and how many were taken. */
  #rows: readonly Row[] = [];
  #iteration = 0;

  protected override setup(): void {
    super.setup();
    const { batchSize, prompts, decode } = this.hp;
    const each = decode.hp.decoder.numRows(1);
    if (batchSize !== prompts.batchSize * each)
      throw new InputError(
        `RolloutInput '${this.name}': batchSize: expected ${prompts.batchSize * each}, ${each} answers to each of ` +
          `${prompts.batchSize} prompts; got ${batchSize}.`,
      );
    if (each === 1)
      throw new InputError(
        `RolloutInput '${this.name}': decode.decoder: expected numSamples of 2 or more, since an answer is compared with ` +
          'the others to its prompt; got 1.',
      );
  }

  /** A batch depends on the parameters: no batch may be taken ahead of the step before it. */
  readonly followsTraining = true;

  override get prefetch(): 'never' {
    return 'never';
  }

  override get batchUnit(): BatchUnit {
    return TOKEN_UNIT;
  }

  override rowTraits(): RowTraits {
    return { labels: 'next tokens' };
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, decode } = this.hp;
    const specs = lmBatchSpecs(batchSize, decode.hp.decoder.hp.seqlen);
    const ofRow = { shape: [batchSize], dtype: 'float32' } as const;
    return { ...specs, oldLogProbs: specs.weights!, advantages: ofRow, rewards: ofRow };
  }

  override async getNext(): Promise<Batch> {
    if (this.#rows.length === 0) {
      this.#rows = await this.#sample(await this.#source.getNext());
      this.#taken++;
    }
    const batch = this.#batchOf(this.#rows);
    this.#iteration++;
    if (this.#iteration === this.hp.numIterations) this.#forget();
    return batch;
  }

  /** Without a sampler, a batch of padding: its shapes are known before the model is compiled. */
  override async peek(): Promise<Batch> {
    if (this.#rows.length > 0) return this.#batchOf(this.#rows);
    if (this.sampler === undefined) return paddingOf(this.batchSpecs());
    return this.#batchOf(await this.#sample(await this.#source.peek()));
  }

  override reset(): void {
    this.#source.reset();
    this.#taken = 0;
    this.#forget();
  }

  override getState(): InputState {
    const left = this.#rows.length > 0 && { iteration: this.#iteration, rows: this.#rows };
    return { prompts: this.#source.getState(), taken: this.#taken, ...left } as unknown as InputState;
  }

  override setState(state: InputState): void {
    const { prompts, taken, iteration = 0, rows = [] } = state as unknown as SavedState;
    if (typeof prompts !== 'object' || !Number.isInteger(taken))
      throw new InputError(
        `Input '${this.name}' cannot resume from the saved state: it lacks prompts or taken.`,
      );
    this.#source.setState(prompts);
    this.#taken = taken;
    this.#iteration = iteration;
    this.#rows = rows;
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    return this.#source.vocabularyFor(path);
  }

  override dataIdentity(): DataIdentity {
    return this.#source.dataIdentity();
  }

  override knownIdentity(): DataIdentity | null {
    return this.#source.knownIdentity();
  }

  override recordedParts(): PartStates {
    return partsBelow(this.#source.recordedParts(), ['prompts']);
  }

  override async close(): Promise<void> {
    await this.#prompts?.close();
  }

  get #source(): BaseInput {
    const { prompts, isTraining, numInfeedHosts, infeedHostIndex } = this.hp;
    this.#prompts ??= build(
      copyWith(prompts, {
        ...{ isTraining, numInfeedHosts, infeedHostIndex },
        name: prompts.name ?? `${this.name}.prompts`,
      }),
    );
    this.#prompts.skipped = this.skipped;
    return this.#prompts;
  }

  #forget(): void {
    this.#rows = [];
    this.#iteration = 0;
  }

  async #sample(prompts: Batch): Promise<Row[]> {
    if (this.sampler === undefined)
      throw new InputError(
        `RolloutInput '${this.name}': answers are sampled by the model of a training job alone; look at its prompts instead.`,
      );
    const { decode, inputRandomSeed, infeedHostIndex } = this.hp;
    const seed = foldIn(prngKey(decode.hp.randomSeed), inputRandomSeed ?? 0);
    const examples = await this.sampler(prompts, foldIn(foldIn(seed, infeedHostIndex), this.#taken));
    const rows = rowsOf(prompts as PromptBatch);
    return examples.flatMap((example, i) => this.#rewarded(example, rows[i]!, i));
  }

  /** The answers to one prompt. @throws InputError for a reward that is not finite */
  #rewarded(example: DecodedExample, { labels, inputs }: PromptRow, i: number): Row[] {
    const { prefix_length: prefix, ids, sampled = [example] } = example;
    const place = `RolloutInput '${this.name}': batch ${this.#taken}, prompt ${i}`;
    if (inputs === labels.length)
      throw new InputError(
        `${place}: it has no targets, so that its last token is a label alone; give it one target at least, which no answer sees.`,
      );
    const prompt = this.#text(ids.slice(1, prefix));
    const target = this.#text(this.#untilEnd(labels.slice(prefix - 1)));
    const rewards = sampled.map((sample) => {
      const answer = { prompt, target, ...this.#answerOf(sample, prefix) };
      return rewardOf(this.hp.reward, answer, place);
    });
    const advantages = advantagesOf(rewards);
    return sampled.map(({ decoded_ids, logprobs }, s) => ({
      ...{ ids: decoded_ids, prefix, logprobs, reward: rewards[s]!, advantage: advantages[s]! },
    }));
  }

  #answerOf({ decoded_ids }: Sample, prefix: number): Pick<Answer, 'answer' | 'ids' | 'isEnded'> {
    const ids = decoded_ids.slice(prefix);
    const said = this.#untilEnd(ids);
    return { answer: this.#text(said), ids, isEnded: said.length < ids.length };
  }

  /** Ids without one that ends a sequence. */
  #untilEnd(ids: readonly number[]): readonly number[] {
    return this.hp.decode.hp.decoder.eosIds.has(ids.at(-1)!) ? ids.slice(0, -1) : ids;
  }

  #text(ids: readonly number[]): string {
    return textOf(this.vocabularyFor('ids'), ids);
  }

  #batchOf(rows: readonly Row[]): Batch {
    const batch = paddingOf(this.batchSpecs());
    const { ids, labels, paddings, weights } = batch as LmBatch & Batch;
    const { oldLogProbs, advantages, rewards } = batch as Record<string, LmBatch['weights']>;
    const size = ids.shape[1]!;
    for (const [b, { ids: tokens, prefix, logprobs, reward, advantage }] of rows.entries()) {
      const at = b * size;
      const count = tokens.length - 1;
      ids.data.set(tokens.slice(0, -1), at);
      labels.data.set(tokens.slice(1), at);
      paddings.data.fill(0, at, at + count);
      weights.data.fill(1, at + prefix - 1, at + count);
      oldLogProbs!.data.set(logprobs, at + prefix - 1);
      advantages!.data[b] = advantage;
      rewards!.data[b] = reward;
    }
    return batch;
  }
}

/** Prompts as language models read them. */
type PromptBatch = LmBatch & { readonly inputsIndicator?: LmBatch['ids'] };

interface PromptRow {
  readonly labels: readonly number[];
  /** How many of them are inputs; 0 where a batch does not say. */
  readonly inputs: number;
}

/** The rows that are not padding. */
function rowsOf({ labels, paddings, inputsIndicator }: PromptBatch): PromptRow[] {
  const [rows, size] = labels.shape as [number, number];
  return Array.from({ length: rows }, (_, row) => {
    const [from, to] = [row * size, (row + 1) * size];
    const own = [...labels.data.subarray(from, to)].filter((_, t) => paddings.data[from + t] === 0);
    const inputs = inputsIndicator?.data.subarray(from, to).reduce((sum, is) => sum + is, 0) ?? 0;
    return { labels: own, inputs };
  }).filter((row) => row.labels.length > 0);
}

interface SavedState {
  readonly prompts: InputState;
  readonly taken: number;
  readonly iteration?: number;
  readonly rows?: readonly Row[];
}
