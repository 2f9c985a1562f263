/** @file Graph models of tfjs-converter (tf.GraphModel) that run compiled. */
import {
  CompilerError,
  evalShape,
  loadBackend,
  type Tensor,
  type TensorSpec,
  tf,
} from '../compiler/index.js';
import { listOf, single } from './batches.js';
import { brokenAt, type GraphNode, nodeOf } from './graphBreaks.js';
import { jitPredictions, type ModelOptions } from './jit.js';

/** Inputs of a graph model: in the order of `inputNodes`, or by the names of nodes. */
type GraphInputs = Tensor | readonly Tensor[] | Readonly<Record<string, Tensor>>;
type GraphOutputs = Tensor | Tensor[];

/** Members of tfjs-converter's models in use here, some of them private. */
export interface GraphModel {
  readonly inputNodes: readonly string[];
  readonly outputNodes: readonly string[];
  readonly structuredOutputKeys?: readonly string[];
  readonly initializer?: object | null;
  readonly resourceIdToCapturedInput?: object | null;
  readonly executor: {
    readonly graph: { readonly nodes: Readonly<Record<string, GraphNode>> };
    readonly weightMap: Readonly<Record<string, unknown>>;
    compile(inputs: object, outputs: readonly GraphNode[]): { readonly orderedNodes: readonly GraphNode[] };
  };
  predict(inputs: any): GraphOutputs | Record<string, Tensor>;
  execute(inputs: any, outputs?: any): GraphOutputs;
  executeAsync(inputs: any, outputs?: any): Promise<GraphOutputs>;
  executeInitializerGraphAsync(): Promise<Tensor[]>;
  setResourceIdToCapturedInput(outputs: Tensor[]): void;
}

/** A graph model whose methods run compiled. */
export interface CompiledGraphModel {
  /** As `model.predict`. */
  predict(inputs: GraphInputs): Promise<GraphOutputs | Record<string, Tensor>>;
  /** As `model.execute`: the values of the nodes called `outputs`. */
  execute(inputs: GraphInputs, outputs?: string | readonly string[]): Promise<GraphOutputs>;
  /** Number of programs that are kept. */
  readonly numPrograms: number;
  /** Frees all programs; the model stays. */
  dispose(): Promise<void>;
}

export const isGraphModel = (model: object): boolean =>
  'executor' in model && 'outputNodes' in model && 'execute' in model;

/** Inputs by the names of their nodes. */
function named({ inputNodes }: GraphModel, inputs: GraphInputs): Readonly<Record<string, Tensor>> {
  if (!(inputs instanceof tf.Tensor) && !Array.isArray(inputs)) return inputs as Record<string, Tensor>;
  const given = listOf(inputs as Tensor | readonly Tensor[]);
  if (given.length !== inputNodes.length)
    throw new CompilerError(
      `The graph model takes ${inputNodes.length} inputs (${inputNodes.join(', ')}), got ${given.length}. Inputs by name may also be values of nodes within the graph.`,
    );
  return Object.fromEntries(inputNodes.map((name, i) => [name, given[i]!]));
}

/** The first few names, as an array of strings. */
const list = (names: readonly string[]): string =>
  `[${names
    .slice(0, 8)
    .map((name) => `'${name}'`)
    .join(', ')}${names.length > 8 ? ', …' : ''}]`;

/** Runs a graph model compiled. Its weights are constants of the programs. */
export function compileGraphModel(model: GraphModel, options: ModelOptions): CompiledGraphModel {
  const { graphBreaks = false, notify = console.warn, ...rest } = options;
  const call = jitPredictions(
    (inputs: Record<string, Tensor>, outputs: readonly string[]) => model.execute(inputs, [...outputs]),
    { name: 'graph model', ...rest },
  );
  let hasNotified = false;

  /** The node behind an error of a trace: the first, in the order of execution, that can't be recorded. */
  const faultOf = (inputs: Record<string, Tensor>, outputs: readonly string[]): GraphNode | undefined => {
    const specs = Object.fromEntries(
      Object.entries(inputs).map(([name, { shape, dtype }]) => [name, { shape, dtype } as TensorSpec]),
    );
    const fails = (names: readonly string[]): boolean => {
      try {
        evalShape((given: Record<string, Tensor>) => [model.execute(given, [...names])].flat(), specs);
        return false;
      } catch {
        return true;
      }
    };
    const { orderedNodes } = model.executor.compile(
      inputs,
      outputs.map((name) => nodeOf(model.executor.graph.nodes, name)),
    );
    let [sound, faulty] = [0, orderedNodes.length];
    if (!fails(orderedNodes.map(({ name }) => name))) return undefined;
    while (faulty - sound > 1) {
      const middle = (sound + faulty) >> 1;
      if (fails(orderedNodes.slice(0, middle).map(({ name }) => name))) faulty = middle;
      else sound = middle;
    }
    return orderedNodes[sound];
  };

  const run = async (given: GraphInputs, outputs: readonly string[]): Promise<Tensor[]> => {
    // Shapes are values of the graph, which are computed where they are traced.
    await loadBackend('cpu');
    if (model.initializer && !model.resourceIdToCapturedInput)
      model.setResourceIdToCapturedInput(await model.executeInitializerGraphAsync());
    const inputs = named(model, given);
    const { nodes } = model.executor.graph;
    const isGiven = (name: string): boolean => name in inputs || name in model.executor.weightMap;
    const { breaks, frontier } = brokenAt(nodes, outputs, isGiven);
    if (breaks.length === 0) {
      try {
        return [...listOf(await call(inputs, outputs))] as Tensor[];
      } catch (error) {
        if (!(error instanceof CompilerError)) throw error;
        const fault = faultOf(inputs, outputs);
        if (fault === undefined) throw error;
        throw new CompilerError(
          `Node '${fault.name}' (${fault.op}) of the graph model can't be compiled: ${error.message} ` +
            `Compile what comes before it, with execute(inputs, ${list(fault.inputNames.filter((name) => !isGiven(name)))}), and pass these values by name to the model's own execute.`,
          { cause: error },
        );
      }
    }
    const told = breaks.map(({ name, op }) => `${name} (${op})`);
    const what = `The graph model has nodes that need values while it runs: ${told.slice(0, 8).join(', ')}${told.length > 8 ? ' …' : ''}.`;
    if (!graphBreaks)
      throw new CompilerError(
        frontier.length > 0
          ? `${what} Compile what comes before them, with execute(inputs, ${list(frontier)}), and pass these values by name to the model's own executeAsync: compileModel's option graphBreaks does both.`
          : `${what} No node computes before them: pass execute the values of later nodes by name, or use the model's own executeAsync.`,
      );
    if (!hasNotified) notify(`${what} From there it runs operation by operation.`);
    hasNotified = true;
    const values = frontier.length > 0 ? ([...listOf(await call(inputs, frontier))] as Tensor[]) : [];
    const between = Object.fromEntries(frontier.map((name, i) => [name, values[i]!]));
    try {
      return [...listOf(await model.executeAsync({ ...inputs, ...between }, [...outputs]))];
    } finally {
      for (const [i, name] of frontier.entries()) if (!outputs.includes(name)) values[i]!.dispose();
    }
  };

  return {
    predict: async (inputs) => {
      const values = await run(inputs, model.outputNodes);
      const { structuredOutputKeys: keys } = model;
      return keys ? Object.fromEntries(keys.map((key, i) => [key, values[i]!])) : single(values);
    },
    execute: async (inputs, outputs = model.outputNodes) => single(await run(inputs, listOf(outputs))),
    get numPrograms() {
      return call.numPrograms;
    },
    dispose: () => call.dispose(),
  };
}
