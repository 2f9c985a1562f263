/** @file Executable: a compiled program on host memory. */
import { letEventsIn } from '../../system/index.js';
import { findComputed } from '../onnx/indices.js';
import type { Addressed } from '../rules/operation.js';
import type { Program } from '../trace/tracedProgram.js';
import { isSpec } from '../trace/tracedProgram.js';
import type { Backend, Carried, Pages, Runner, Stacked } from './backend.js';
import { productPrecision } from './cost.js';
import { findBad, type IndexCheck, IndexError, placeIn, problemOf } from './indexChecks.js';
import { type Bound, checkOutputsApart, outputsOnInputs } from './overlap.js';
import { heldSpecs, Ports } from './ports.js';
import type { Precision } from './precision.js';
import { bindRepeated } from './repeat.js';
import { TensorMemory } from './tensorMemory.js';
import {
  type BoundArray,
  CompilerError,
  type HostArray,
  type HostTensor,
  type TensorSpec,
  type Tree,
} from './tensors.js';
import { mapTree } from './tensorTrees.js';

/** A call bound to fixed memory: runs neither allocate nor copy. */
export interface BoundCall<Results = Tree<HostTensor>> {
  /** The results. Their data are the bound arrays, which the next run overwrites unless they are stacked by run. */
  readonly outputs: Results;
  /**
   * The first bad index that run `run` (from 0) of the next call would read; undefined if none. `run` checks as well.
   */
  problemOf(run: number): IndexError | undefined;
  /**
   * Runs the program `times` times, 1 by default; after each run, copies the carried outputs to their inputs.
   *
   * @throws CompilerError for more runs than `bind` was given; IndexError for an index out of range, after the runs
   *   before it have completed.
   */
  run(times?: number): Promise<Results>;
}

/** The arrays of a call. */
export interface Binding {
  /** Typed arrays in the structure of the program's inputs. */
  readonly inputs: Tree<BoundArray>;
  /** Typed arrays in the structure of the program's outputs; a null leaf, or null for all, allocates. */
  readonly outputs?: Tree<BoundArray | null> | null;
  /** Outputs and the inputs that they are copied to after each run, by path. */
  readonly carried?: Readonly<Record<string, string>>;
  /**
   * Most runs per call. An array with `runs` times its tensor's elements is stacked: run i reads or writes its i-th
   * slice. Outputs without an array are stacked.
   */
  readonly runs?: number;
}

/** The slice of an array, stacked over `runs` runs, that run `run` reads or writes. */
const runSlice = (array: HostArray, runs: number, run: number): HostArray => {
  const size = array.length / runs;
  return runs === 1 ? array : array.subarray(run * size, (run + 1) * size);
};

/** A compiled program. Made by `compile`. */
export class Executable<Results = Tree<HostTensor>> {
  readonly inputs: Tree<TensorSpec>;
  readonly outputs: Tree<TensorSpec>;
  private readonly inputPorts: Ports;
  private readonly outputPorts: Ports;
  private disposed = false;

  constructor(
    /** Used in messages. */
    readonly name: string,
    private readonly program: Program,
    private readonly backend: Backend,
    /** Whether a second function follows in every run; inputs and outputs are then pairs. */
    private readonly follows = false,
  ) {
    const { graph, inputPaths, outputPaths } = program;
    const { storages } = backend;
    this.inputs = program.inputs;
    this.outputs = program.outputs;
    this.inputPorts = new Ports(name, 'input', inputPaths, heldSpecs(graph.inputs, storages?.inputs));
    this.outputPorts = new Ports(name, 'output', outputPaths, heldSpecs(graph.outputs, storages?.outputs));
  }

  /**
   * Binds a call to fixed memory. Arrays may be views into a larger buffer; those over a SharedArrayBuffer are copied
   * at each run. An output may share the memory of an input with as many elements: where the program would overwrite
   * elements before their last read, it writes to memory of its own, which is copied there after each run.
   *
   * @throws CompilerError where an array is missing or has another type or length than its tensor, and where an output
   *   overlaps another output or a part of an input.
   */
  bind({ inputs, outputs = null, carried = {}, runs = 1 }: Binding): BoundCall<Results> {
    this.checkAlive();
    const pairs = Object.entries(carried).map(([from, to]) => ({
      output: this.outputPorts.indexOf(from),
      input: this.inputPorts.indexOf(to),
    }));
    // Carried arrays are not stacked.
    const read = this.inputPorts.match(inputs, (i) => (pairs.some(({ input }) => input === i) ? 1 : runs));
    const results = this.outputPorts.match(outputs, (i) =>
      pairs.some(({ output }) => output === i) ? 1 : runs,
    );
    const shared = this.sharedMemory(read, results);
    const stacked = {
      runs,
      inputs: this.inputPorts.areStacked(read),
      outputs: this.outputPorts.areStacked(results),
    };
    const copied = new Set(shared.map(({ output }) => output));
    const outputArrays = results.map((array, i) => (copied.has(i) ? array.slice() : array));
    const flat = { inputs: read, outputs: outputArrays, carried: [...pairs, ...shared] };
    const run = bindRepeated(this.backend, runs > 1 ? { ...flat, stacked } : flat);
    const memories = TensorMemory.among([...read, ...results]);
    const written = TensorMemory.among(results);
    let next = 0;
    const tree = mapTree<TensorSpec, HostTensor>(this.outputs, isSpec, ({ shape, dtype }) => ({
      shape,
      dtype,
      data: results[next++]!,
    })) as Results;
    return {
      outputs: tree,
      problemOf: (run) => this.badIndex(read, stacked, run),
      run: async (times = 1) => {
        this.checkAlive();
        if (runs > 1 && times > runs)
          throw new CompilerError(
            `${this.name}: expected at most ${runs} runs per call, as bound, got ${times}.`,
          );
        await letEventsIn();
        if (!this.backend.holdsCopies) {
          for (const memory of memories) await memory.toHost();
          for (const memory of written) memory.wrote();
        }
        for (let i = 0; i < times; i++) {
          const bad = this.badIndex(read, stacked, i);
          if (bad === undefined) continue;
          // The runs before the bad index are valid.
          if (i > 0) await run(i);
          throw bad;
        }
        try {
          await run(times);
        } catch (error) {
          for (const memory of memories) await memory.toHost();
          throw error instanceof IndexError ? await this.located(error, read, stacked) : error;
        }
        return tree;
      },
    };
  }

  /** The engine behind the program. */
  get runner(): Runner {
    return this.backend.runner;
  }

  /** The precision of most product FLOPs. */
  get precision(): Precision {
    return productPrecision(this.program.graph);
  }

  /** Whether `ops.updateSlice` writes in place where its result is bound to its operand's memory. */
  get updatesInPlace(): boolean {
    return this.backend.updatesInPlace === true;
  }

  /** Zeroed arrays for the inputs at `paths`, in the storage that the engine holds them in. */
  newInputs(paths: readonly string[]): BoundArray[] {
    return this.inputPorts.newArrays(paths);
  }

  /** Pages under its arrays, where the engine reads and writes these where they are. */
  get pages(): Pages | undefined {
    return this.backend.pages;
  }

  /** Marks frozen inputs as changed; the next run recomputes what depends on them. */
  refresh(): void {
    this.checkAlive();
    this.backend.refresh?.();
  }

  /** Runs once, on a structure of host tensors. */
  async run(inputs: Tree<HostTensor>): Promise<Results> {
    const arrays = mapTree<HostTensor, HostArray>(
      inputs,
      isSpec as (value: unknown) => value is HostTensor,
      (tensor) => tensor.data,
    );
    return this.bind({ inputs: arrays }).run();
  }

  /** Bounds of the indices in an input, by its path; the least where several operations read them. */
  indexLimits(): ReadonlyMap<string, Addressed & { readonly where: string }> {
    const limits = new Map<string, IndexCheck>();
    for (const check of this.program.checks ?? []) {
      const path = this.inputPorts.paths[check.input]!;
      if (!((limits.get(path)?.limit ?? Number.POSITIVE_INFINITY) <= check.limit)) limits.set(path, check);
    }
    return limits;
  }

  /** Frees the compiled program. Further runs are errors; disposing again is not. */
  async dispose(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    await this.backend.dispose();
  }

  /** The first index out of range among the inputs that run `run` reads. */
  private badIndex(read: readonly HostArray[], stacked: Stacked, run: number): IndexError | undefined {
    const { paths, specs } = this.inputPorts;
    const { checks = [] } = this.program;
    for (const check of checks) {
      const { input } = check;
      // An array that all runs share was checked with the first run.
      if (run > 0 && !stacked.inputs[input]) continue;
      const data = runSlice(read[input]!, stacked.inputs[input] ? stacked.runs : 1, run);
      const position = findBad(check, data);
      if (position < 0) continue;
      const at = placeIn(specs[input]!.shape, position);
      const problem = problemOf(data[position]!, check);
      return new IndexError(this.name, { input: paths[input]!, at, problem, run });
    }
    return undefined;
  }

  /** Completes an engine's error for a computed index: recomputes the indices to find the bad one where possible. */
  private async located(
    error: IndexError,
    read: readonly HostArray[],
    stacked: Stacked,
  ): Promise<IndexError> {
    const inputs = read.map((array, i) => runSlice(array, stacked.inputs[i] ? stacked.runs : 1, error.run));
    const found = await findComputed(this.program.graph, inputs).catch(() => undefined);
    return found === undefined ? error : new IndexError(this.name, { ...found, input: '', run: error.run });
  }

  private checkAlive(): void {
    if (this.disposed) throw new CompilerError(`${this.name}: the program has been disposed of.`);
  }

  /**
   * Outputs that overwrite an input before its last read, and so must be copied. The function that follows may
   * overwrite what the first one has read, and reads what it has written.
   */
  private sharedMemory(read: readonly BoundArray[], results: readonly BoundArray[]): Carried[] {
    const [inputs, outputs] = [this.inputPorts.bound(read), this.outputPorts.bound(results)];
    checkOutputsApart(this.name, outputs);
    const turns = this.follows ? ['0.', '1.'] : [''];
    const found = turns.flatMap((turn) => {
      const ofTurn = ({ path }: Bound): boolean => path.startsWith(turn);
      return outputsOnInputs(this.name, inputs.filter(ofTurn), outputs.filter(ofTurn));
    });
    const shared = found.filter(({ output, input }) => this.backend.mayOverwrite?.(output, input) !== true);
    const areStacked = this.inputPorts.areStacked(read);
    for (const { output, input } of shared) {
      if (areStacked[input])
        throw new CompilerError(
          `${this.name}: output '${outputs[output]!.path}' shares memory with stacked input '${inputs[input]!.path}' and is written before that is last read; bind it to memory of its own.`,
        );
    }
    return shared;
  }
}
