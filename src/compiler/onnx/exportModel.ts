/** @file ONNX files for other programs: a function with its constants, names, and dimensions of any size. */
import { optimize } from '../passes/index.js';
import {
  CompilerError,
  type DType,
  type HostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
} from '../program/tensors.js';
import { flattenTree, type Leaf, mapTree } from '../program/tensorTrees.js';
import { type TensorFunction, traceProgram } from '../trace/tracedProgram.js';
import { forAnySizes } from './anySizes.js';
import { OnnxBuilder } from './builder.js';
import { expandForOnnx, loweringOf, lowerToOnnx } from './lowerToOnnx.js';
import { OpenDimensions } from './openDimensions.js';
import { encodeModel, nodeBodies, type OnnxModel, type OnnxNode, type OnnxOrigin } from './proto.js';

/** Shape and element type of an input; a name in the place of a dimension's size stands for any size. */
export interface OpenSpec {
  readonly shape: readonly (number | string)[];
  readonly dtype: DType;
}

/** Names by path, or the name of a single tensor. */
type Names = string | Readonly<Record<string, string>>;

/** Options of an export. */
export interface OnnxOptions extends OnnxOrigin {
  /** Names of inputs in the file; their paths by default, and `input` for a single tensor. */
  readonly inputNames?: Names;
  /** Names of outputs in the file; their paths by default, and `output` for a single tensor. */
  readonly outputNames?: Names;
  /** Values of inputs by path, such as weights: they become constants of the file. */
  readonly constants?: Readonly<Record<string, HostArray>>;
}

const MOST_BYTES = 2 ** 31 - 1;

const isOpenSpec = (value: unknown): value is OpenSpec =>
  typeof value === 'object' && value !== null && 'dtype' in value && 'shape' in value;

/** @throws CompilerError for unknown names */
function named(paths: readonly string[], names: Names | undefined, border: 'input' | 'output'): string[] {
  const given = typeof names === 'string' ? { '': names } : (names ?? {});
  const odd = Object.keys(given).find((path) => !paths.includes(path));
  if (odd !== undefined)
    throw new CompilerError(
      odd === ''
        ? `exportOnnx: one name stands for a single ${border}, and there are ${paths.length}: give ${border}Names by path, such as { '${paths[0]}': 'x' }.`
        : `exportOnnx: ${border}Names has no ${border} at '${odd}': expected ${paths[0] === '' ? `a name alone, for there is a single ${border}` : `one of ${paths.map((path) => `'${path}'`).join(', ')}`}.`,
    );
  return paths.map((path) => given[path] ?? (path || border));
}

/** Names that nodes read, bodies of control flow included. */
const readBy = (nodes: readonly OnnxNode[]): string[] =>
  nodes.flatMap((node) => [
    ...node.inputs,
    ...nodeBodies(node).flatMap((body) => [...readBy(body.nodes), ...body.outputs.map(({ name }) => name)]),
  ]);

function renamed(nodes: readonly OnnxNode[], names: ReadonlyMap<string, string>): OnnxNode[] {
  const nameOf = (name: string): string => names.get(name) ?? name;
  return nodes.map((node) => ({
    ...node,
    inputs: node.inputs.map(nameOf),
    outputs: node.outputs.map(nameOf),
    attrs: Object.fromEntries(
      Object.entries(node.attrs).map(([key, attr]) => [
        key,
        typeof attr === 'object' && 'graph' in attr
          ? { graph: { ...attr.graph, nodes: renamed(attr.graph.nodes, names) } }
          : attr,
      ]),
    ),
  }));
}

/** The model with outputs of these names, and constants in the place of the inputs that have values. */
function finished(
  model: OnnxModel,
  outputs: readonly string[],
  values: ReadonlyMap<string, HostArray>,
): OnnxModel {
  const nodes = renamed(model.nodes, new Map(model.outputs.map(({ name }, i) => [name, outputs[i]!])));
  const used = new Set(readBy(nodes));
  return {
    inputs: model.inputs.filter(({ name }) => !values.has(name)),
    outputs: model.outputs.map((output, i) => ({ ...output, name: outputs[i]! })),
    initializers: [
      ...model.inputs
        .filter(({ name }) => values.has(name) && used.has(name))
        .map(({ name, type, shape }) => ({ name, type, shape, data: values.get(name)! })),
      ...model.initializers,
    ],
    nodes,
  };
}

/** @throws CompilerError for two values of one name, and for more than a file holds */
function check({ inputs, initializers, nodes }: OnnxModel): void {
  const names = new Set<string>();
  const computed = nodes.flatMap(({ outputs }) => outputs);
  for (const name of [...[...inputs, ...initializers].map(({ name }) => name), ...computed]) {
    if (names.has(name))
      throw new CompilerError(
        `exportOnnx: a file can't have two values called '${name}': give one of them another name, by inputNames or outputNames.`,
      );
    names.add(name);
  }
  const bytes = initializers.reduce((sum, { data }) => sum + data.byteLength, 0);
  if (bytes > MOST_BYTES)
    throw new CompilerError(
      `exportOnnx: an ONNX file holds 2 GB at most, and the constants have ${bytes} bytes.`,
    );
}

function checkConstants(leaves: readonly Leaf<OpenSpec>[], constants: OnnxOptions['constants'] = {}): void {
  for (const [path, { length }] of Object.entries(constants)) {
    const spec = leaves.find((leaf) => leaf.path === path)?.value;
    if (spec === undefined)
      throw new CompilerError(`exportOnnx: constants has values for '${path}', which is no input.`);
    const odd = spec.shape.find((size) => typeof size === 'string');
    if (odd !== undefined)
      throw new CompilerError(
        `exportOnnx: '${path}' is a constant, whose dimension '${odd}' can't have any size.`,
      );
    if (length !== sizeOf(spec.shape as number[]))
      throw new CompilerError(
        `exportOnnx: expected ${sizeOf(spec.shape as number[])} values for the constant '${path}', got ${length}.`,
      );
  }
}

/** Traces `f` for one size of each dimension. */
function traced(
  f: TensorFunction,
  inputs: Tree<OpenSpec>,
  { names }: OpenDimensions,
  sizes: readonly number[],
): ReturnType<typeof traceProgram> {
  const sizeAt = (size: number | string): number =>
    typeof size === 'number' ? size : sizes[names.indexOf(size)]!;
  const specs = mapTree<OpenSpec, TensorSpec>(inputs, isOpenSpec, ({ shape, dtype }) => ({
    shape: shape.map(sizeAt),
    dtype,
  }));
  try {
    return traceProgram(f, specs);
  } catch (error) {
    if (!(error instanceof Error) || names.length === 0) throw error;
    const shown = names.map((name, i) => `'${name}' = ${sizes[i]}`).join(', ');
    throw new CompilerError(
      `exportOnnx: the function can't be traced for ${shown}: ${error.message} If it asks for one size of ${names.map((name) => `'${name}'`).join(' or ')}, give the dimension that number.`,
      { cause: error },
    );
  }
}

/**
 * The ONNX file of a function, in ONNX's own operators (opset 20). Tensors and variables that it uses from outside are
 * constants, with the values that they have now.
 *
 * @param f takes a structure of tensors like `inputs` and gives a structure of tensors. It is called once; with dimensions
 *   of any size a few times, for as many sizes of each, and the file computes what differs.
 * @param inputs the specs of the arguments. Dimensions of one name have the same size.
 * @throws CompilerError for an operation without an ONNX lowering, for one that keeps a named dimension from having any
 *   size, for names that are not there or twice, and for more than 2 GB.
 */
export function exportOnnx(f: TensorFunction, inputs: Tree<OpenSpec>, options: OnnxOptions = {}): Uint8Array {
  const leaves = flattenTree<OpenSpec>(inputs, isOpenSpec);
  checkConstants(leaves, options.constants);
  const dimensions = new OpenDimensions([
    ...new Set(leaves.flatMap(({ value }) => value.shape.filter((size) => typeof size === 'string'))),
  ]);
  const names = named(
    leaves.map(({ path }) => path),
    options.inputNames,
    'input',
  );
  const programs = dimensions.samples.map((sizes) => traced(f, inputs, dimensions, sizes));
  const [{ outputPaths }] = programs as [(typeof programs)[0]];
  if (programs.some((other) => `${other.outputPaths}` !== `${outputPaths}`))
    throw new CompilerError(
      `exportOnnx: the function gives other results by the size of ${dimensions.names.join(' or ')}.`,
    );
  const models = programs.map(({ graph }) =>
    lowerToOnnx(expandForOnnx(optimize(graph)), {
      builder: new OnnxBuilder(loweringOf, true),
      nameOf: (i) => names[i]!,
    }),
  );
  const values = new Map(
    leaves.flatMap(({ path }, i) => {
      const data = options.constants?.[path];
      return data === undefined ? [] : [[names[i]!, data] as const];
    }),
  );
  const outputs = named(outputPaths, options.outputNames, 'output');
  const model = finished(forAnySizes(dimensions, models), outputs, values);
  check(model);
  return encodeModel(model, { producer: { name: 'luthier' }, ...options });
}
