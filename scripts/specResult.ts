/** @file Results of specs. */

/** How one spec came out. */
export interface SpecResult {
  /** Its file in tfjs-core/dist, without `_test.js`. */
  readonly file: string;
  readonly name: string;
  /** The first line of what failed; absent where it passed. */
  readonly error?: string;
  /** Kernels that ran outside of programs; absent where there were none. */
  readonly breaks?: readonly string[];
}

/** A spec that passes on the cpu backend, and its result on an engine. */
export interface Compared extends SpecResult {
  readonly engine: string;
}
