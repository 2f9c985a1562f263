/** @file What every lowering gives: a compiled program that runs on host memory. */
import type { Program } from './program.js';
import { isSpec } from './program.js';
import { flattenTree, mapTree } from './tree.js';
import {
  CompilerError,
  formatSpec,
  type HostArray,
  type HostTensor,
  newHostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
} from './types.js';

/** Flat memory of a call: one array for each input and output of the graph. */
export interface FlatBinding {
  readonly inputs: readonly HostArray[];
  readonly outputs: readonly HostArray[];
}

/** What a lowering supplies; trees are dealt with in `Executable`. */
export interface Backend {
  /** Prepares a call on fixed memory, which may be views into larger buffers. */
  bind(binding: FlatBinding): () => Promise<void>;
  /** Frees what the lowering holds. */
  dispose(): Promise<void>;
}

/** A call on fixed memory: no allocation and no copy from one run to the next. */
export interface BoundCall {
  /** The results; their data are the bound arrays, overwritten by the next run. */
  readonly outputs: Tree<HostTensor>;
  run(): Promise<Tree<HostTensor>>;
}

const isArray = (value: unknown): value is HostArray => ArrayBuffer.isView(value);
const isArrayOrNull = (value: unknown): value is HostArray | null => value === null || isArray(value);

/** A compiled program. Made by `compile`. */
export class Executable {
  readonly inputs: Tree<TensorSpec>;
  readonly outputs: Tree<TensorSpec>;
  private disposed = false;

  constructor(
    /** For messages. */
    readonly name: string,
    private readonly program: Program,
    private readonly backend: Backend,
  ) {
    this.inputs = program.inputs;
    this.outputs = program.outputs;
  }

  /**
   * Fixes the memory of a call. Arrays may be views into one larger buffer (over a SharedArrayBuffer they are copied at
   * each run), and an output may lie on an input's memory
   * where the program writes each element only after its last read.
   *
   * @param inputs a structure like the program's inputs, of typed arrays.
   * @param outputs a structure like the program's outputs; null leaves, or null for all, get arrays of their own.
   * @throws CompilerError where an array is missing, of another type or of another length than its tensor.
   */
  bind({
    inputs,
    outputs = null,
  }: {
    inputs: Tree<HostArray>;
    outputs?: Tree<HostArray | null> | null;
  }): BoundCall {
    this.checkAlive();
    const { graph, inputPaths, outputPaths } = this.program;
    const given = this.match('input', flattenTree<HostArray>(inputs, isArray), inputPaths, graph.inputs);
    const wanted =
      outputs === null
        ? graph.outputs.map(() => null)
        : this.match(
            'output',
            flattenTree<HostArray | null>(outputs, isArrayOrNull),
            outputPaths,
            graph.outputs,
          );
    const results = wanted.map(
      (array, i) => array ?? newHostArray(graph.outputs[i]!.dtype, sizeOf(graph.outputs[i]!.shape)),
    );
    const run = this.backend.bind({ inputs: given as HostArray[], outputs: results });
    let next = 0;
    const tree = mapTree<TensorSpec, HostTensor>(this.outputs, isSpec, ({ shape, dtype }) => ({
      shape,
      dtype,
      data: results[next++]!,
    }));
    return {
      outputs: tree,
      run: async () => {
        this.checkAlive();
        await run();
        return tree;
      },
    };
  }

  /** Runs once, on a structure of host tensors. */
  async run(inputs: Tree<HostTensor>): Promise<Tree<HostTensor>> {
    const arrays = mapTree<HostTensor, HostArray>(
      inputs,
      isSpec as (value: unknown) => value is HostTensor,
      (tensor) => tensor.data,
    );
    return this.bind({ inputs: arrays }).run();
  }

  /** Frees the compiled program; it cannot run any more. A second call does nothing. */
  async dispose(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    await this.backend.dispose();
  }

  private checkAlive(): void {
    if (this.disposed) throw new CompilerError(`${this.name}: the program has been disposed of.`);
  }

  private match<T extends HostArray | null>(
    kind: string,
    leaves: readonly { path: string; value: T }[],
    paths: readonly string[],
    specs: readonly TensorSpec[],
  ): T[] {
    const byPath = new Map(leaves.map((leaf) => [leaf.path, leaf.value]));
    return paths.map((path, i) => {
      const array = byPath.get(path);
      if (array === undefined)
        throw new CompilerError(`${this.name}: no array for ${kind} '${path}' (${formatSpec(specs[i]!)}).`);
      if (array !== null) this.check(kind, path, array, specs[i]!);
      return array;
    });
  }

  private check(kind: string, path: string, array: HostArray, spec: TensorSpec): void {
    const type = { float32: Float32Array, int32: Int32Array, bool: Uint8Array }[spec.dtype];
    if (array instanceof type && array.length === sizeOf(spec.shape)) return;
    throw new CompilerError(
      `${this.name}: ${kind} '${path}' is ${formatSpec(spec)} and needs a ${type.name} of ${sizeOf(spec.shape)} elements, ` +
        `got a ${array.constructor.name} of ${array.length}.`,
    );
  }
}
