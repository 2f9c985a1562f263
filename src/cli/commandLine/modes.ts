/** @file Modes of a run; see docs/guide/running.md. */

export const modes = [
  'train',
  'eval',
  'decode',
  'decode_once',
  'infer',
  'train_and_eval',
  'train_and_decode',
] as const;
export type Mode = (typeof modes)[number];
