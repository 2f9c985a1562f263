/** @file The Llama shape of half a billion parameters that LoRA is measured on; its peer reads it as well. */
import { readFileSync } from 'node:fs';
import type { Shape } from './shapes.js';

/** Shape of the model and of a batch, whose rows are short. */
export const loraShape: Omit<Shape, 'steps'> & { readonly kvHeads: number; readonly hidden: number } =
  JSON.parse(readFileSync(new URL('loraShape.json', import.meta.url), 'utf8'));

/** Rank of the changes of all projections of attention and of feed-forward layers. */
export const rank = 16;
