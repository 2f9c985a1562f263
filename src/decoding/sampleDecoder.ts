/** @file Decoders that draw each token of a row from its logits: greedy and sampled. */
import { z } from 'zod';
import { foldIn, type PrngKey, prngKey } from '../compiler/index.js';
import { ConfigError } from '../hparams/index.js';
import type { Draws } from './decodeLoop.js';
import { BaseDecoder, type DecodeOutput, type DecodeRequest } from './decoder.js';
import type { DecodingModel, Float32Tensor, Int32Tensor, Prompts } from './decodingModel.js';
import { type ExampleSettings, rowSettings, ruleFields } from './exampleSettings.js';
import { guidedStep, leadingRow, type Scales, withUnconditional } from './guidance.js';
import { adjustmentsOf, type LogitAdjustments } from './logitAdjustments.js';
import { bestFirst, everyNth, repeatRows, splitRows, takeRows, unitDouble } from './promptRows.js';
import { GREEDY, type RowSettings } from './sampledIds.js';
import { type SamplingRule, sampleId } from './sampling.js';
import type { PromptSharing } from './stepPrograms.js';

/** Takes the most likely token at every position. Outputs are [B, T] and [B]. */
export class GreedyDecoder extends BaseDecoder {
  override get rule(): SamplingRule | null {
    return this.decode === GreedyDecoder.prototype.decode ? this.ownRule : null;
  }

  private get ownRule(): SamplingRule {
    return { ...GREEDY, adjustments: adjustmentsOf(this.adjustments) };
  }

  decode({
    prefixIds,
    prefixLengths,
    settings,
    constraints,
    ...model
  }: DecodeRequest): Promise<DecodeOutput> {
    const { ownRule: rule } = this;
    const { extendGreedily } = model;
    const draws: Draws = {
      selectId: (logits, _row, _position, tokens, allowed) => sampleId(logits, rule, 0, tokens, allowed),
      extend:
        extendGreedily &&
        ((ids, timeStep, count, _starts, tokens, allowed) =>
          extendGreedily(ids, timeStep, count, undefined, { tokens, allowed })),
    };
    return this.run({ prefixIds, prefixLengths, constraints }, model, draws, settings);
  }
}

/** Draws `numSamples` continuations of each prompt. Outputs are [B, S, T] and [B, S]. */
export class SampleDecoder extends BaseDecoder.with({
  numSamples: z.int().positive().default(1).describe('Continuations of each prompt.'),
  temperature: z.number().nonnegative().default(1).describe('Divides the logits; 0 is greedy.'),
  k: z.int().nonnegative().default(40).describe('Draws from the k most likely tokens; 0 for all.'),
  p: z
    .number()
    .positive()
    .max(1)
    .nullable()
    .default(null)
    .describe(
      'Draws from the fewest likely tokens whose probabilities sum to p or more (nucleus); null for all.',
    ),
  globalNormalize: z
    .boolean()
    .default(false)
    .describe("Whether p is a share of all tokens' probability rather than of the k likeliest."),
  minP: z
    .number()
    .nonnegative()
    .max(1)
    .default(0)
    .describe('Draws from tokens at least this times as likely as the likeliest; 0 for all.'),
  epsilonP: z
    .number()
    .nonnegative()
    .max(1)
    .default(0)
    .describe('Draws from tokens of this probability or more, and the likeliest; 0 for all.'),
  repetitionPenalty: z
    .number()
    .positive()
    .default(1)
    .describe(
      'Divides positive logits of tokens that the prompt or its continuation has, and multiplies others; 1 for none.',
    ),
  presencePenalty: z
    .number()
    .default(0)
    .describe('Subtracted from the logits of tokens that the continuation has.'),
  frequencyPenalty: z
    .number()
    .default(0)
    .describe('Subtracted from the logits of tokens for each time that the continuation has them.'),
  logitBias: z
    .record(z.string().regex(/^\d+$/), z.number())
    .default({})
    .describe('Added to the logits of ids, before penalties.'),
  cfGuidanceScale: z
    .union([z.number(), z.array(z.number())])
    .nullable()
    .default(null)
    .describe(
      'Scale of classifier-free guidance, or one of each sample: logits are uncond + scale * (cond - uncond); null for none.',
    ),
  numPerTokenLogprobs: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Likeliest tokens at each drawn one whose log-probabilities are among the outputs.'),
  returnEntropyScore: z
    .boolean()
    .default(false)
    .describe('Whether the entropy of the distribution at each drawn token is among the outputs.'),
  sortSamples: z
    .boolean()
    .default(true)
    .describe('Sorts the samples of a prompt by log-probability, best first.'),
  lazyPrefixBroadcast: z
    .boolean()
    .default(false)
    .describe(
      'Whether the samples of a prompt share its cache of keys and values, and have caches of maxDecodeSteps places of their own.',
    ),
}) {
  override get rule(): SamplingRule | null {
    return this.decode === SampleDecoder.prototype.decode ? this.ownRule : null;
  }

  private get ownRule(): SamplingRule {
    const { temperature, k, p, minP, epsilonP, globalNormalize } = this.hp;
    const { returnEntropyScore, numPerTokenLogprobs } = this.hp;
    return {
      ...{ temperature, k, p },
      ...(minP > 0 && { minP }),
      ...(epsilonP > 0 && { epsilonP }),
      ...(globalNormalize && { globalNormalize }),
      ...(returnEntropyScore && { entropy: true }),
      ...(numPerTokenLogprobs > 0 && { topLogprobs: numPerTokenLogprobs }),
      ...(this.scales && { guidance: this.scales }),
      adjustments: adjustmentsOf(this.adjustments),
    };
  }

  /** Scales of guidance, one of each sample. */
  private get scales(): Scales | undefined {
    const { cfGuidanceScale: scale, numSamples } = this.hp;
    if (scale === null) return undefined;
    if (typeof scale === 'number') return new Array<number>(numSamples).fill(scale);
    if (scale.length === numSamples) return scale;
    throw new ConfigError(
      `${this.constructor.name}.cfGuidanceScale: expected a number or ${numSamples}, one of each sample, got ${scale.length}.`,
    );
  }

  /** Rows of each prompt. */
  private get each(): number {
    return this.hp.numSamples * (this.hp.cfGuidanceScale === null ? 1 : 2);
  }

  protected override get adjustments(): LogitAdjustments {
    const { repetitionPenalty, presencePenalty, frequencyPenalty, logitBias } = this.hp;
    return { ...super.adjustments, repetitionPenalty, presencePenalty, frequencyPenalty, logitBias };
  }

  override ruleFields(settings: ExampleSettings): readonly (keyof RowSettings<unknown>)[] {
    return ruleFields(settings);
  }

  override numRows(batchSize: number): number {
    return batchSize * this.each;
  }

  override sharing(batchSize: number, longest: number): PromptSharing | undefined {
    const { lazyPrefixBroadcast, maxDecodeSteps, seqlen, numSamples } = this.hp;
    if (!lazyPrefixBroadcast || numSamples === 1) return undefined;
    if (maxDecodeSteps === null)
      throw new ConfigError(
        `${this.constructor.name}.maxDecodeSteps: expected the size of a sample's own cache, since lazyPrefixBroadcast is set, got null.`,
      );
    const promptSize = Math.max(1, Math.min(longest, seqlen) - 1);
    return {
      prompts: (batchSize * this.each) / numSamples,
      promptSize,
      steps: Math.min(maxDecodeSteps, seqlen),
    };
  }

  /** Keys of the draws of rows: of the request, or of each example's seed. */
  private rowKeys(key: PrngKey, rows: number, seeds: ExampleSettings['gumbelPrngKey']): PrngKey[] {
    const { each } = this;
    const { numSamples } = this.hp;
    return Array.from({ length: rows }, (_, row) => {
      const [prompt, sample] = [Math.floor(row / each), row % numSamples];
      if (seeds === undefined) return foldIn(key, prompt * numSamples + sample);
      return foldIn(prngKey(Number(seeds.data[prompt])), sample);
    });
  }

  /** Tokens after each prompt, at most, [B]: an unconditional row ends with its sample. */
  private limits(
    { prefixLengths }: Prompts,
    { perExampleMaxDecodeSteps: own }: ExampleSettings,
  ): Int32Tensor {
    const { seqlen } = this.hp;
    const data = prefixLengths.data.map((length, row) =>
      Math.min(Number(own?.data[row] ?? seqlen), seqlen - Math.max(1, length)),
    );
    return { shape: prefixLengths.shape, dtype: 'int32', data };
  }

  async decode({
    prefixIds,
    prefixLengths,
    key,
    settings = {},
    unconditional,
    constraints,
    ...model
  }: DecodeRequest): Promise<DecodeOutput> {
    const { numSamples, sortSamples } = this.hp;
    const { ownRule: rule, each, scales } = this;
    const given = { prefixIds, prefixLengths };
    const alternating = scales ? withUnconditional(given, unconditional) : given;
    const prompts = {
      prefixIds: repeatRows(alternating.prefixIds, numSamples),
      prefixLengths: repeatRows(alternating.prefixLengths, numSamples),
      constraints,
    };
    const ownSettings = rowSettings(settings, each);
    const ruleOf = (row: number): SamplingRule => ruleOfRow(rule, ownSettings, row);
    const rowKeys = this.rowKeys(key, prompts.prefixLengths.data.length, settings.gumbelPrngKey);
    const numberOf = (row: number, position: number) => unitDouble(foldIn(rowKeys[row]!, position));
    const numbersOf = (timeStep: number, count: number, starts: Int32Array) =>
      Float32Array.from({ length: count * rowKeys.length }, (_, i) => {
        const row = i % rowKeys.length;
        return numberOf(row, starts[row]! + timeStep + Math.floor(i / rowKeys.length));
      });
    const { extendSampling, prefill } = model;
    const sharing: DecodingModel = {
      ...model,
      // The rows of a prompt and of its unconditional one are at other positions, and step together.
      ...(scales && { wholePrompts: true, extendStep: guidedStep(model.extendStep, scales) }),
      prefill:
        prefill &&
        ((ids, count, lengths) =>
          prefill(everyNth(ids, count, numSamples), count, lengths && everyNth(lengths, 1, numSamples))),
    };
    /** The token that each row drew last. */
    const last = new Int32Array(rowKeys.length);
    const draws: Draws = {
      told: rule,
      selectId: (logits, row, position, tokens, allowed) => {
        const leading = scales ? leadingRow(row, numSamples) : row;
        if (leading === row)
          last[row] = sampleId(logits, ruleOf(row), numberOf(row, position), tokens, allowed);
        return last[leading]!;
      },
      extend:
        extendSampling &&
        ((ids, timeStep, count, starts, tokens, allowed) =>
          extendSampling(ids, timeStep, count, numbersOf(timeStep, count, starts), {
            ...{ tokens, allowed },
            settings: ownSettings,
          })),
    };
    const limited = scales
      ? { ...settings, perExampleMaxDecodeSteps: this.limits(given, settings) }
      : settings;
    const output = await this.run(prompts, sharing, draws, limited, each);
    const all =
      sortSamples && numSamples > 1
        ? bestFirst(output.logprobs, numSamples)
        : Array.from(rowKeys, (_, row) => row);
    const order = scales ? all.filter((row) => leadingRow(row, numSamples) === row) : all;
    const arrange = <T extends Int32Tensor | Float32Tensor>(tensor: T): T =>
      splitRows(takeRows(tensor, order), numSamples);
    return Object.fromEntries(
      Object.entries(output).map(([name, tensor]) => [name, arrange(tensor)]),
    ) as unknown as DecodeOutput;
  }
}

/** The rule with the settings of a row. */
function ruleOfRow(rule: SamplingRule, settings: RowSettings<number[]>, row: number): SamplingRule {
  const { k } = rule;
  const own = settings.k?.[row] ?? k;
  return {
    ...rule,
    temperature: settings.temperature?.[row] ?? rule.temperature,
    // The program has sorted as many as the rule says.
    k: own === 0 || k === 0 ? Math.max(own, k) : Math.min(own, k),
    p: settings.p?.[row] ?? rule.p,
  };
}
