/** @file Traces of functions that use variables: these become inputs, and outputs where they are assigned. */
import {
  CompilerError,
  type Program,
  type Tensor,
  type TensorSpec,
  type Tree,
  type tf,
  traceProgram,
  withDrawsFrom,
} from '../compiler/index.js';
import { type Arguments, DTYPES, type Results, readResults } from './callStructure.js';
import { aliasOf, engine, uncounted, withData } from './engineState.js';
import { type NumberInput, numbersAsInputs } from './numberInputs.js';
import { type NumberField, OptimizerTrace, type TensorField, tensorIn } from './optimizerTrace.js';

/** A program of a function with state. Inputs and outputs are below these keys, by number. */
export interface StateProgram {
  readonly program: Program;
  /** Variables by their number below `variables`. */
  readonly variables: ReadonlyMap<string, tf.Variable>;
  /** Variables by their number below `assigned`. */
  readonly assigned: ReadonlyMap<string, tf.Variable>;
  readonly tensors: ReadonlyMap<string, TensorField>;
  readonly numbers: ReadonlyMap<string, NumberInput>;
  readonly optimizers: OptimizerTrace;
  readonly trainable: readonly boolean[];
  readonly rebuild: Results['rebuild'];
}

/** Variables that a first trace has made, with the program of their initial values. */
export interface Created {
  readonly variables: readonly tf.Variable[];
  readonly program: Program;
}

interface Traced {
  readonly program: Program;
  readonly variables: readonly tf.Variable[];
  readonly tensors: readonly TensorField[];
  readonly assigned: readonly tf.Variable[];
  readonly created: readonly { readonly variable: tf.Variable; readonly initial: Tensor }[];
  readonly results: Results;
}

const specOf = ({ shape, dtype }: Tensor): TensorSpec => ({ shape, dtype: dtype as TensorSpec['dtype'] });

const numbered = <T>(items: readonly T[]): Record<string, T> => Object.fromEntries(items.entries());

/** Calls `f`, and `made` for every new variable. */
function tellingVariables<T>(made: (variable: tf.Variable, initial: Tensor) => void, f: () => T): T {
  const { makeVariable } = engine();
  const own = Object.hasOwn(engine(), 'makeVariable');
  engine().makeVariable = (...args) => {
    // The caller may dispose of the initial value.
    const initial = aliasOf(args[0]);
    const variable = makeVariable.apply(engine(), args);
    made(variable, initial);
    return variable;
  };
  try {
    return f();
  } finally {
    if (own) engine().makeVariable = makeVariable;
    else delete (engine() as { makeVariable?: unknown }).makeVariable;
  }
}

/** Takes back variables that never got a value. */
export function discard(variables: readonly tf.Variable[]): void {
  uncounted(() => {
    for (const variable of variables) variable.dispose();
  });
}

function traceOnce(
  f: (...args: any[]) => unknown,
  given: Arguments,
  optimizers: OptimizerTrace,
  substitutes?: ReadonlyMap<NumberField, number>,
): Traced {
  const variables = Object.values(engine().registeredVariables).filter(({ dtype }) => DTYPES.includes(dtype));
  const tensors = optimizers.tensorFields();
  const created: { variable: tf.Variable; initial: Tensor }[] = [];
  let assigned: tf.Variable[] = [];
  let results: Results | undefined;
  const held: readonly Tensor[] = [...variables, ...tensors.map(tensorIn)];
  const pure = (
    inputs: Record<'arguments' | 'variables' | 'tensors' | 'keys', Record<string, Tensor>>,
  ): Tree<Tensor> => {
    const standIns = [...Object.values(inputs.variables), ...Object.values(inputs.tensors)];
    return withData(held, standIns, () => {
      const call = (): unknown => f(...given.rebuild(Object.values(inputs.arguments)));
      const value = tellingVariables(
        (variable, initial) => created.push({ variable, initial }),
        () => withDrawsFrom(inputs.keys[0]!, () => optimizers.during(call, substitutes)),
      );
      results = readResults(value);
      const isAssigned = (variable: tf.Variable, i: number): boolean =>
        variable.dataId !== standIns[i]!.dataId;
      assigned = variables.filter(isAssigned);
      return {
        // Data outlive the exchange, tensors in their place don't.
        results: numbered(results.tensors.map(aliasOf)),
        assigned: numbered(assigned.map(aliasOf)),
        created: numbered(created.map(({ initial }) => initial)),
      };
    });
  };
  try {
    const specs = {
      arguments: numbered(given.arrays.map(({ spec }) => spec)),
      variables: numbered(variables.map(specOf)),
      tensors: numbered(tensors.map((field) => specOf(tensorIn(field)))),
      keys: numbered([{ shape: [2], dtype: 'int32' } as const]),
    };
    const program = uncounted(() => traceProgram(pure as never, specs as unknown as Tree<TensorSpec>));
    return { program, variables, tensors, assigned, created, results: results! };
  } catch (error) {
    discard(created.map(({ variable }) => variable));
    throw error;
  }
}

/** The program with the inputs and outputs whose paths fit. */
function narrowed(
  program: Program,
  isInput: (path: string, i: number) => boolean,
  isOutput: (path: string) => boolean,
): Program {
  const { graph } = program;
  const inputs = program.inputPaths.map(isInput);
  const outputs = program.outputPaths.map(isOutput);
  const tree = (paths: readonly string[], specs: readonly TensorSpec[], kept: readonly boolean[]) => {
    const grown: Record<string, Record<string, TensorSpec>> = {};
    paths.forEach((path, i) => {
      const [kind, number] = path.split('.') as [string, string];
      const branch = (grown[kind] ??= {});
      if (kept[i]) branch[number] = specs[i]!;
    });
    return grown;
  };
  return {
    graph: {
      nodes: graph.nodes,
      inputs: graph.inputs.filter((_, i) => inputs[i]),
      outputs: graph.outputs.filter((_, i) => outputs[i]),
    },
    inputs: tree(program.inputPaths, graph.inputs, inputs),
    outputs: tree(program.outputPaths, graph.outputs, outputs),
    inputPaths: program.inputPaths.filter((_, i) => inputs[i]),
    outputPaths: program.outputPaths.filter((_, i) => outputs[i]),
  };
}

const isCreated = (path: string): boolean => path.startsWith('created.');

/** The first trace of a function: finds its optimizers and the variables it makes, which have no value yet. */
export function discover(
  f: (...args: any[]) => unknown,
  given: Arguments,
): { readonly traced: Traced; readonly optimizers: OptimizerTrace; readonly created: Created | undefined } {
  const optimizers = new OptimizerTrace();
  const traced = traceOnce(f, given, optimizers);
  const variables = traced.created.map(({ variable }) => variable);
  if (variables.length === 0) return { traced, optimizers, created: undefined };
  return {
    traced,
    optimizers,
    created: { variables, program: usedOnly(narrowed(traced.program, () => true, isCreated)) },
  };
}

/** Without inputs that the outputs don't depend on. */
function usedOnly(program: Program): Program {
  const { graph } = program;
  const read = new Set(graph.outputs);
  for (const node of graph.nodes.toReversed())
    if (node.outputs.some((output) => read.has(output))) for (const input of node.inputs) read.add(input);
  return narrowed(
    program,
    (_, i) => read.has(graph.inputs[i]!),
    () => true,
  );
}

/** The program of a function, traced again where the first trace could not be it. */
export function stateProgram(
  f: (...args: any[]) => unknown,
  given: Arguments,
  { traced: first, optimizers, created }: ReturnType<typeof discover>,
): StateProgram {
  const again = (substitutes: ReadonlyMap<NumberField, number>): Traced => {
    const traced = traceOnce(f, given, optimizers, substitutes);
    if (traced.created.length === 0) return traced;
    const names = traced.created.map(({ variable }) => `'${variable.name}'`).join(', ');
    discard(traced.created.map(({ variable }) => variable));
    throw new CompilerError(
      `The function makes variables at every call (${names}). Make them outside of it, or at its first call only.`,
    );
  };
  const isFinal = created === undefined && !optimizers.isUsed;
  const [last, numbers] = isFinal ? [first, []] : numbersAsInputs(again, optimizers);
  const program = usedOnly(last.program);
  const kept = <T>(kind: string, all: readonly T[]): Map<string, T> =>
    new Map(
      [...program.inputPaths, ...program.outputPaths]
        .map((path) => path.split('.') as [string, string])
        .filter(([first]) => first === kind)
        .map(([, number]) => [number, all[Number(number)]!]),
    );
  const variables = kept('variables', last.variables);
  return {
    program,
    variables,
    assigned: kept('assigned', last.assigned),
    tensors: kept('tensors', last.tensors),
    numbers: kept('numbers', numbers),
    optimizers,
    trainable: [...variables.values()].map(({ trainable }) => trainable),
    rebuild: last.results.rebuild,
  };
}
