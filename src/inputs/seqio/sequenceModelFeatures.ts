/** @file Converter for encoder-decoder models (Pax's SequenceModelFeatures). */
import { z } from 'zod';
import type { Batch, BatchSpecs } from '../batch.js';
import { BaseFeatureConverter, type FeatureLengths, type Segment } from './featureConverter.js';
import { autoregressiveInputs, decoderSpecs, encoderSpecs, writeSequences } from './sequenceRows.js';

/**
 * Batches for an encoder-decoder model: `src` has the inputs, `tgt` the targets with their labels and weights. A segment
 * has the same number in both.
 */
export class SequenceModelFeatures extends BaseFeatureConverter.with({
  bosId: z.int().min(0).default(0).describe('Id before the first target.'),
}) {
  protected override readonly taskFeatures = { inputs: 'required', targets: 'required' } as const;

  override capacity({ inputs, targets }: FeatureLengths['lengths']): [number, number] {
    return [inputs!, targets!];
  }

  override batchSpecs(batchSize: number, { inputs, targets }: FeatureLengths['lengths']): BatchSpecs {
    return { src: encoderSpecs(batchSize, inputs!), tgt: decoderSpecs(batchSize, targets!) };
  }

  protected override sizesOf({ inputs, targets }: Segment['tokens']): [number, number] {
    return [inputs!.length, targets!.length];
  }

  override fill(
    batch: Batch,
    b: number,
    segments: readonly Segment[],
    lengths: FeatureLengths['lengths'],
  ): void {
    const { src, tgt } = batch as { readonly src: Batch; readonly tgt: Batch };
    const [inputsLength, targetsLength] = this.capacity(lengths);
    const sources = segments.map(({ tokens }) => ({ ids: tokens.inputs! }));
    const targets = segments.map(({ tokens: { targets: labels } }) => ({
      ids: autoregressiveInputs(labels!, this.hp.bosId),
      labels: labels!,
      weights: new Float32Array(labels!.length).fill(1),
    }));
    writeSequences(src, b, inputsLength, sources);
    writeSequences(tgt, b, targetsLength, targets);
  }
}
