/**
 * @file Repeated runs of one program with other inputs in between, all of which answer the same inputs with the same bits.
 * Harnesses ask programs for their results by `repeatedly`; it needs no test runner.
 */
import type { Executable, HostArray, HostTensor, Tree } from '../../src/compiler/index.js';
import { flattenTree, mapTree } from '../../src/compiler/program/tensorTrees.js';
import { isSpec } from '../../src/compiler/trace/tracedProgram.js';

const isTensor = isSpec as (value: unknown) => value is HostTensor;

/** What runs in between: the same values in another order, which every index and key can be, and floats that spread. */
const OTHERS: readonly ((tensor: HostTensor) => HostArray)[] = [
  ({ data }) => data.slice().reverse(),
  ({ data, dtype }) => (dtype === 'float32' ? data.slice().fill(Number.NaN) : data.slice().reverse()),
];

/** The tensors of a structure. */
export const leavesOf = (tree: Tree<HostTensor>): HostTensor[] =>
  flattenTree<HostTensor>(tree, isTensor).map(({ value }) => value);

const bytesOf = ({ data }: HostTensor): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength);

/** The first element that two runs have differently. */
function firstDifference(before: readonly HostTensor[], after: readonly HostTensor[]): string | undefined {
  for (const [i, tensor] of before.entries()) {
    const other = after[i]!;
    if (bytesOf(tensor).equals(bytesOf(other))) continue;
    const at = tensor.data.findIndex((value: number, k: number) => !Object.is(value, other.data[k]));
    return `element ${at} of output ${i} is ${other.data[at]}, and was ${tensor.data[at]}`;
  }
  return undefined;
}

/**
 * Runs a program three times on the same inputs, each time behind a run on others, and returns its first results. The eager
 * engine, which keeps nothing between runs, runs once.
 *
 * @throws Error where a later run has other bits than the first one.
 */
export async function repeatedly(
  executable: Executable,
  inputs: Tree<HostTensor>,
): Promise<Tree<HostTensor>> {
  const bind = (arrayOf: (tensor: HostTensor) => HostArray) =>
    executable.bind({ inputs: mapTree<HostTensor, HostArray>(inputs, isTensor, arrayOf) });
  const call = bind(({ data }) => data);
  // The next run overwrites them.
  const first = structuredClone(await call.run());
  if (executable.runner === 'eager') return first;
  for (const [k, other] of OTHERS.entries()) {
    // It may be that others are refused, such as an index that is computed from them.
    await bind(other)
      .run()
      .catch(() => null);
    const difference = firstDifference(leavesOf(first), leavesOf(await call.run()));
    if (difference !== undefined)
      throw new Error(
        `${executable.name}, run ${k + 2} of 3 on the same inputs on ${executable.runner}: ${difference}.`,
      );
  }
  return first;
}
