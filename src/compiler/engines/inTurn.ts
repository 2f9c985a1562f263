/** @file Sequential composition of two programs, where no engine combines them into one executable. */
import type { Backend, FlatBinding } from '../program/backend.js';
import type { Graph } from '../program/ir.js';

/** Runs one program after another; inputs and outputs are those of the first, then those of the second. */
export function oneAfterAnother(first: Graph, backends: readonly [Backend, Backend]): Backend {
  const [before, after] = backends;
  const [given, made] = [first.inputs.length, first.outputs.length];
  const bind = ({ inputs, outputs }: FlatBinding) => {
    const runs = [
      before.bind({ inputs: inputs.slice(0, given), outputs: outputs.slice(0, made) }),
      after.bind({ inputs: inputs.slice(given), outputs: outputs.slice(made) }),
    ];
    return async (): Promise<void> => {
      for (const run of runs) await run();
    };
  };
  return {
    runner: before.runner,
    holdsCopies: before.holdsCopies === true && after.holdsCopies === true,
    bind,
    // The first has read all its inputs before the second writes; the second reads its own later than the first writes.
    mayOverwrite: (output, input) => {
      if (output < made) return input < given && before.mayOverwrite?.(output, input) === true;
      return input < given || after.mayOverwrite?.(output - made, input - given) === true;
    },
    refresh: () => {
      for (const backend of backends) backend.refresh?.();
    },
    dispose: async () => {
      for (const backend of backends) await backend.dispose();
    },
  };
}
