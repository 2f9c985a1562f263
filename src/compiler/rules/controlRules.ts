/** @file Loops and choices, which repeat or choose bodies, and the border of programs with narrow memory. */
import { cond, load, scan, store } from '../onnx/controlLowerings.js';
import { formatSpec, type NarrowType, sameShape, type TensorSpec } from '../program/tensors.js';
import { MOVE, VIEW } from './deviceForm.js';
import { Misfit, type OperationTable } from './operation.js';

const isSame = (a: TensorSpec, b: TensorSpec): boolean => a.dtype === b.dtype && sameShape(a.shape, b.shape);

/** Requires two lists of specs to be the same. */
function expectsSame(what: string, got: readonly TensorSpec[], expected: readonly TensorSpec[]): void {
  if (got.length === expected.length && got.every((spec, i) => isSame(spec, expected[i]!))) return;
  const listed = (specs: readonly TensorSpec[]): string => specs.map(formatSpec).join(', ') || 'nothing';
  throw new Misfit(`expected ${what} ${listed(expected)}, got ${listed(got)}`);
}

const specOf = ({ shape, dtype }: TensorSpec): TensorSpec => ({ shape, dtype });

export const controlRules: OperationTable = {
  /**
   * A loop. Inputs: carries, xs stacked along a leading axis, and what every turn reads. The body takes carries, a slice
   * of each of the xs, and the rest, and gives carries and ys, which the outputs stack.
   */
  Scan: {
    inputs: 'list',
    attrs: (raw) => raw,
    infer: (inputs, attrs, [body]) => {
      const { carries, xs, length } = attrs as { carries: number; xs: number; length: number };
      const slices = inputs.map((input, i) => {
        if (i < carries || i >= carries + xs) return input;
        if (input.shape[0] !== length)
          throw new Misfit(`expected xs of ${length} turns, got ${formatSpec(input)}`);
        return { shape: input.shape.slice(1), dtype: input.dtype };
      });
      expectsSame('inputs of the body', body!.inputs, slices);
      expectsSame('carries', body!.outputs.slice(0, carries), inputs.slice(0, carries));
      return body!.outputs.map((output, i) =>
        i < carries ? specOf(output) : { shape: [length, ...output.shape], dtype: output.dtype },
      );
    },
    onnx: scan,
    device: MOVE,
  },
  /** A choice between two bodies by a scalar bool, the first input; both bodies take the others. */
  Cond: {
    inputs: 'list',
    infer: ([predicate, ...operands], _, [onTrue, onFalse]) => {
      expectsSame('a predicate', [predicate!], [{ shape: [], dtype: 'bool' }]);
      for (const body of [onTrue!, onFalse!]) expectsSame('inputs of a branch', body.inputs, operands);
      expectsSame('the same results of both branches', onFalse!.outputs, onTrue!.outputs);
      return onTrue!.outputs.map(specOf);
    },
    onnx: cond,
    device: MOVE,
  },
  /** The values of an input that memory holds in narrow storage. */
  Load: {
    inputs: ['x'],
    infer: ([x]) => [specOf(x!)],
    isView: true,
    onnx: load,
    device: VIEW,
  },
  /** An output in narrow storage; no operation reads it. */
  Store: {
    inputs: ['x'],
    attrs: (raw) => raw,
    infer: ([x], { storage }) => [{ ...specOf(x!), storage: storage as NarrowType }],
    onnx: store,
    device: MOVE,
  },
};
