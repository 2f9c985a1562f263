/** @file The measured GPT shapes, with their parameters and FLOPs. */
import { readFileSync } from 'node:fs';

/** A shape of shapes.json, which the peers read as well. */
export interface Shape {
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  /** Tokens of a row. */
  readonly context: number;
  /** Rows of a batch. */
  readonly batch: number;
  readonly vocabulary: number;
  /** Timed training steps of one run. */
  readonly steps: number;
}

export const shapes: Readonly<Record<string, Shape>> = JSON.parse(
  readFileSync(new URL('shapes.json', import.meta.url), 'utf8'),
);

/** The shapes that benchmarks measure unless told otherwise. */
export const usualShapes = ['nano', 'baby', 'small'];

/** Parameters of a GPT with tied embeddings, norms of weights alone and no biases. */
export function parameterCount({ layers, width, context, vocabulary }: Shape): number {
  const block = 12 * width ** 2 + 2 * width;
  return (vocabulary + context) * width + layers * block + width;
}

/**
 * FLOPs of forward and backward pass for each token by the formula of PaLM (Chowdhery et al. 2022, appendix B):
 * 6 for each parameter but the positions', which are not multiplied, and 12 · layers · width · context for attention.
 */
export function modelFlopsPerToken(shape: Shape): number {
  const { layers, width, context } = shape;
  return 6 * (parameterCount(shape) - context * width) + 12 * layers * width * context;
}
