/** @file Elementwise operations that programs define: a meaning, a gradient, FLOPs, and maybe a C expression. */

import { defineExpression, literal } from '../native/c/expressions.js';
import type { Attrs } from '../program/ir.js';
import { CompilerError } from '../program/tensors.js';
import { broadcastShapes } from '../rules/broadcasting.js';
import { MAP } from '../rules/deviceForm.js';
import { elementwise } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, perOutputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

/** An elementwise operation on float32 tensors whose shapes broadcast. */
interface ElementwiseDefinition {
  /** Names of the operands. */
  readonly inputs: readonly string[];
  /** FLOPs per element of the result. */
  readonly flops: number;
  /** What it computes, in tf operations: what engines run that have no code of their own for it. */
  readonly meaning: (inputs: readonly tf.Tensor[], attrs: Attrs) => tf.Tensor;
  /**
   * The gradient by each operand, of the result's shape; sums over broadcast axes are added. Absent: that of the meaning,
   * which is also what gradients of gradients come from.
   */
  readonly gradient?: (
    dy: tf.Tensor,
    inputs: readonly tf.Tensor[],
    output: tf.Tensor,
    attrs: Attrs,
  ) => tf.Tensor[];
  /**
   * The C expression of a float, of C expressions of the operands, which may occur in it more than once: operators,
   * numbers as `float` writes them, and the functions `lt_expf`, `lt_tanhf` and so on of `native/runtime/vectormath.h`. It
   * becomes a part of the loops that machine code fuses. It has to follow from the attributes alone, and to give what the
   * meaning gives but for rounding. Absent: machine code runs the meaning.
   */
  readonly c?: (operands: readonly string[], attrs: Attrs, float: (value: number) => string) => string;
}

/** Calls an operation on its operands, with its attributes. */
export type Elementwise = (inputs: readonly tf.Tensor[], attrs?: Attrs) => tf.Tensor;

/** Sums over the axes along which `shape` was broadcast. */
function sumTo(x: tf.Tensor, shape: readonly number[]): tf.Tensor {
  const axes = tf.backend_util.getReductionAxes([...shape], x.shape);
  return tf.reshape(axes.length === 0 ? x : tf.sum(x, axes), [...shape]);
}

/**
 * Defines an operation, once in a process, before anything is traced. It is one node of programs, and runs everywhere.
 *
 * @param name in graphs, profiles and messages: a capitalized word that no other operation has.
 * @throws CompilerError for another name.
 */
export function defineElementwise(name: string, definition: ElementwiseDefinition): Elementwise {
  const { inputs: names, flops, meaning, gradient, c } = definition;
  if (!/^[A-Z]\w*$/.test(name))
    throw new CompilerError(
      `defineElementwise: expected a capitalized word as name, such as 'Swish', got '${name}'.`,
    );
  defineOperation(
    name,
    {
      inputs: names,
      attrs: (raw) => raw as Attrs,
      infer: (operands) => {
        expectsDtypes(operands, FLOAT);
        expects(operands.length === names.length, `${names.length} tensors: ${names.join(', ')}`, operands);
        return [spec(operands.map(({ shape }) => [...shape]).reduce(broadcastShapes), 'float32')];
      },
      flops: perOutputElement(flops),
      factors: elementwise,
      decompose: (operands, attrs) => [meaning(operands, attrs)],
      ...(gradient && {
        gradient: (
          dy: tf.Tensor,
          operands: readonly tf.Tensor[],
          [output]: readonly tf.Tensor[],
          attrs: Attrs,
        ) => gradient(dy, operands, output!, attrs).map((by, i) => sumTo(by, operands[i]!.shape)),
      }),
      ...(c && { device: MAP }),
    },
    'program',
  );
  const float = (value: number): string => literal(value, 'float32');
  if (c) defineExpression(name, ({ args, attrs }) => c(args, attrs, float));
  return (operands, attrs = {}) => callComposite(name, operands, attrs);
}
