/** @file Several runs of a call one after another, on backends that run once. */
import type { Backend, FlatBinding } from './backend.js';
import { IndexError } from './indexChecks.js';
import type { HostArray } from './tensors.js';

/** Binds a call that runs as often as it is told; by the backend itself where it can. */
export function bindRepeated(backend: Backend, binding: FlatBinding): (times: number) => Promise<void> {
  if (backend.repeats) return backend.bind(binding);
  const { carried = [], parted } = binding;
  const reads = new Parts(binding.inputs, parted?.inputs, parted?.runs);
  const writes = new Parts(binding.outputs, parted?.outputs, parted?.runs);
  const run = backend.bind({ inputs: reads.bound, outputs: writes.bound });
  return async (times) => {
    for (let i = 0; i < times; i++) {
      reads.each(i, (bound, part) => bound.set(part));
      await run().catch((error: unknown) => {
        throw error instanceof IndexError ? Object.assign(error, { run: i }) : error;
      });
      writes.each(i, (bound, part) => part.set(bound));
      for (const { output, input } of carried) reads.bound[input]!.set(writes.bound[output]!);
    }
  };
}

/** Arrays that a call is bound to: of those that have a part for each run, others that hold one part. */
class Parts {
  readonly bound: readonly HostArray[];

  constructor(
    private readonly arrays: readonly HostArray[],
    areParted: readonly boolean[] = [],
    runs = 1,
  ) {
    this.bound = arrays.map((array, i) => (areParted[i] ? array.slice(0, array.length / runs) : array));
  }

  /** Calls `f` with each array that holds one part, and the part of run number `run`. */
  each(run: number, f: (bound: HostArray, part: HostArray) => void): void {
    for (const [i, bound] of this.bound.entries()) {
      const array = this.arrays[i]!;
      if (array !== bound) f(bound, array.subarray(run * bound.length, (run + 1) * bound.length));
    }
  }
}
