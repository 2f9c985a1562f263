/** @file The parameters that programs share, in flat memory. */
import { type FlatLayout, flatViews, type TensorSpec } from '../compiler/index.js';

/** Parameters in one buffer. Programs read them where they lie, so an update is seen by all of them. */
export interface FlatParams {
  readonly params: Float32Array;
  readonly layout: FlatLayout;
}

/** Specs of all variables by path. */
export function paramSpecs({ layout }: FlatParams): Record<string, TensorSpec> {
  return Object.fromEntries(
    layout.entries.map(({ name, shape }) => [name, { shape, dtype: 'float32' as const }]),
  );
}

/** Views of all variables by path. */
export function paramViews({ layout, params }: FlatParams): Record<string, Float32Array> {
  return flatViews(layout, params);
}
