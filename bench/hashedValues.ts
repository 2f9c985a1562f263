/** @file Parameters, inputs and labels of bench:beyond-gpt, which peers/torch_beyond.py computes as well. */
import type { Architecture } from './architectures.js';

/** The i-th 32 bits of a stream: what an avalanche (Wellons' lowbias32) makes of both. */
function bits(stream: number, i: number): number {
  let h = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Uniform numbers of a variance of 1 / fan around `around`. */
export const uniforms = (stream: number, length: number, fan: number, around = 0): Float32Array =>
  Float32Array.from({ length }, (_, i) => around + (bits(stream, i) / 2 ** 31 - 1) * Math.sqrt(3 / fan));

const INPUTS = 10_000;

export function inputsOf({ input, vocabulary }: Architecture): Float32Array | Int32Array {
  const length = input.reduce((a, b) => a * b, 1);
  if (vocabulary === undefined) return uniforms(INPUTS, length, 1);
  return Int32Array.from({ length }, (_, i) => bits(INPUTS, i) % vocabulary);
}

/** Labels in turn: of rows, or of ids followed by logits for each position. */
export const labelsOf = ({ classes }: Architecture, length: number): Int32Array =>
  Int32Array.from({ length }, (_, i) => i % classes);
