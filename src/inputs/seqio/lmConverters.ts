/** @file Converters for language models: decoders of targets with or without inputs, and encoders of masked tokens. */
import { z } from 'zod';
import type { HostTensor } from '../../compiler/program/index.js';
import { type Batch, type BatchSpecs, lmBatchSpecs, type PackedLmBatch } from '../batch.js';
import { concatenate } from '../text/tokens.js';
import { BaseFeatureConverter, type FeatureLengths, type Segment } from './featureConverter.js';
import { tokenId } from './preprocessor.js';
import { hasNegative, markSegment, targetId, writePredicted } from './sequenceRows.js';

/** Base of the converters that make one sequence, with labels and weights, of an example. */
abstract class LabelledFeatureConverter extends BaseFeatureConverter.with({}) {
  static override readonly isAbstract = true;

  abstract override capacity(lengths: FeatureLengths['lengths']): readonly [number];

  /** Writes ids, labels and weights of a segment to positions from `at` on. */
  protected abstract write(arrays: PackedLmBatch, at: number, tokens: Segment['tokens']): void;

  override batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs {
    return lmBatchSpecs(batchSize, this.capacity(lengths)[0], true);
  }

  override fill(
    batch: Batch,
    b: number,
    segments: readonly Segment[],
    lengths: FeatureLengths['lengths'],
  ): void {
    const arrays = batch as PackedLmBatch;
    let at = b * this.capacity(lengths)[0];
    for (let s = 0; s < segments.length; s++) {
      const { tokens, sizes } = segments[s]!;
      this.write(arrays, at, tokens);
      markSegment(arrays, at, sizes[0]!, s + 1);
      at += sizes[0]!;
    }
  }
}

/**
 * Batches for a decoder, as Pax's LanguageModelFeatures: `labels` are the targets, or, where taskFeatureLengths has inputs,
 * inputs and targets behind one another (a prefix LM); `ids` are the labels' predecessors, `bosId` first. A row is as long
 * as both together. `inputsIndicator` is 1 for labels that are inputs.
 */
export class LanguageModelFeatures extends LabelledFeatureConverter.with({
  weightsOnTargetsOnly: z
    .boolean()
    .nullable()
    .default(null)
    .describe(
      'Whether inputs have weight 0. null: ids below 0 have, of inputs and targets; their magnitudes are the ids.',
    ),
  bosId: tokenId.default(0).describe('Id before the first token.'),
}) {
  protected override readonly taskFeatures = { inputs: 'optional', targets: 'required' } as const;
  override readonly labels = 'next tokens';

  override capacity({ inputs = 0, targets }: FeatureLengths['lengths']): [number] {
    return [inputs + targets!];
  }

  override batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs {
    const specs = super.batchSpecs(batchSize, lengths);
    return lengths.inputs === undefined ? specs : { ...specs, inputsIndicator: specs.ids! };
  }

  override weighsTargetsAlone({ inputs }: FeatureLengths['lengths']): boolean {
    return inputs === undefined || this.hp.weightsOnTargetsOnly === true;
  }

  protected override sizesOf({ inputs, targets }: Segment['tokens']): [number] {
    return [(inputs?.length ?? 0) + targets!.length];
  }

  protected override write(arrays: PackedLmBatch, at: number, { inputs, targets }: Segment['tokens']): void {
    const { weightsOnTargetsOnly: isTargetsOnly, bosId } = this.hp;
    const signed = inputs === undefined ? targets! : concatenate([inputs, targets!]);
    const start = at + signed.length - targets!.length;
    const isSigned = hasNegative(signed);
    writePredicted(arrays, at, isSigned ? signed.map(targetId) : signed, bosId);
    const { data: weights } = arrays.weights;
    weights.fill(1, isTargetsOnly === true ? start : at, at + signed.length);
    if (isSigned && isTargetsOnly === null)
      weights.set(
        signed.map((token) => (token < 0 ? 0 : 1)),
        at,
      );
    (arrays.inputsIndicator as HostTensor | undefined)?.data.fill(1, at, start);
  }
}

/**
 * Batches for an encoder that predicts masked tokens: `ids` are the inputs, `labels` the targets. Targets below 0 have weight
 * 0; their magnitudes are the ids, and -2^31 is id 0.
 */
export class MaskedLanguageModelFeatures extends LabelledFeatureConverter {
  protected override readonly taskFeatures = { inputs: 'required', targets: 'required' } as const;
  override readonly labels = 'masked tokens';

  override capacity({ targets }: FeatureLengths['lengths']): [number] {
    return [targets!];
  }

  protected override sizesOf({ targets }: Segment['tokens']): [number] {
    return [targets!.length];
  }

  protected override write(
    { ids, labels, weights }: PackedLmBatch,
    at: number,
    { inputs, targets }: Segment['tokens'],
  ): void {
    ids.data.set(inputs!.subarray(0, targets!.length), at);
    labels.data.set(targets!.map(targetId), at);
    weights.data.set(
      targets!.map((token) => (token < 0 ? 0 : 1)),
      at,
    );
  }
}
