/** @file Converters for language models: decoders of targets with or without inputs, and encoders of masked tokens. */
import { z } from 'zod';
import type { Batch, BatchSpecs } from '../batch.js';
import { BaseFeatureConverter, type FeatureLengths, type Segment } from './featureConverter.js';
import { autoregressiveInputs, decoderSpecs, type Sequence, writeSequences } from './sequenceRows.js';

/** Magnitudes of tokens as ids, and weights: 1 from `least` on, else 0. */
function unsigned(tokens: Int32Array, least: number): { labels: Int32Array; weights: Float32Array } {
  const labels = new Int32Array(tokens.length);
  const weights = new Float32Array(tokens.length);
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    labels[i] = token < 0 ? -token : token;
    weights[i] = token < least ? 0 : 1;
  }
  return { labels, weights };
}

/** Base of the converters that make one sequence, with labels and weights, of an example. */
abstract class LabelledFeatureConverter extends BaseFeatureConverter.with({}) {
  static override readonly isAbstract = true;

  abstract override capacity(lengths: FeatureLengths['lengths']): readonly [number];

  protected abstract sequenceOf(tokens: Segment['tokens']): Sequence;

  override batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs {
    return decoderSpecs(batchSize, this.capacity(lengths)[0]);
  }

  override fill(
    batch: Batch,
    b: number,
    segments: readonly Segment[],
    lengths: FeatureLengths['lengths'],
  ): void {
    const sequences = segments.map(({ tokens }) => this.sequenceOf(tokens));
    writeSequences(batch, b, this.capacity(lengths)[0], sequences);
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
  bosId: z.int().min(0).default(0).describe('Id before the first token.'),
}) {
  protected override readonly taskFeatures = { inputs: 'optional', targets: 'required' } as const;

  override capacity({ inputs = 0, targets }: FeatureLengths['lengths']): [number] {
    return [inputs + targets!];
  }

  override batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs {
    const specs = super.batchSpecs(batchSize, lengths);
    return lengths.inputs === undefined ? specs : { ...specs, inputsIndicator: specs.ids! };
  }

  protected override sizesOf({ inputs, targets }: Segment['tokens']): [number] {
    return [(inputs?.length ?? 0) + targets!.length];
  }

  protected override sequenceOf({ inputs = new Int32Array(0), targets }: Segment['tokens']): Sequence {
    const { weightsOnTargetsOnly, bosId } = this.hp;
    const signed = new Int32Array(inputs.length + targets!.length);
    signed.set(inputs);
    signed.set(targets!, inputs.length);
    const { labels, weights } = unsigned(signed, 0);
    if (weightsOnTargetsOnly !== null) weights.fill(1);
    if (weightsOnTargetsOnly === true) weights.fill(0, 0, inputs.length);
    const inputsIndicator = new Int32Array(labels.length).fill(1, 0, inputs.length);
    return { ids: autoregressiveInputs(labels, bosId), labels, weights, inputsIndicator };
  }
}

/** Batches for an encoder that predicts masked tokens: `ids` are the inputs, `labels` the targets, of weight 0 below 0. */
export class MaskedLanguageModelFeatures extends LabelledFeatureConverter {
  protected override readonly taskFeatures = { inputs: 'required', targets: 'required' } as const;

  override capacity({ targets }: FeatureLengths['lengths']): [number] {
    return [targets!];
  }

  protected override sizesOf({ targets }: Segment['tokens']): [number] {
    return [targets!.length];
  }

  protected override sequenceOf({ inputs, targets }: Segment['tokens']): Sequence {
    return { ids: inputs!.subarray(0, targets!.length), ...unsigned(targets!, 1) };
  }
}
