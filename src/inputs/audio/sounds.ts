/** @file Sounds of files as features of a number of samples. */
import { z } from 'zod';
import { instance } from '../../hparams/index.js';
import { ofFile } from '../images/imageSources.js';
import { InputError } from '../inputErrors.js';
import { LogMel } from './logMel.js';
import { resample } from './resample.js';
import { readWav } from './wav.js';

/** Limit on the growth of a resampled sound: a false header may request any rate. */
const MOST_RESAMPLING = 64;

/** Fields of what reads sounds. */
export const soundFields = {
  numSamples: z
    .int()
    .positive()
    .describe(
      'Samples of each sound, at the sample rate of `features`: longer ones are cut, shorter ones padded.',
    ),
  features: instance(LogMel).describe('Features of the sounds.'),
  resample: z
    .boolean()
    .default(false)
    .describe(
      'Whether sounds of another sample rate are resampled to that of `features`; otherwise they are errors.',
    ),
};

interface SoundSettings {
  readonly numSamples: number;
  readonly features: LogMel;
  readonly resample: boolean;
}

/** The samples of a WAV file at the sample rate of the features. @param subject the sound in messages @throws InputError */
export function samplesOf(
  subject: string,
  bytes: Uint8Array,
  { features, resample: resamples }: SoundSettings,
): Float32Array {
  const wanted = features.hp.sampleRate;
  const sound = ofFile(subject, () => readWav(bytes));
  if (sound.sampleRate !== wanted && !resamples)
    throw new InputError(
      `${subject} has ${sound.sampleRate} samples per second, and the features' sampleRate is ${wanted}. ` +
        'Set resample: true, or the sampleRate of the files.',
    );
  if (wanted > MOST_RESAMPLING * sound.sampleRate)
    throw new InputError(
      `${subject} has ${sound.sampleRate} samples per second: resample brings sounds to at most ${MOST_RESAMPLING} times ` +
        `their sample rate, and the features' sampleRate is ${wanted}.`,
    );
  return resample(sound, wanted);
}

/** Features of a sound's samples from `start` on, and the padding behind its end. */
export function framesOf(
  samples: Float32Array,
  start: number,
  { numSamples, features }: SoundSettings,
): { readonly features: Float32Array; readonly paddings: Float32Array } {
  const sound = new Float32Array(numSamples);
  sound.set(samples.subarray(start, start + numSamples));
  const frames = features.numFrames(Math.min(samples.length, numSamples));
  const paddings = new Float32Array(features.numFrames(numSamples)).fill(1, frames);
  return { features: features.features(sound), paddings };
}
