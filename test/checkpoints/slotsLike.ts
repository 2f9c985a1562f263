/** @file Slots that are all placed as the variables are. */
import type { StateLayout, StateSlotLayout } from '../../src/checkpoints/trainState.js';

export const slotsLike = (
  { entries, size }: StateLayout,
  names: readonly string[],
): Record<string, StateSlotLayout> =>
  Object.fromEntries(names.map((name) => [name, { dtype: 'float32', entries, size }]));
