/** @file Log-mel features of sounds, on the scales of HTK and of Slaney's Auditory Toolbox. */
import { z } from 'zod';
import { Configurable } from '../../hparams/index.js';
import { Fft } from './fft.js';

/** Conversions between Hz and mel. */
interface MelScale {
  readonly toMel: (hertz: number) => number;
  readonly toHertz: (mel: number) => number;
}

/** Slaney's scale is linear up to 1000 Hz, 15 mel, and logarithmic from there on: 27 mel are a factor of 6.4. */
const [KNEE_HERTZ, KNEE_MEL, STEP] = [1000, 15, Math.log(6.4) / 27];

const scales: Readonly<Record<'htk' | 'slaney', MelScale>> = {
  htk: {
    toMel: (hertz) => 2595 * Math.log10(1 + hertz / 700),
    toHertz: (mel) => 700 * (10 ** (mel / 2595) - 1),
  },
  slaney: {
    toMel: (hertz) =>
      hertz < KNEE_HERTZ ? (3 * hertz) / 200 : KNEE_MEL + Math.log(hertz / KNEE_HERTZ) / STEP,
    toHertz: (mel) => (mel < KNEE_MEL ? (200 * mel) / 3 : KNEE_HERTZ * Math.exp(STEP * (mel - KNEE_MEL))),
  },
};

/** Log-mel energies of the frames of a sound: the natural logarithm of triangles' sums of its power spectrum. */
export class LogMel extends Configurable.with(
  {
    sampleRate: z.int().positive().default(16_000).describe('Samples per second.'),
    numMels: z.int().positive().default(80).describe('Number of triangles.'),
    fftSize: z
      .int()
      .min(2)
      .default(512)
      .describe('Samples of a spectrum; the fewer odd factors the faster, as 512 or 400.'),
    windowSize: z
      .int()
      .positive()
      .default(400)
      .describe('Samples of the periodic Hann window, in the middle of the spectrum.'),
    hopSize: z.int().positive().default(160).describe('Samples from one frame to the next.'),
    minFrequency: z.number().min(0).default(0).describe('Lower end of the lowest triangle, in Hz.'),
    maxFrequency: z
      .number()
      .positive()
      .nullable()
      .default(null)
      .describe('Upper end of the highest triangle, in Hz; null is half the sample rate.'),
    scale: z.enum(['htk', 'slaney']).default('htk').describe('The mel scale.'),
    norm: z
      .enum(['none', 'slaney'])
      .default('none')
      .describe("Height of the triangles: 1, or 'slaney', 2 / (their width in Hz)."),
    floor: z.number().positive().default(1e-10).describe('Least energy, before the logarithm.'),
  },
  (schema) =>
    schema
      .refine(({ windowSize, fftSize }) => windowSize <= fftSize, {
        path: ['windowSize'],
        error: 'must be at most fftSize',
      })
      .refine(
        ({ minFrequency, maxFrequency, sampleRate }) =>
          minFrequency < (maxFrequency ?? sampleRate / 2) && (maxFrequency ?? 0) <= sampleRate / 2,
        {
          path: ['maxFrequency'],
          error: 'must be above minFrequency, and at most half the sampleRate',
        },
      ),
) {
  #fft!: Fft;
  #window!: Float64Array;
  #triangles!: readonly Float64Array[];

  protected override setup(): void {
    const { fftSize, windowSize } = this.hp;
    this.#fft = new Fft(fftSize);
    const before = Math.floor((fftSize - windowSize) / 2);
    this.#window = new Float64Array(fftSize);
    for (let i = 0; i < windowSize; i++)
      this.#window[before + i] = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / windowSize);
    this.#triangles = this.triangles();
  }

  /** Frames of a sound: one for each hop whose middle lies within it, as with `center` in librosa and torchaudio. */
  numFrames(numSamples: number): number {
    return 1 + Math.floor(numSamples / this.hp.hopSize);
  }

  /** Weights of the frequencies, [numMels][fftSize / 2 + 1]. */
  triangles(): Float64Array[] {
    const { numMels, fftSize, sampleRate, minFrequency, norm, scale } = this.hp;
    const { toMel, toHertz } = scales[scale];
    const [low, high] = [toMel(minFrequency), toMel(this.hp.maxFrequency ?? sampleRate / 2)];
    const corner = (i: number): number => toHertz(low + ((high - low) * i) / (numMels + 1));
    return Array.from({ length: numMels }, (_, m) => {
      const [left, middle, right] = [corner(m), corner(m + 1), corner(m + 2)];
      const height = norm === 'slaney' ? 2 / (right - left) : 1;
      return Float64Array.from({ length: fftSize / 2 + 1 }, (_, k) => {
        const hertz = (k * sampleRate) / fftSize;
        const inside = Math.min((hertz - left) / (middle - left), (right - hertz) / (right - middle));
        return height * Math.max(0, inside);
      });
    });
  }

  /** Features of a sound, [numFrames, numMels]; beyond its ends it is silent. */
  features(samples: Float32Array): Float32Array {
    return Float32Array.from(this.energies(samples), (energy) => Math.log(Math.max(energy, this.hp.floor)));
  }

  /** Sums of the triangles, [numFrames, numMels]. */
  protected energies(samples: Float32Array): Float64Array {
    const { fftSize, hopSize, numMels } = this.hp;
    const frames = this.numFrames(samples.length);
    const found = new Float64Array(frames * numMels);
    const [real, imaginary] = [new Float64Array(fftSize), new Float64Array(fftSize)];
    for (let t = 0; t < frames; t++) {
      const first = t * hopSize - Math.floor(fftSize / 2);
      for (let i = 0; i < fftSize; i++) real[i] = this.#window[i]! * this.sample(samples, first + i);
      imaginary.fill(0);
      this.#fft.transform(real, imaginary);
      for (const [m, weights] of this.#triangles.entries()) {
        let energy = 0;
        for (const [k, weight] of weights.entries()) energy += weight * (real[k]! ** 2 + imaginary[k]! ** 2);
        found[t * numMels + m] = energy;
      }
    }
    return found;
  }

  /** The sample at a place, which may lie beyond the ends. */
  protected sample(samples: Float32Array, at: number): number {
    return samples[at] ?? 0;
  }
}

/**
 * The features of Whisper (Radford et al., 2022; openai/whisper, audio.py): logarithms to the base 10, of which those more than 8
 * below the sound's largest count as that, brought near the range from −1 to 1. Beyond its ends a sound is mirrored.
 */
export class WhisperLogMel extends LogMel.with({
  fftSize: z.int().min(2).default(400).describe('Samples of a spectrum.'),
  scale: z.enum(['htk', 'slaney']).default('slaney').describe('The mel scale.'),
  norm: z.enum(['none', 'slaney']).default('slaney').describe('Height of the triangles.'),
}) {
  /** Frames of a sound: one for each whole hop. */
  override numFrames(numSamples: number): number {
    return Math.floor(numSamples / this.hp.hopSize);
  }

  override features(samples: Float32Array): Float32Array {
    const logs = this.energies(samples).map((energy) => Math.log10(Math.max(energy, this.hp.floor)));
    const least = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY) - 8;
    return Float32Array.from(logs, (value) => (Math.max(value, least) + 4) / 4);
  }

  protected override sample(samples: Float32Array, at: number): number {
    const last = samples.length - 1;
    return samples[at < 0 ? -at : at > last ? 2 * last - at : at] ?? 0;
  }
}
