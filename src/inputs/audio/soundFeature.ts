/** @file SoundFeature: the sound of a record, as features of its frames. */
import { z } from 'zod';
import { fileOf } from '../images/imageSources.js';
import { BaseFeature, cellOf, type FeatureSpecs } from '../records/features.js';
import type { DataRecord } from '../records/recordTable.js';
import { framesOf, samplesOf, soundFields } from './sounds.js';

/**
 * The WAV file of a column, which has its path or its bytes. A feature called `src` gives a batch `src.features`, float32
 * [batchSize, frames, numMels], and `src.paddings`, [batchSize, frames], which is 1 behind the end of a sound. Of longer ones
 * the beginning is read.
 */
export class SoundFeature extends BaseFeature.with({
  column: z.string().min(1).describe('The column.'),
  ...soundFields,
  padsWithSilence: z
    .boolean()
    .default(false)
    .describe('Whether the frames behind the end of a sound count as silence rather than as padding.'),
}) {
  override spec(): FeatureSpecs {
    const { numSamples, features } = this.hp;
    const frames = features.numFrames(numSamples);
    return {
      features: { shape: [frames, features.hp.numMels], dtype: 'float32' },
      paddings: { shape: [frames], dtype: 'float32' },
    };
  }

  override get textColumn(): string {
    return this.hp.column;
  }

  override valuesOf(
    record: DataRecord,
    { readsFiles } = { readsFiles: true },
  ): Readonly<Record<string, ArrayLike<number>>> {
    const samples = samplesOf(...fileOf(cellOf(record, this.hp.column), readsFiles), this.hp);
    const { features, paddings } = framesOf(samples, 0, this.hp);
    return { features, paddings: this.hp.padsWithSilence ? paddings.fill(0) : paddings };
  }
}
