/** @file What every lowering gives: a compiled program that runs on host memory. */
import { letEventsIn } from '../system/index.js';
import { productPrecision } from './cost.js';
import { findBad, IndexError, placeIn, problemOf } from './indexChecks.js';
import { findComputed } from './onnx/indices.js';
import { type Bound, checkOutputsApart, outputsOnInputs } from './overlap.js';
import type { Precision } from './precision.js';
import type { Program } from './program.js';
import { isSpec } from './program.js';
import { bindRepeated } from './repeat.js';
import { flattenTree, mapTree } from './tree.js';
import {
  type BoundArray,
  byteSize,
  CompilerError,
  formatSpec,
  type HostArray,
  type HostTensor,
  hostArrayIn,
  newHostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
} from './types.js';

/** Flat memory of a call: one array for each input and output of the graph. */
export interface FlatBinding {
  readonly inputs: readonly HostArray[];
  readonly outputs: readonly HostArray[];
  /** Outputs that are copied to inputs after each run, for backends that repeat runs themselves. */
  readonly carried?: readonly Carried[];
  readonly parted?: Parted | undefined;
}

/** Numbers of an output and of an input. */
export interface Carried {
  readonly output: number;
  readonly input: number;
}

/** Which arrays of a call have a part for each run, one behind another, and for how many runs. */
interface Parted {
  readonly runs: number;
  readonly inputs: readonly boolean[];
  readonly outputs: readonly boolean[];
}

/** What runs a program: `auto` decides for each. */
export type Runner = 'native' | 'wasm' | 'onnx' | 'eager';

/** What a lowering supplies; trees are dealt with in `Executable`. */
export interface Backend {
  readonly runner: Runner;
  /** Prepares a call on fixed memory, which may be views into larger buffers. */
  bind(binding: FlatBinding): (times?: number) => Promise<void>;
  /** Whether a call heeds `times`, `carried` and `parted`; elsewhere it runs once. */
  readonly repeats?: boolean;
  /** Whether a slice is replaced in place where the result is bound to its source's memory. */
  readonly updatesInPlace?: boolean;
  /** Whether an output may lie on an input: no element is read after it is written. Never where absent. */
  mayOverwrite?(output: number, input: number): boolean;
  /** Which inputs and outputs are bound to bfloat16 elements, Uint16Arrays; none where absent. */
  readonly halves?: { readonly inputs: readonly boolean[]; readonly outputs: readonly boolean[] } | undefined;
  /** Frozen inputs have changed. */
  refresh?(): void;
  /** Frees what the lowering holds. */
  dispose(): Promise<void>;
}

/** A call on fixed memory: no allocation and no copy from one run to the next. */
export interface BoundCall {
  /** The results; their data are the bound arrays, overwritten by the next run, or with a part for each run. */
  readonly outputs: Tree<HostTensor>;
  /** What is wrong with what run number `run` of the next call, from 0, is to read; undefined where nothing is. `run` looks itself, too. */
  problemOf(run: number): IndexError | undefined;
  /**
   * Runs once, or so many times, with outputs copied to inputs after each run where `bind` was told so.
   *
   * @throws CompilerError for more runs than `bind` was told; IndexError for an index that is out of range, once the runs
   *   before it are done.
   */
  run(times?: number): Promise<Tree<HostTensor>>;
}

/** What a call is bound to. */
export interface Binding {
  /** A structure like the program's inputs, of typed arrays. */
  readonly inputs: Tree<BoundArray>;
  /** A structure like the program's outputs; null leaves, or null for all, get arrays of their own. */
  readonly outputs?: Tree<BoundArray | null> | null;
  /** Paths of outputs, with those of the inputs that they are copied to after each run. */
  readonly carried?: Readonly<Record<string, string>>;
  /**
   * How many times `run` may be told to run. An array of so many times its tensor's elements then has a part for each
   * run, one behind another: what the first run reads or writes, what the second does. Outputs without an array get such.
   */
  readonly runs?: number;
}

/** Bytes of a cache line: arrays that lie in one buffer have none in common. */
const LINE = 64;

/** What run number `run` reads of an array with parts for so many runs. */
const partOf = (array: HostArray, runs: number, run: number): HostArray => {
  const size = array.length / runs;
  return runs === 1 ? array : array.subarray(run * size, (run + 1) * size);
};

const isArray = (value: unknown): value is BoundArray => ArrayBuffer.isView(value);
const isArrayOrNull = (value: unknown): value is BoundArray | null => value === null || isArray(value);

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
    /** Whether a second function follows in every run: inputs and outputs are pairs then. */
    readonly follows = false,
  ) {
    this.inputs = program.inputs;
    this.outputs = program.outputs;
  }

  /**
   * Fixes the memory of a call. Arrays may be views into one larger buffer (over a SharedArrayBuffer they are copied at
   * each run), and an output may lie on an input of as many elements: where the program would write some before their
   * last read, it gets memory of its own, which is copied there after each run.
   *
   * @throws CompilerError where an array is missing, of another type or of another length than its tensor, and where an
   *   output lies on another or on a part of an input.
   */
  bind({ inputs, outputs = null, carried = {}, runs = 1 }: Binding): BoundCall {
    this.checkAlive();
    const { inputPaths, outputPaths } = this.program;
    const pairs = Object.entries(carried).map(([from, to]) => ({
      output: this.indexOf('output', outputPaths, from),
      input: this.indexOf('input', inputPaths, to),
    }));
    // What is carried is one array for all runs.
    const partsOf = (kind: 'input' | 'output', index: number) =>
      pairs.some((pair) => pair[kind] === index) ? 1 : runs;
    const given = flattenTree<BoundArray>(inputs, isArray);
    const wanted =
      outputs === null
        ? outputPaths.map((path) => ({ path, value: null }))
        : flattenTree<BoundArray | null>(outputs, isArrayOrNull);
    // Halves are told as what they stand for.
    const read = this.match('input', given, partsOf) as HostArray[];
    const results = this.match('output', wanted, partsOf).map(
      (array, i) => array ?? this.newArray('output', i, partsOf('output', i)),
    ) as HostArray[];
    const shared = this.sharedMemory(read, results);
    const areParted = (kind: 'input' | 'output', arrays: readonly HostArray[]) =>
      arrays.map(({ length }, i) => length > sizeOf(this.specsOf(kind)[i]!.shape));
    const parted = { runs, inputs: areParted('input', read), outputs: areParted('output', results) };
    const copied = new Set(shared.map(({ output }) => output));
    const written = results.map((array, i) => (copied.has(i) ? array.slice() : array));
    const flat = { inputs: read, outputs: written, carried: [...pairs, ...shared] };
    const run = bindRepeated(this.backend, runs > 1 ? { ...flat, parted } : flat);
    let next = 0;
    const tree = mapTree<TensorSpec, HostTensor>(this.outputs, isSpec, ({ shape, dtype }) => ({
      shape,
      dtype,
      data: results[next++]!,
    }));
    return {
      outputs: tree,
      problemOf: (run) => this.badIndex(read, parted, run),
      run: async (times = 1) => {
        this.checkAlive();
        if (runs > 1 && times > runs)
          throw new CompilerError(`${this.name}: bound for ${runs} runs at a time, and asked for ${times}.`);
        await letEventsIn();
        for (let i = 0; i < times; i++) {
          const bad = this.badIndex(read, parted, i);
          if (bad === undefined) continue;
          // Those before it are as good as any.
          if (i > 0) await run(i);
          throw bad;
        }
        try {
          await run(times);
        } catch (error) {
          throw error instanceof IndexError ? await this.located(error, read, parted) : error;
        }
        return tree;
      },
    };
  }

  /** What runs it. */
  get runner(): Runner {
    return this.backend.runner;
  }

  /** In which most of its products multiply, by their FLOPs. */
  get precision(): Precision {
    return productPrecision(this.program.graph);
  }

  /** Whether `ops.updateSlice` replaces slices in place where its result is bound to its source's memory. */
  get updatesInPlace(): boolean {
    return this.backend.updatesInPlace === true;
  }

  /**
   * Zeroed arrays for the inputs at `paths`, Uint16Arrays where the engine keeps them in bfloat16. They lie in one buffer:
   * large pages are possible in large pieces of memory alone.
   */
  newInputs(paths: readonly string[]): BoundArray[] {
    let end = 0;
    const places = paths.map((path) => {
      const index = this.indexOf('input', this.program.inputPaths, path);
      const spec = this.specsOf('input')[index]!;
      const [isHalf, begin] = [this.isHalf('input', index), end];
      end += Math.ceil((isHalf ? 2 * sizeOf(spec.shape) : byteSize(spec)) / LINE) * LINE;
      return { spec, isHalf, begin };
    });
    const buffer = new ArrayBuffer(end);
    return places.map(({ spec: { dtype, shape }, isHalf, begin }) =>
      isHalf
        ? new Uint16Array(buffer, begin, sizeOf(shape))
        : hostArrayIn(buffer, begin, dtype, sizeOf(shape)),
    );
  }

  /** Says that frozen inputs have changed: what follows from them is worked out anew at the next run. */
  refresh(): void {
    this.checkAlive();
    this.backend.refresh?.();
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

  /** The first index that is out of range in what a run is to read. */
  private badIndex(read: readonly HostArray[], parted: Parted, run: number): IndexError | undefined {
    const { checks = [], inputPaths } = this.program;
    for (const check of checks) {
      const { input } = check;
      // Looked at with the first run.
      if (run > 0 && !parted.inputs[input]) continue;
      const data = partOf(read[input]!, parted.inputs[input] ? parted.runs : 1, run);
      const position = findBad(check, data);
      if (position < 0) continue;
      const at = placeIn(this.specsOf('input')[input]!.shape, position);
      const problem = problemOf(data[position]!, check);
      return new IndexError(this.name, { input: inputPaths[input]!, at, problem, run });
    }
    return undefined;
  }

  /** An index that the program worked out, as it was told by what runs it; looks for it where that can be told. */
  private async located(error: IndexError, read: readonly HostArray[], parted: Parted): Promise<IndexError> {
    const inputs = read.map((array, i) => partOf(array, parted.inputs[i] ? parted.runs : 1, error.run));
    const found = await findComputed(this.program.graph, inputs).catch(() => undefined);
    return found === undefined ? error : new IndexError(this.name, { ...found, input: '', run: error.run });
  }

  private checkAlive(): void {
    if (this.disposed) throw new CompilerError(`${this.name}: the program has been disposed of.`);
  }

  private indexOf(kind: 'input' | 'output', paths: readonly string[], path: string): number {
    const index = paths.indexOf(path);
    if (index < 0) throw new CompilerError(`${this.name}: there is no ${kind} '${path}'.`);
    return index;
  }

  private specsOf(kind: 'input' | 'output'): readonly TensorSpec[] {
    const { graph } = this.program;
    return kind === 'input' ? graph.inputs : graph.outputs;
  }

  private isHalf(kind: 'input' | 'output', index: number): boolean {
    return this.backend.halves?.[`${kind}s`][index] === true;
  }

  private newArray(kind: 'input' | 'output', index: number, parts: number): BoundArray {
    const { dtype, shape } = this.specsOf(kind)[index]!;
    const size = parts * sizeOf(shape);
    return this.isHalf(kind, index) ? new Uint16Array(size) : newHostArray(dtype, size);
  }

  /**
   * Outputs on inputs that the program reads after it has written there. What follows in the same run may write over what the
   * first function has read, and reads what it has written.
   */
  private sharedMemory(read: readonly BoundArray[], results: readonly BoundArray[]): Carried[] {
    const bound = (paths: readonly string[], arrays: readonly BoundArray[]): Bound[] =>
      arrays.map((array, index) => ({ path: paths[index]!, index, array }));
    const inputs = bound(this.program.inputPaths, read);
    const outputs = bound(this.program.outputPaths, results);
    checkOutputsApart(this.name, outputs);
    const turns = this.follows ? ['0.', '1.'] : [''];
    return turns.flatMap((turn) => {
      const ofTurn = ({ path }: Bound): boolean => path.startsWith(turn);
      const found = outputsOnInputs(this.name, inputs.filter(ofTurn), outputs.filter(ofTurn)).filter(
        ({ output, input }) => this.backend.mayOverwrite?.(output, input) !== true,
      );
      for (const { output, input } of found) {
        if (read[input]!.length === sizeOf(this.specsOf('input')[input]!.shape)) continue;
        throw new CompilerError(
          `${this.name}: output '${outputs[output]!.path}' is bound to memory of input '${inputs[input]!.path}', is written before that is read for the last time, and has a part for each run; bind it to memory of its own.`,
        );
      }
      return found;
    });
  }

  private match<T extends BoundArray | null>(
    kind: 'input' | 'output',
    leaves: readonly { path: string; value: T }[],
    partsOf: (kind: 'input' | 'output', index: number) => number,
  ): T[] {
    const paths = kind === 'input' ? this.program.inputPaths : this.program.outputPaths;
    const specs = this.specsOf(kind);
    const byPath = new Map(leaves.map((leaf) => [leaf.path, leaf.value]));
    return paths.map((path, i) => {
      const array = byPath.get(path);
      if (array === undefined)
        throw new CompilerError(`${this.name}: no array for ${kind} '${path}' (${formatSpec(specs[i]!)}).`);
      if (array !== null) this.check(kind, i, path, array, partsOf(kind, i));
      return array;
    });
  }

  private check(
    kind: 'input' | 'output',
    index: number,
    path: string,
    array: BoundArray,
    parts: number,
  ): void {
    const spec = this.specsOf(kind)[index]!;
    const whole = { float32: Float32Array, int32: Int32Array, bool: Uint8Array }[spec.dtype];
    const type = this.isHalf(kind, index) ? Uint16Array : whole;
    const size = sizeOf(spec.shape);
    if (array instanceof type && (array.length === size || array.length === parts * size)) return;
    throw new CompilerError(
      `${this.name}: ${kind} '${path}' is ${formatSpec(spec)} and needs a ${type.name} of ${size} elements` +
        `${parts === 1 ? '' : `, or ${parts} times as many`}, got a ${array.constructor.name} of ${array.length}.`,
    );
  }
}
