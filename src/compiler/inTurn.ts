/** @file Programs run one after another as one program, where no engine makes one executable of them. */
import type { Backend, FlatBinding } from './backend.js';
import type { Graph } from './ir.js';
import { newHostArray, sizeOf, type TensorSpec } from './tensors.js';

/** One of the programs. Its arrays are numbered: the inputs of the whole, then its outputs, then what is in between. */
export interface Turn {
  readonly backend: Backend;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
}

/**
 * A backend that runs `turns` in their order.
 *
 * @param whole the inputs and outputs of all of it.
 * @param between what one program hands to another, beside outputs of the whole.
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

/** A program and one that follows it: inputs and outputs are those of the first, then those of the second. */
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
