/** @file Converter for encoder-decoder models (Pax's SequenceModelFeatures). */
import { type Batch, type BatchSpecs, lmBatchSpecs, type PackedLmBatch } from '../batch.js';
import { BaseFeatureConverter, type FeatureLengths, type Segment } from './featureConverter.js';
import { tokenId } from './preprocessor.js';
import { encoderSpecs, markSegment, type SequenceArrays, writePredicted } from './sequenceRows.js';

/**
 * Batches for an encoder-decoder model: `src` has the inputs, `tgt` the targets with their labels and weights. A segment
 * has the same number in both.
 */
export class SequenceModelFeatures extends BaseFeatureConverter.with({
  bosId: tokenId.default(0).describe('Id before the first target.'),
}) {
  protected override readonly taskFeatures = { inputs: 'required', targets: 'required' } as const;

  override capacity({ inputs, targets }: FeatureLengths['lengths']): [number, number] {
    return [inputs!, targets!];
  }

  override batchSpecs(batchSize: number, { inputs, targets }: FeatureLengths['lengths']): BatchSpecs {
    return { src: encoderSpecs(batchSize, inputs!), tgt: lmBatchSpecs(batchSize, targets!, true) };
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
    const { src, tgt } = batch as { readonly src: SequenceArrays & Batch; readonly tgt: PackedLmBatch };
    let [source, target] = this.capacity(lengths).map((capacity) => b * capacity) as [number, number];
    for (const [s, { tokens, sizes }] of segments.entries()) {
      const [inputsSize, targetsSize] = sizes as readonly [number, number];
      src.ids.data.set(tokens.inputs!, source);
      markSegment(src, source, inputsSize, s + 1);
      writePredicted(tgt, target, tokens.targets!, this.hp.bosId);
      tgt.weights.data.fill(1, target, target + targetsSize);
      markSegment(tgt, target, targetsSize, s + 1);
      source += inputsSize;
      target += targetsSize;
    }
  }
}
