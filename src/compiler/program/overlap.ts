/** @file Memory overlap of a call's arrays: outputs with outputs, and outputs with inputs. */
import { type BoundArray, CompilerError } from './tensors.js';

/** A bound array of a call. */
export interface Bound {
  readonly path: string;
  /** Its index among the inputs or outputs. */
  readonly index: number;
  readonly array: BoundArray;
}

const endOf = ({ array }: Bound): number => array.byteOffset + array.byteLength;

const overlap = (a: Bound, b: Bound): boolean =>
  a.array.byteOffset < endOf(b) && b.array.byteOffset < endOf(a);

/** Arrays by buffer, in address order. */
function byBuffer(bounds: readonly Bound[]): Map<ArrayBufferLike, Bound[]> {
  const groups = new Map<ArrayBufferLike, Bound[]>();
  for (const bound of bounds) {
    if (bound.array.byteLength === 0) continue;
    const group = groups.get(bound.array.buffer);
    if (group) group.push(bound);
    else groups.set(bound.array.buffer, [bound]);
  }
  for (const group of groups.values()) group.sort((a, b) => a.array.byteOffset - b.array.byteOffset);
  return groups;
}

/** @throws CompilerError where two outputs are bound to the same memory. */
export function checkOutputsApart(name: string, outputs: readonly Bound[]): void {
  for (const group of byBuffer(outputs).values()) {
    group.slice(1).forEach((output, i) => {
      if (overlap(group[i]!, output))
        throw new CompilerError(
          `${name}: outputs '${group[i]!.path}' and '${output.path}' share memory; bind each to memory of its own.`,
        );
    });
  }
}

/**
 * Finds the outputs that share an input's memory.
 *
 * @throws CompilerError where an output overlaps a part of an input.
 */
export function outputsOnInputs(
  name: string,
  inputs: readonly Bound[],
  outputs: readonly Bound[],
): { readonly output: number; readonly input: number }[] {
  const groups = byBuffer(inputs);
  return outputs.flatMap((output) => {
    const shared = (groups.get(output.array.buffer) ?? []).filter((input) => overlap(input, output));
    return shared.map((input) => {
      if (input.array.byteOffset !== output.array.byteOffset || endOf(input) !== endOf(output))
        throw new CompilerError(
          `${name}: output '${output.path}' overlaps a part of input '${input.path}'; bind it to memory of its own.`,
        );
      return { output: output.index, input: input.index };
    });
  });
}
