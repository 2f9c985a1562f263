/** @file Sounds at another sample rate: interpolation by a windowed sinc, as torchaudio.functional.resample. */
import type { Waveform } from './wav.js';

/** Zero crossings of the filter on each side, and its cut-off as a share of the lower rate's Nyquist frequency. */
const [CROSSINGS, ROLLOFF] = [6, 0.99];

/** The filter at a place between samples: weights of the samples from `first` on, counted from the one before the place. */
interface PhaseWeights {
  readonly first: number;
  readonly weights: Float64Array;
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));

/**
 * The sound at `sampleRate`: ceil(length · new / old) samples. Filter: a sinc, cut off at 0.99 of the lower Nyquist
 * frequency, within a Hann window of 6 zero crossings on each side (`sinc_interp_hann`).
 */
export function resample({ samples, sampleRate: stored }: Waveform, sampleRate: number): Float32Array {
  if (stored === sampleRate) return samples;
  const common = divisor(stored, sampleRate);
  const [from, to] = [stored / common, sampleRate / common];
  const cutoff = Math.min(from, to) * ROLLOFF;
  const reach = Math.ceil((CROSSINGS * from) / cutoff);
  const length = 2 * reach + 1;
  const numSamples = Math.ceil((samples.length * to) / from);
  const weightsOf = (phase: number): PhaseWeights => {
    // Others are outside of the window.
    const first = Math.ceil((phase * from) / to) - reach;
    const weights = Float64Array.from({ length }, (_, i) => {
      const t = ((first + i) / from - phase / to) * cutoff;
      const inside = Math.max(-CROSSINGS, Math.min(CROSSINGS, t));
      const window = Math.cos((inside * Math.PI) / CROSSINGS / 2) ** 2;
      const sinc = inside === 0 ? 1 : Math.sin(inside * Math.PI) / (inside * Math.PI);
      return (window * sinc * cutoff) / from;
    });
    return { first, weights };
  };
  // Samples of the result at the same phase share their weights. If no phase repeats, weights are not kept.
  const known: (PhaseWeights | undefined)[] = [];
  return Float32Array.from({ length: numSamples }, (_, n) => {
    const found = known[n % to] ?? weightsOf(n % to);
    if (numSamples > to) known[n % to] = found;
    const first = Math.floor(n / to) * from + found.first;
    let sum = 0;
    for (let i = Math.max(0, -first); i < length && first + i < samples.length; i++)
      sum += found.weights[i]! * samples[first + i]!;
    return sum;
  });
}
