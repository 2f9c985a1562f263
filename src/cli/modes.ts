/** @file Modes of a run: what docs/guide/running.md says of each. */

export const modes = [
  'train',
  'eval',
  'decode',
  'decode_once',
  'train_and_eval',
  'train_and_decode',
] as const;
export type Mode = (typeof modes)[number];
