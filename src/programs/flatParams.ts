/** @file The parameters that programs share, in flat memory. */
import { type FlatLayout, flatViews, type HostTensor, type TensorSpec } from '../compiler/index.js';

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

/** All variables by path, where they lie. */
export function hostParams({ layout, params }: FlatParams): Record<string, HostTensor> {
  const views = flatViews(layout, params);
  return Object.fromEntries(
    layout.entries.map(({ name, shape }) => [name, { shape, dtype: 'float32' as const, data: views[name]! }]),
  );
}

/** Views of all variables by path. */
export function paramViews({ layout, params }: FlatParams): Record<string, Float32Array> {
  return flatViews(layout, params);
}
