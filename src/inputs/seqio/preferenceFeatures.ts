/** @file Converters for models that learn from pairs of answers: the prompt, or source, with the chosen one and with the rejected one. */
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
import { SequenceModelFeatures } from './sequenceModelFeatures.js';

const HALVES = ['chosen', 'rejected'] as const;
type Lengths = FeatureLengths['lengths'];

/** Base of the converters of pairs: another converter fills each half, whose targets are the one answer. */
abstract class PairFeatures extends BaseFeatureConverter.with({
  bosId: tokenId.default(0).describe('Id before the first token.'),
}) {
  static override readonly isAbstract = true;
  protected override readonly taskFeatures = {
    inputs: 'required',
    chosen: 'required',
    rejected: 'required',
  } as const;

  /** The converter of a half. */
  protected abstract readonly half: BaseFeatureConverter;

  /** The part of a batch that the converter of a half fills. */
  protected abstract partOf(batch: Batch, half: (typeof HALVES)[number]): Batch;

  protected override setup(): void {
    super.setup();
    if (this.hp.pack)
      throw new InputError(
        `${this.constructor.name}.pack is true, and a row of pairs is one prompt with one answer.`,
      );
  }

  /** The longer of both answers. */
  protected mostTargets({ chosen, rejected }: Lengths): number {
    return Math.max(chosen!, rejected!);
  }

  /** Lengths of a half. */
  protected lengthsOf(lengths: Lengths): Lengths {
    return { inputs: lengths.inputs!, targets: this.mostTargets(lengths) };
  }

  override capacity(lengths: Lengths): readonly number[] {
    return this.half.capacity(this.lengthsOf(lengths));
  }

  protected override sizesOf({ inputs, chosen, rejected }: Segment['tokens']): readonly number[] {
    return this.capacity({
      ...{ inputs: inputs!.length, chosen: chosen!.length, rejected: rejected!.length },
    });
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

  override fill(batch: Batch, b: number, segments: readonly Segment[], lengths: Lengths): void {
    const own = this.lengthsOf(lengths);
    for (const half of HALVES) {
      const answered = segments.map(({ tokens, id }): Segment => {
        const { inputs, [half]: targets } = tokens as Record<string, Int32Array>;
        const sizes = this.half.capacity({ inputs: inputs!.length, targets: targets!.length });
        return { id, tokens: { inputs: inputs!, targets: targets! }, sizes };
      });
      this.half.fill(this.partOf(batch, half), b, answered, own);
    }
  }
}

/**
 * Batches for LanguageModelDPO: `chosen` and `rejected` have the arrays of LanguageModelFeatures, for `inputs` and the one
 * answer, which alone has weight. Rows are as long as the inputs and the longer of the answers.
 */
export class PreferenceFeatures extends PairFeatures {
  override readonly labels = 'next tokens';
  protected override half!: LanguageModelFeatures;

  protected override setup(): void {
    super.setup();
    this.half = build(LanguageModelFeatures.config({ bosId: this.hp.bosId, weightsOnTargetsOnly: true }));
  }

  override batchSpecs(batchSize: number, lengths: Lengths): BatchSpecs {
    const specs = this.half.batchSpecs(batchSize, this.lengthsOf(lengths));
    return { chosen: specs, rejected: specs };
  }

  protected override partOf(batch: Batch, half: (typeof HALVES)[number]): Batch {
    return batch[half] as Batch;
  }
}

/**
 * Batches for SequenceModelDPO: `src` has the inputs, `chosen` and `rejected` one answer each, with the arrays that
 * SequenceModelFeatures gives targets.
 */
export class SequencePreferenceFeatures extends PairFeatures {
  protected override half!: SequenceModelFeatures;

  protected override setup(): void {
    super.setup();
    this.half = build(SequenceModelFeatures.config({ bosId: this.hp.bosId }));
  }

  override batchSpecs(batchSize: number, lengths: Lengths): BatchSpecs {
    const { src, tgt } = this.half.batchSpecs(batchSize, this.lengthsOf(lengths));
    return { src: src!, chosen: tgt!, rejected: tgt! };
  }

  protected override partOf(batch: Batch, half: (typeof HALVES)[number]): Batch {
    return { src: batch.src!, tgt: batch[half]! };
  }
}
