/**
 * @file Numbers of optimizers as inputs of a program. A trace has a learning rate as a constant, which would stay
 * fixed in the program. Two traces with different numbers show which constants these are.
 */
import { CompilerError, type Program, type TensorSpec } from '../compiler/index.js';
import type { NumberField, OptimizerTrace } from './optimizerTrace.js';

type Graph = Program['graph'];
type Value = Graph['inputs'][number];
type Node = Graph['nodes'][number];

/** A number of an optimizer that a program reads, and the factor, 1 or -1, that it is read with. */
export interface NumberInput extends NumberField {
  readonly factor: 1 | -1;
}

/** A trace with a program to compare. */
interface WithProgram {
  readonly program: Program;
}

/** Two numbers for each field, which hardly any program has among its own constants. */
function drawNumbers(fields: readonly NumberField[], optimizers: OptimizerTrace, salt: number) {
  const drawn = (field: NumberField, i: number): number =>
    optimizers.isCounter(field)
      ? 7919 * (i + 3) + 104729 * salt
      : 0.0123456789 / (1 + 0.37 * i + 0.119 * salt);
  return new Map(fields.map((field, i) => [field, drawn(field, i)]));
}

/** How a constant follows from a number; undefined where it does not. */
function numberOf(
  [a, b]: readonly [Value, Value],
  [first, second]: readonly [ReadonlyMap<NumberField, number>, ReadonlyMap<NumberField, number>],
): NumberInput | undefined {
  if (a.data?.length !== 1 || b.data?.length !== 1) return undefined;
  const stored = (value: number): number => (a.dtype === 'float32' ? Math.fround(value) : value);
  for (const [field, value] of first) {
    for (const factor of [1, -1] as const)
      if (a.data[0] === stored(factor * value) && b.data[0] === stored(factor * second.get(field)!))
        return { ...field, factor };
  }
  return undefined;
}

const sameData = (a: ArrayLike<number>, b: ArrayLike<number>): boolean => {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
};

/** The constants of the first graph that are numbers; undefined where the graphs differ by more. */
function findNumbers(
  first: Graph,
  second: Graph,
  drawn: Parameters<typeof numberOf>[1],
): Map<Value, NumberInput> | undefined {
  const found = new Map<Value, NumberInput>();
  const agree = (a: Value, b: Value): boolean => {
    if (a.data === undefined || b.data === undefined) return a.data === b.data;
    if (sameData(a.data, b.data)) return true;
    const number = numberOf([a, b], drawn);
    if (number !== undefined) found.set(a, number);
    return number !== undefined;
  };
  const allAgree = (a: readonly Value[], b: readonly Value[]): boolean =>
    a.length === b.length && a.every((value, i) => agree(value, b[i]!));
  const sameNodes = first.nodes.every((node, i) => {
    const other = second.nodes[i];
    return (
      node.op === other?.op &&
      JSON.stringify(node.attrs) === JSON.stringify(other.attrs) &&
      allAgree(node.inputs, other.inputs) &&
      sameBodies(node.bodies, other.bodies)
    );
  });
  const isSame = sameNodes && first.nodes.length === second.nodes.length;
  return isSame && allAgree(first.outputs, second.outputs) ? found : undefined;
}

/** Whether bodies are the same, their constants included: a number within one is no input. */
function sameBodies(first: Node['bodies'] = [], second: Node['bodies'] = []): boolean {
  const same = (a: Value, b: Value): boolean =>
    a.data === undefined || b.data === undefined ? a.data === b.data : sameData(a.data, b.data);
  const allSame = (a: readonly Value[], b: readonly Value[]): boolean =>
    a.length === b.length && a.every((value, i) => same(value, b[i]!));
  return first.every(({ nodes, outputs }, k) => {
    const other = second[k]!;
    const isSame = nodes.every((node, i) => {
      const { op, attrs, inputs, bodies } = other.nodes[i]!;
      return (
        node.op === op &&
        JSON.stringify(node.attrs) === JSON.stringify(attrs) &&
        allSame(node.inputs, inputs) &&
        sameBodies(node.bodies, bodies)
      );
    });
    return nodes.length === other.nodes.length && isSame && allSame(outputs, other.outputs);
  });
}

/** The program with these constants as further inputs, below `numbers`. */
function withInputs(program: Program, found: ReadonlyMap<Value, NumberInput>): [Program, NumberInput[]] {
  const numbers: NumberInput[] = [];
  const inputs: Value[] = [];
  const byKind = new Map<string, Value>();
  const replaced = new Map<Value, Value>();
  const fields: NumberField[] = [];
  for (const [constant, number] of found) {
    const { optimizer, field, factor } = number;
    let index = fields.findIndex((other) => other.optimizer === optimizer && other.field === field);
    if (index < 0) index = fields.push(number) - 1;
    const kind = `${index} ${factor} ${constant.dtype}[${constant.shape}]`;
    let input = byKind.get(kind);
    if (input === undefined) {
      const { data: _, ...spec } = constant;
      input = { ...spec, name: `numbers.${numbers.length}` };
      byKind.set(kind, input);
      inputs.push(input);
      numbers.push(number);
    }
    replaced.set(constant, input);
  }
  const current = (value: Value): Value => replaced.get(value) ?? value;
  const { graph } = program;
  const specs: Record<string, TensorSpec> = {};
  inputs.forEach(({ shape, dtype }, i) => {
    specs[i] = { shape, dtype };
  });
  return [
    {
      ...program,
      graph: {
        inputs: [...graph.inputs, ...inputs],
        outputs: graph.outputs.map(current),
        nodes: graph.nodes.map((node) => ({ ...node, inputs: node.inputs.map(current) })),
      },
      inputs: { ...(program.inputs as object), numbers: specs } as unknown as Program['inputs'],
      inputPaths: [...program.inputPaths, ...inputs.map(({ name }) => name!)],
    },
    numbers,
  ];
}

/**
 * Traces a function so that the numbers of its optimizers are inputs.
 *
 * @param trace traces the function.
 * @throws CompilerError for a program that depends on a counter otherwise than by its value or its negative.
 */
export function numbersAsInputs<T extends WithProgram>(
  trace: (substitutes: ReadonlyMap<NumberField, number>) => T,
  optimizers: OptimizerTrace,
): [T, NumberInput[]] {
  for (;;) {
    const fields = optimizers.changingNumbers();
    if (fields.length === 0) return [trace(new Map()), []];
    const drawn = [1, 2].map((salt) => drawNumbers(fields, optimizers, salt));
    const [first, second] = drawn.map(trace) as [T, T];
    const found = findNumbers(first.program.graph, second.program.graph, drawn as never);
    if (found !== undefined) {
      const [program, numbers] = withInputs(first.program, found);
      return [{ ...first, program }, numbers];
    }
    fixOne(fields, trace, optimizers);
  }
}

/** Makes the first number that a program computes with on the host a setting. */
function fixOne<T extends WithProgram>(
  fields: readonly NumberField[],
  trace: (substitutes: ReadonlyMap<NumberField, number>) => T,
  optimizers: OptimizerTrace,
): void {
  for (const field of fields) {
    const drawn = [1, 2].map((salt) => drawNumbers([field], optimizers, salt));
    const [first, second] = drawn.map(trace) as [T, T];
    if (findNumbers(first.program.graph, second.program.graph, drawn as never) !== undefined) continue;
    if (!optimizers.isCounter(field)) {
      optimizers.fix(field.field);
      return;
    }
    throw new CompilerError(
      `${field.optimizer.getClassName()} computes with its number '${field.field}', a JavaScript number that changes at each call: a compiled step would keep it fixed. ` +
        'Keep the counter in a tf.variable, as tf.train.adam does with its accumulated betas.',
    );
  }
  throw new CompilerError(
    'A function gave a different program each time it was traced: it must not depend on randomness or time.',
  );
}
