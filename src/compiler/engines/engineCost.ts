/**
 * @file Predicted time of a program with machine code and with ONNX Runtime. It is linear in properties of the traced
 * graphs, fitted to the measurements in bench/README.md ("The choice of an engine").
 *
 * The prediction never looks at the clock, the load or the cache of compiled programs, since engines differ by the order
 * of additions: the same program, number of runs and number of threads must give the same engine, or a run that is
 * repeated or resumed would end with other bits. So a program that happens to be compiled already still counts its
 * compiling, and no run begins on one engine and goes on with another as soon as that is ready.
 */
import { executions, isProduct, isView, nodeFlops } from '../program/cost.js';
import type { Graph, Node } from '../program/ir.js';
import { byteSize, type TensorSpec } from '../program/tensors.js';

/** Properties of graphs on which their time depends. */
interface Measures {
  /** Operations that are not views. */
  readonly operations: number;
  /** Operations that differ in kind or shapes, each of which is C code of its own. */
  readonly distinct: number;
  /** FLOPs of matrix products. */
  readonly matrixFlops: number;
  readonly convolutionFlops: number;
  /** Bytes of the second operands of matrix products, which are packed. */
  readonly packedBytes: number;
  /** Bytes that other operations read and write. */
  readonly movedBytes: number;
  readonly outputBytes: number;
}

const bytesOf = (values: readonly TensorSpec[]): number =>
  values.reduce((sum, value) => sum + byteSize(value), 0);

function measure(graphs: readonly Graph[]): Measures {
  const executed = graphs.flatMap((graph) => executions(graph)).filter(({ node }) => !isView(node));
  const kinds = new Set(
    executed.map(
      ({ node: { op, inputs, outputs } }) =>
        `${op} ${[...inputs, ...outputs].map(({ shape }) => shape).join(' ')}`,
    ),
  );
  const products = executed.filter(({ node }) => isProduct(node));
  const others = executed.filter(({ node }) => !isProduct(node));
  const convolutions = products.filter(({ node }) => node.op.startsWith('Conv'));
  const matrices = products.filter(({ node }) => !node.op.startsWith('Conv'));
  const sum = (of: typeof executed, measureOf: (node: Node) => number): number =>
    of.reduce((total, { node, times }) => total + times * measureOf(node), 0);
  return {
    operations: executed.length,
    distinct: kinds.size,
    matrixFlops: sum(matrices, nodeFlops),
    convolutionFlops: sum(convolutions, nodeFlops),
    packedBytes: sum(matrices, ({ inputs }) => byteSize(inputs[1]!)),
    movedBytes: sum(others, ({ inputs, outputs }) => bytesOf([...inputs, ...outputs])),
    outputBytes: bytesOf(graphs.flatMap(({ outputs }) => outputs)),
  };
}

/** Seconds on an engine. */
interface EngineSeconds {
  compile(measures: Measures): number;
  run(measures: Measures, threads: number): number;
}

const NATIVE: EngineSeconds = {
  compile: ({ operations, distinct }) => 0.27 + 1.5e-4 * operations + 2.5e-3 * distinct,
  run: ({ operations, matrixFlops, convolutionFlops, packedBytes, movedBytes }, threads) =>
    3.5e-5 +
    2.5e-8 * operations +
    (1.4e-11 * matrixFlops + 1.7e-11 * convolutionFlops + 2e-11 * packedBytes + 2.4e-12 * movedBytes) /
      threads,
};

const ONNX: EngineSeconds = {
  compile: ({ operations, distinct }) => 0.01 + 1.1e-4 * operations + 5e-4 * distinct,
  run: ({ operations, matrixFlops, convolutionFlops, packedBytes, movedBytes, outputBytes }, threads) =>
    1.2e-4 +
    6e-7 * operations +
    5e-10 * outputBytes +
    (1.4e-11 * matrixFlops + 4e-11 * convolutionFlops + 1.4e-10 * packedBytes + 3e-11 * movedBytes) / threads,
};

/** Seconds that a program takes on each engine, compiling included. */
export interface PredictedSeconds {
  readonly native: number;
  readonly onnx: number;
}

/**
 * Predicts the time of a program in all.
 *
 * @param graphs as traced; one that follows in the same run comes second.
 * @param runs of the program.
 * @param threads that compute.
 */
export function predictSeconds(graphs: readonly Graph[], runs: number, threads: number): PredictedSeconds {
  const measures = measure(graphs);
  const total = (engine: EngineSeconds): number =>
    engine.compile(measures) + runs * engine.run(measures, threads);
  return { native: total(NATIVE), onnx: total(ONNX) };
}
