/** @file Masks of the tokens that denoising hides (t5.data.preprocessors). */
import type { ExampleDraws } from './exampleDraws.js';

/** To the nearest integer, halves to the even one, as tf.round. */
function roundHalfToEven(x: number): number {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}

/** Lengths of `numSegments` pieces of `numItems` items, none empty, each partition as likely as any other. */
function randomSegmentation(numItems: number, numSegments: number, draws: ExampleDraws): Int32Array {
  const isFirst = Uint8Array.from({ length: numItems - 1 }, (_, i) => Number(i < numSegments - 1));
  draws.shuffle(isFirst);
  const lengths = new Int32Array(numSegments);
  let segment = 0;
  lengths[0] = 1;
  for (const first of isFirst) {
    segment += first;
    lengths[segment]! += 1;
  }
  return lengths;
}

/** Numbers of hidden tokens and of their spans, for a text of `length` tokens. */
export function noiseCounts(
  length: number,
  noiseDensity: number,
  meanNoiseSpanLength: number,
): { readonly noise: number; readonly spans: number } {
  const noise = Math.min(Math.max(roundHalfToEven(length * noiseDensity), 1), length - 1);
  // Spans alternate with visible tokens, so there are no more than of either.
  const spans = Math.max(roundHalfToEven(noise / meanNoiseSpanLength), 1);
  return { noise, spans: Math.min(spans, length - noise) };
}

/**
 * T5's random_spans_noise_mask: 1 for the tokens of random spans, which alternate with visible ones, visible first.
 *
 * @returns [length].
 */
export function randomSpansNoiseMask(
  length: number,
  noiseDensity: number,
  meanNoiseSpanLength: number,
  draws: ExampleDraws,
): Uint8Array {
  const padded = Math.max(length, 2);
  const { noise, spans } = noiseCounts(padded, noiseDensity, meanNoiseSpanLength);
  const hidden = randomSegmentation(noise, spans, draws);
  const visible = randomSegmentation(padded - noise, spans, draws);
  const mask = new Uint8Array(padded);
  let at = 0;
  for (let span = 0; span < spans; span++) {
    at += visible[span]!;
    mask.fill(1, at, at + hidden[span]!);
    at += hidden[span]!;
  }
  return mask.subarray(0, length);
}

/** T5's iid_noise_mask: each token is hidden with the probability `noiseDensity`, [length]. */
export function iidNoiseMask(length: number, noiseDensity: number, draws: ExampleDraws): Uint8Array {
  return Uint8Array.from({ length }, () => Number(draws.uniform() < noiseDensity));
}

/** The tokens without those of `mask`, each run of which becomes one sentinel: `firstSentinel`, the id below, … */
export function withSentinels(
  tokens: Int32Array,
  mask: (i: number) => boolean,
  firstSentinel: number,
): Int32Array {
  const made = new Int32Array(tokens.length);
  let [size, sentinel] = [0, firstSentinel];
  for (let i = 0; i < tokens.length; i++) {
    if (!mask(i)) made[size++] = tokens[i]!;
    else if (i === 0 || !mask(i - 1)) made[size++] = sentinel--;
  }
  return made.subarray(0, size);
}
