/** @file Repeated runs of a call, on backends that run once per call. */
import type { Backend, FlatBinding } from './backend.js';
import { IndexError } from './indexChecks.js';
import { TensorMemory } from './tensorMemory.js';
import type { HostArray } from './tensors.js';

/** Binds a call that runs a given number of times, natively where the backend can. */
export function bindRepeated(backend: Backend, binding: FlatBinding): (times: number) => Promise<void> {
  if (backend.repeats) return backend.bind(binding);
  const { carried = [], stacked } = binding;
  const reads = new Slices(binding.inputs, stacked?.inputs, stacked?.runs);
  const writes = new Slices(binding.outputs, stacked?.outputs, stacked?.runs);
  const run = backend.bind({ inputs: reads.bound, outputs: writes.bound });
  return async (times) => {
    for (let i = 0; i < times; i++) {
      reads.each(i, (bound, slice) => bound.set(slice));
      await run().catch((error: unknown) => {
        throw error instanceof IndexError ? Object.assign(error, { run: i }) : error;
      });
      writes.each(i, (bound, slice) => slice.set(bound));
      for (const { output, input } of carried) await carry(writes.bound[output]!, reads.bound[input]!);
    }
  };
}

async function carry(from: HostArray, to: HostArray): Promise<void> {
  await TensorMemory.of(from)?.toHost();
  to.set(from);
  TensorMemory.of(to)?.wrote();
}

/** The arrays that a single run is bound to: copies of one slice for stacked arrays, else the arrays themselves. */
class Slices {
  readonly bound: readonly HostArray[];

  constructor(
    private readonly arrays: readonly HostArray[],
    areStacked: readonly boolean[] = [],
    runs = 1,
  ) {
    this.bound = arrays.map((array, i) => (areStacked[i] ? array.slice(0, array.length / runs) : array));
  }

  /** Calls `f` with the bound array and the slice of run `run`, for each stacked array. */
  each(run: number, f: (bound: HostArray, slice: HostArray) => void): void {
    for (const [i, bound] of this.bound.entries()) {
      const array = this.arrays[i]!;
      if (array !== bound) f(bound, array.subarray(run * bound.length, (run + 1) * bound.length));
    }
  }
}
