/** @file A sound with its log-mel features, which librosa computes too. */
import { writeFileSync } from 'node:fs';
import { prngKey, uniform } from '../../src/compiler/random/prng.js';
import { build } from '../../src/hparams/index.js';
import { LogMel } from '../../src/inputs/index.js';

/** Writes noise and its features on both scales as JSON. */
export function writeSoundSamples(path: string): void {
  const sound = uniform(prngKey(3), 5000).map((x) => 2 * x - 1);
  const kinds = [
    {},
    { scale: 'slaney', norm: 'slaney', numMels: 40, minFrequency: 60, maxFrequency: 7000 },
  ] as const;
  const samples = kinds.map((fields) => {
    const logMel = build(LogMel.config(fields));
    return { fields: logMel.hp, sound: [...sound], features: [...logMel.features(sound)] };
  });
  writeFileSync(path, JSON.stringify(samples));
}
