/** @file A traced program, with the structures of its arguments and results, as one rank runs it. */
import { optimize } from '../passes/index.js';
import { checkIndices } from '../program/indexChecks.js';
import type { Graph } from '../program/ir.js';
import type { TensorSpec, Tree } from '../program/tensors.js';
import { mapTree } from '../program/tensorTrees.js';
import { writeDump } from '../program/writeDump.js';
import { isSpec, type Program } from '../trace/tracedProgram.js';
import { partition } from './partition.js';
import { partitionTexts } from './partitionText.js';
import type { MeshShape, Sharding } from './sharding.js';

/** The sharding of an input or output, by its path such as 'params.lm/softmax/w'; undefined for one that all ranks have whole. */
type ShardingOf = (path: string, spec: TensorSpec) => Sharding | undefined;

/** How the arguments and results of a program are split. */
export interface ProgramBorders {
  readonly inputs: ShardingOf;
  readonly outputs: ShardingOf;
  /** As those of `Borders`. */
  readonly rowAxes?: readonly number[];
  /** Names of the mesh's axes, for dumps. */
  readonly axisNames?: readonly string[];
}

/** The structure with the shapes of values. */
function withShapes(tree: Tree<TensorSpec>, values: Graph['inputs']): Tree<TensorSpec> {
  let next = 0;
  return mapTree<TensorSpec, TensorSpec>(tree, isSpec, (spec) => ({ ...spec, shape: values[next++]!.shape }));
}

/**
 * The program of one rank of a mesh: arguments and results are its parts. Indices are checked as those of the whole program.
 *
 * @param name of the program, for LUTHIER_DUMP.
 * @throws CompilerError that names the argument, or the result, that cannot be split so.
 */
export function partitionProgram(
  program: Program,
  borders: ProgramBorders,
  mesh: MeshShape,
  name = 'program',
): Program {
  const graph = optimize(program.graph);
  const { inputPaths, outputPaths } = program;
  const at = (of: ShardingOf, paths: readonly string[], values: Graph['inputs']) =>
    values.map((value, i) => of(paths[i]!, value));
  const partitioned = partition(
    graph,
    {
      inputs: at(borders.inputs, inputPaths, graph.inputs),
      outputs: at(borders.outputs, outputPaths, graph.outputs),
      names: { inputs: inputPaths, outputs: outputPaths },
      ...(borders.rowAxes && { rowAxes: borders.rowAxes }),
    },
    mesh,
  );
  const { own } = partitioned;
  const { LUTHIER_DUMP } = process.env;
  if (LUTHIER_DUMP)
    writeDump(LUTHIER_DUMP, `${name}_partition`, partitionTexts(partitioned, mesh, borders.axisNames));
  return {
    ...program,
    graph: own,
    inputs: withShapes(program.inputs, own.inputs),
    outputs: withShapes(program.outputs, own.outputs),
    // Where a rank has a part of the addressed rows, it takes no index for wrong by itself.
    checks: checkIndices(graph).checks.filter(({ positions }) => positions === null),
  };
}
