/** @file ONNX files for other programs: a function with its weights, named, for batches of any number of rows. */
import { optimize } from '../passes/index.js';
import { CompilerError, type TensorSpec, type Tree } from '../tensors.js';
import { type TensorFunction, traceProgram } from '../tracedProgram.js';
import { forAnyRows, type SizedModel } from './anyRows.js';
import { OnnxBuilder } from './builder.js';
import { expandForOnnx, lowerToOnnx } from './lowerToOnnx.js';
import { encodeModel, type OnnxModel, type OnnxNode, type OnnxOrigin } from './proto.js';

/** A function, and what its file says of it. */
export interface ExportedFunction {
  readonly f: TensorFunction;
  /** Specs of the arguments for a number of rows: weights below `params`, the rest below `batch`. */
  readonly specsFor: (rows: number) => {
    readonly params: Tree<TensorSpec>;
    readonly batch: Tree<TensorSpec>;
  };
  /** Values of the weights by path. */
  readonly weights: Readonly<Record<string, Float32Array>>;
  readonly origin: OnnxOrigin;
}

/** Numbers of rows that models hardly have among their own sizes. */
const ROWS = [13, 17, 19] as const;
const MOST_BYTES = 2 ** 31 - 1;

const PARAMS = 'params.';
/** The name in the file: `ids` for batch.ids. */
const nameOf = (path: string): string => path.slice(path.indexOf('.') + 1);

function sized(
  { f, specsFor }: ExportedFunction,
  rows: number,
): SizedModel & { readonly names: readonly string[] } {
  const { graph, inputPaths, outputPaths } = traceProgram(f, specsFor(rows) as Tree<TensorSpec>);
  // A path keeps weights and arrays of one name apart until the weights are in.
  const model = lowerToOnnx(expandForOnnx(optimize(graph)), {
    builder: new OnnxBuilder(true),
    nameOf: (i) => inputPaths[i]!,
  });
  return { rows, model, names: outputPaths };
}

/** Names that nodes read, bodies of control flow included. */
const readBy = (nodes: readonly OnnxNode[]): string[] =>
  nodes.flatMap(({ inputs, attrs }) => [
    ...inputs,
    ...Object.values(attrs).flatMap((attr) =>
      typeof attr === 'object' && 'graph' in attr ? readBy(attr.graph.nodes) : [],
    ),
  ]);

/** The model with weights as constants, inputs by their names, and outputs called `names`. */
function named(model: OnnxModel, weights: ExportedFunction['weights'], names: readonly string[]): OnnxModel {
  const copies = model.outputs.map(
    ({ name }, i): OnnxNode => ({
      ...{ op: 'Identity', domain: '', inputs: [name], outputs: [names[i]!], attrs: {}, name: names[i]! },
    }),
  );
  const isWeight = ({ name }: { readonly name: string }) => name.startsWith(PARAMS);
  const renamed = new Map(model.inputs.map(({ name }) => [name, nameOf(name)]));
  const rename = (node: OnnxNode): OnnxNode => ({
    ...node,
    inputs: node.inputs.map((name) => renamed.get(name) ?? name),
    attrs: Object.fromEntries(
      Object.entries(node.attrs).map(([key, attr]) => [
        key,
        typeof attr === 'object' && 'graph' in attr
          ? { graph: { ...attr.graph, nodes: attr.graph.nodes.map(rename) } }
          : attr,
      ]),
    ),
  });
  const used = new Set(readBy(model.nodes));
  return {
    inputs: model.inputs
      .filter((input) => !isWeight(input))
      .map((input) => ({ ...input, name: nameOf(input.name) })),
    outputs: model.outputs.map((output, i) => ({ ...output, name: names[i]! })),
    initializers: [
      ...model.inputs
        .filter((input) => isWeight(input) && used.has(input.name))
        .map(({ name, type, shape }) => ({ name: nameOf(name), type, shape, data: weights[nameOf(name)]! })),
      ...model.initializers,
    ],
    nodes: [...model.nodes, ...copies].map(rename),
  };
}

function checkNames({ inputs, outputs, initializers }: OnnxModel): void {
  const names = [...inputs, ...initializers, ...outputs].map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new CompilerError(
      `An ONNX model can't have two values called '${twice}': rename an array, a prediction or a layer.`,
    );
}

/**
 * The ONNX file of a function with its weights: ONNX's own operators, inputs and outputs by their paths, the first
 * dimension of inputs called `batch` and of any size.
 *
 * @throws CompilerError for an operation without an ONNX lowering, for one that depends on the number of rows otherwise
 *   than by lines, and for more than 2 GB.
 */
export function exportModel(exported: ExportedFunction): Uint8Array {
  const bytes = Object.values(exported.weights).reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (bytes > MOST_BYTES)
    throw new CompilerError(`An ONNX file holds 2 GB at most, and the weights have ${bytes} bytes.`);
  const [first, second, third] = ROWS.map((rows) => sized(exported, rows)) as [
    ReturnType<typeof sized>,
    SizedModel,
    SizedModel,
  ];
  const model = named(forAnyRows([first, second, third]), exported.weights, first.names);
  checkNames(model);
  return encodeModel(model, exported.origin);
}
