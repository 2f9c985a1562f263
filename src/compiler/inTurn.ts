/** @file Sequential composition of programs, where no engine combines them into one executable. */
import type { Backend, FlatBinding } from './backend.js';
import type { Graph } from './ir.js';
import { newHostArray, sizeOf, type TensorSpec } from './tensors.js';

/** A program of the sequence. Arrays are numbered: the inputs of the whole, its outputs, then intermediate arrays. */
export interface Turn {
  readonly backend: Backend;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
}

/**
 * A backend that runs programs in sequence.
 *
 * @param whole the inputs and outputs of the sequence.
 * @param between arrays that programs hand on, beside the outputs of the whole.
 */
export function inTurn(
  whole: Pick<Graph, 'inputs' | 'outputs'>,
  turns: readonly Turn[],
  between: readonly TensorSpec[] = [],
): Backend {
  const bind = ({ inputs, outputs }: FlatBinding) => {
    const own = between.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape)));
    const arrays = [...inputs, ...outputs, ...own];
    const pick = (numbers: readonly number[]) => numbers.map((number) => arrays[number]!);
    const runs = turns.map((turn) =>
      turn.backend.bind({ inputs: pick(turn.inputs), outputs: pick(turn.outputs) }),
    );
    return async (): Promise<void> => {
      for (const run of runs) await run();
    };
  };
  const mayOverwrite = (output: number, input: number): boolean => {
    const written = whole.inputs.length + output;
    const writer = turns.findIndex(({ outputs }) => outputs.includes(written));
    const lastReader = turns.findLastIndex(({ inputs }) => inputs.includes(input));
    if (lastReader !== writer) return lastReader < writer;
    const { backend, inputs, outputs } = turns[writer]!;
    return backend.mayOverwrite?.(outputs.indexOf(written), inputs.indexOf(input)) === true;
  };
  return {
    runner: turns[0]!.backend.runner,
    bind,
    mayOverwrite,
    refresh: () => {
      for (const { backend } of turns) backend.refresh?.();
    },
    dispose: async () => {
      for (const { backend } of turns) await backend.dispose();
    },
  };
}

/** Runs one program after another; inputs and outputs are those of the first, then those of the second. */
export function oneAfterAnother(first: Graph, second: Graph, backends: readonly [Backend, Backend]): Backend {
  const count = first.inputs.length + second.inputs.length;
  const numbers = (begin: number, { length }: readonly unknown[]) =>
    Array.from({ length }, (_, i) => begin + i);
  const [before, after] = backends;
  return inTurn(
    { inputs: [...first.inputs, ...second.inputs], outputs: [...first.outputs, ...second.outputs] },
    [
      { backend: before, inputs: numbers(0, first.inputs), outputs: numbers(count, first.outputs) },
      {
        backend: after,
        inputs: numbers(first.inputs.length, second.inputs),
        outputs: numbers(count + first.outputs.length, second.outputs),
      },
    ],
  );
}
