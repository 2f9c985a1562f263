/** @file Converter for models that learn from pairs of answers: the prompt with the chosen one, and with the rejected one. */
import { build } from '../../hparams/index.js';
import type { Batch, BatchSpecs } from '../batch.js';
import { InputError } from '../inputErrors.js';
import {
  BaseFeatureConverter,
  type FeatureLengths,
  type ReadFeature,
  type Segment,
} from './featureConverter.js';
import { LanguageModelFeatures } from './lmConverters.js';
import { type Example, tokenId } from './preprocessor.js';

const HALVES = ['chosen', 'rejected'] as const;

/**
 * Batches for LanguageModelDPO: `chosen` and `rejected` have the arrays of LanguageModelFeatures, for `inputs` and the one
 * answer, which alone has weight. Rows are as long as the inputs and the longer of the answers.
 */
export class PreferenceFeatures extends BaseFeatureConverter.with({
  bosId: tokenId.default(0).describe('Id before the first token.'),
}) {
  protected override readonly taskFeatures = {
    inputs: 'required',
    chosen: 'required',
    rejected: 'required',
  } as const;
  override readonly labels = 'next tokens';
  #half!: LanguageModelFeatures;

  protected override setup(): void {
    super.setup();
    const { bosId, pack } = this.hp;
    if (pack)
      throw new InputError(
        'PreferenceFeatures.pack is true, and a row of pairs is one prompt with one answer.',
      );
    this.#half = build(LanguageModelFeatures.config({ bosId, weightsOnTargetsOnly: true }));
  }

  override capacity({ inputs, chosen, rejected }: FeatureLengths['lengths']): [number] {
    return [inputs! + Math.max(chosen!, rejected!)];
  }

  override batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs {
    const specs = this.#half.batchSpecs(batchSize, this.#lengthsOf(lengths));
    return { chosen: specs, rejected: specs };
  }

  protected override sizesOf({ inputs, chosen, rejected }: Segment['tokens']): [number] {
    return [inputs!.length + Math.max(chosen!.length, rejected!.length)];
  }

  /** @throws InputError as any converter's, and for a pair of which an answer is empty */
  override segmentOf(
    example: Example,
    id: number,
    features: readonly ReadFeature[],
    trims: boolean,
  ): Segment {
    const segment = super.segmentOf(example, id, features, trims);
    for (const half of HALVES) {
      const eosId = features.find(({ name }) => name === half)!.eosId;
      if (segment.tokens[half]!.every((token) => token === eosId))
        throw new InputError(
          `the pair has no ${half} answer. A pair has inputs and two answers, chosen and rejected.`,
        );
    }
    return segment;
  }

  override fill(
    batch: Batch,
    b: number,
    segments: readonly Segment[],
    lengths: FeatureLengths['lengths'],
  ): void {
    for (const half of HALVES) {
      const answered = segments.map(({ tokens, id }): Segment => {
        const { inputs, [half]: targets } = tokens as Record<string, Int32Array>;
        return {
          id,
          tokens: { inputs: inputs!, targets: targets! },
          sizes: [inputs!.length + targets!.length],
        };
      });
      this.#half.fill(batch[half] as Batch, b, answered, this.#lengthsOf(lengths));
    }
  }

  /** Lengths of a half. */
  #lengthsOf(lengths: FeatureLengths['lengths']): FeatureLengths['lengths'] {
    return { inputs: lengths.inputs!, targets: this.capacity(lengths)[0] - lengths.inputs! };
  }
}
