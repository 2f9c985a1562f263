/** @file Bounds of what reading one mutant may take. */
export const bounds = {
  /** Resident memory above that of a process which has read whole files. */
  bytes: 256 * 2 ** 20,
  /** Of the processor. */
  microseconds: 2e6,
};
