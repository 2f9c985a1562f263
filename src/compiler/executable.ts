/** @file A compiled program that runs on host memory. */
import { letEventsIn } from '../system/index.js';
import type { Backend, Carried, Parted, Runner } from './backend.js';
import { productPrecision } from './cost.js';
import { findBad, IndexError, placeIn, problemOf } from './indexChecks.js';
import { findComputed } from './onnx/indices.js';
import { type Bound, checkOutputsApart, outputsOnInputs } from './overlap.js';
import { Ports } from './ports.js';
import type { Precision } from './precision.js';
import { bindRepeated } from './repeat.js';
import {
  type BoundArray,
  CompilerError,
  type HostArray,
  type HostTensor,
  type TensorSpec,
  type Tree,
} from './tensors.js';
import { mapTree } from './tensorTrees.js';
import type { Program } from './tracedProgram.js';
import { isSpec } from './tracedProgram.js';

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

/** What run number `run` reads of an array with parts for so many runs. */
const partOf = (array: HostArray, runs: number, run: number): HostArray => {
  const size = array.length / runs;
  return runs === 1 ? array : array.subarray(run * size, (run + 1) * size);
};

/** A compiled program. Made by `compile`. */
export class Executable {
  readonly inputs: Tree<TensorSpec>;
  readonly outputs: Tree<TensorSpec>;
  private readonly inputPorts: Ports;
  private readonly outputPorts: Ports;
  private disposed = false;

  constructor(
    /** For messages. */
    readonly name: string,
    private readonly program: Program,
    private readonly backend: Backend,
    /** Whether a second function follows in every run: inputs and outputs are pairs then. */
    private readonly follows = false,
  ) {
    const { graph, inputPaths, outputPaths } = program;
    this.inputs = program.inputs;
    this.outputs = program.outputs;
    this.inputPorts = new Ports(name, 'input', inputPaths, graph.inputs, backend.halves?.inputs);
    this.outputPorts = new Ports(name, 'output', outputPaths, graph.outputs, backend.halves?.outputs);
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
    const pairs = Object.entries(carried).map(([from, to]) => ({
      output: this.outputPorts.indexOf(from),
      input: this.inputPorts.indexOf(to),
    }));
    // What is carried is one array for all runs.
    const read = this.inputPorts.match(inputs, (i) => (pairs.some(({ input }) => input === i) ? 1 : runs));
    const results = this.outputPorts.match(outputs, (i) =>
      pairs.some(({ output }) => output === i) ? 1 : runs,
    );
    const shared = this.sharedMemory(read, results);
    const parted = {
      runs,
      inputs: this.inputPorts.areParted(read),
      outputs: this.outputPorts.areParted(results),
    };
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

  /** Zeroed arrays for the inputs at `paths`, Uint16Arrays where the engine keeps them in bfloat16. */
  newInputs(paths: readonly string[]): BoundArray[] {
    return this.inputPorts.newArrays(paths);
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
    const { paths, specs } = this.inputPorts;
    const { checks = [] } = this.program;
    for (const check of checks) {
      const { input } = check;
      // Looked at with the first run.
      if (run > 0 && !parted.inputs[input]) continue;
      const data = partOf(read[input]!, parted.inputs[input] ? parted.runs : 1, run);
      const position = findBad(check, data);
      if (position < 0) continue;
      const at = placeIn(specs[input]!.shape, position);
      const problem = problemOf(data[position]!, check);
      return new IndexError(this.name, { input: paths[input]!, at, problem, run });
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

  /**
   * Outputs on inputs that the program reads after it has written there. What follows in the same run may write over what the
   * first function has read, and reads what it has written.
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
    const areParted = this.inputPorts.areParted(read);
    for (const { output, input } of shared) {
      if (areParted[input])
        throw new CompilerError(
          `${this.name}: output '${outputs[output]!.path}' is bound to memory of input '${inputs[input]!.path}', is written before that is read for the last time, and has a part for each run; bind it to memory of its own.`,
        );
    }
    return shared;
  }
}
