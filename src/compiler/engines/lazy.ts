/** @file Lazy execution: tf operations are recorded, and reading a value compiles and runs what it depends on. */
import { Turns } from '../../system/index.js';
import { hashGraphs } from '../native/stored/graphHash.js';
import type { Executable } from '../program/executable.js';
import { type Graph, type Node, newValue, type Value } from '../program/ir.js';
import {
  CompilerError,
  formatSpec,
  type HostArray,
  type HostTensor,
  type TensorSpec,
} from '../program/tensors.js';
import type { Mark } from '../trace/regions.js';
import type { Trace } from '../trace/traceBackend.js';
import { recordLazily } from '../trace/tracing.js';
import { compileProgram } from './compile.js';
import type { Engine } from './engine.js';
import { KeptPrograms } from './keptPrograms.js';
import { GraphBreaks } from './lazyBreaks.js';

/** Options of lazy execution. */
interface LazyOptions {
  /** `auto` by default. */
  readonly engine?: Exclude<Engine, 'eager'>;
  /** Threads per operation; one per core by default. */
  readonly numThreads?: number;
  /** Programs that are kept for values of the same kind, 64 by default; the one that was used last is kept longest. */
  readonly maxPrograms?: number;
  /**
   * Whether operations that no program can hold, such as those on strings or tf.unique, run at once on tfjs's cpu
   * backend, between programs. True by default; otherwise they are errors.
   */
  readonly graphBreaks?: boolean;
}

/** Lazy execution, until it is disposed of. */
export interface Lazy {
  /** How often operations ran outside of programs, by the names of their tfjs kernels. */
  readonly graphBreaks: Readonly<Record<string, number>>;
  /** Returns to the backend that was current before. Values that were not read are lost. */
  dispose(): Promise<void>;
}

/** Operations whose result has the elements of their input. */
const SAME_ELEMENTS = new Set(['Identity', 'Reshape', 'ExpandDims']);

const MAX_PROGRAMS = 64;

/** A value's graph, and the data of its inputs. */
interface Needed {
  readonly graph: Graph;
  readonly data: readonly HostArray[];
}

/** A recording that forgets what no tensor depends on: each value holds the operations behind it, and nothing else does. */
class Recording implements Trace {
  readonly abstract = false;
  readonly breaks?: GraphBreaks;
  readonly constants = new Map<string, Value>();
  readonly kept = null;
  readonly marks = new WeakMap<Node, Mark>();
  readonly names = new WeakMap<Value, string>();
  readonly nodes = {
    push: (node: Node): void => {
      for (const output of node.outputs) this.producers.set(output, node);
    },
  };
  private readonly producers = new WeakMap<Value, Node>();
  private readonly results = new WeakMap<Value, HostArray>();
  private readonly programs: KeptPrograms<Executable>;
  private readonly turns = new Turns();

  constructor(private readonly options: LazyOptions) {
    this.programs = new KeptPrograms('lazy', options.maxPrograms ?? MAX_PROGRAMS);
    if (options.graphBreaks ?? true) this.breaks = new GraphBreaks();
  }

  /** The elements of a value. */
  read(value: Value): Promise<HostArray> {
    return this.turns.take(() => this.compute(value));
  }

  dispose(): Promise<void> {
    return this.turns.take(() => this.programs.dispose());
  }

  /** The elements of a value that is a constant or was read, or of such a value in another shape. */
  known(value: Value): HostArray | undefined {
    const node = this.producers.get(value);
    return node !== undefined && SAME_ELEMENTS.has(node.op)
      ? this.known(node.inputs[0]!)
      : this.computed(value);
  }

  private computed(value: Value): HostArray | undefined {
    return value.data ?? this.results.get(value);
  }

  private async compute(value: Value): Promise<HostArray> {
    const known = this.computed(value);
    if (known !== undefined) return known;
    const { graph, data } = this.needed(value);
    const program = await this.programs.get(hashGraphs([graph]).hash, () => this.compile(graph));
    const inputs = graph.inputs.map(({ shape, dtype }, i): HostTensor => ({ shape, dtype, data: data[i]! }));
    const [result] = (await program.run(inputs)) as readonly HostTensor[];
    this.results.set(value, result!.data);
    this.producers.delete(value);
    return result!.data;
  }

  /** The operations behind a value, back to values that are known. */
  private needed(value: Value): Needed {
    const inputs: Value[] = [];
    const data: HostArray[] = [];
    const nodes: Node[] = [];
    const stands = new Map<Value, Value>();
    const pending: (Value | Node)[] = [value];
    const begun = new Set<Node>();
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if ('op' in next) {
        const { call: _, ...node } = next;
        nodes.push({ ...node, inputs: node.inputs.map((input) => stands.get(input) ?? input) });
        continue;
      }
      if (stands.has(next)) continue;
      const known = this.computed(next);
      if (known !== undefined) {
        const input = newValue(next, { name: String(inputs.length) });
        stands.set(next, input);
        inputs.push(input);
        data.push(known);
        continue;
      }
      const node = this.producers.get(next);
      if (node === undefined)
        throw new CompilerError(`A tensor ${formatSpec(next)} of another trace was used in lazy execution.`);
      if (begun.has(node)) continue;
      begun.add(node);
      // Comes up again once all of its inputs are there.
      pending.push(node, ...node.inputs);
    }
    return { graph: { inputs, outputs: [value], nodes }, data };
  }

  private compile(graph: Graph): Promise<Executable> {
    const specOf = ({ shape, dtype }: Value): TensorSpec => ({ shape, dtype });
    const traced = {
      graph,
      inputs: graph.inputs.map(specOf),
      outputs: graph.outputs.map(specOf),
      inputPaths: graph.inputs.map((_, i) => String(i)),
      outputPaths: ['0'],
    };
    const { engine = 'auto', numThreads } = this.options;
    return compileProgram(traced, { name: 'lazy', engine, ...(numThreads && { numThreads }) });
  }
}

/**
 * Records tf operations from now on instead of running them. `await x.data()`, or `array()`, compiles and runs what x
 * depends on; what was read is not computed again. `dataSync` throws for a value that was not read before.
 *
 * @throws CompilerError within a traced function, in lazy execution, and for a bad `maxPrograms`.
 */
export function lazy(options: LazyOptions = {}): Lazy {
  const recording = new Recording(options);
  const leave = recordLazily(recording);
  return {
    get graphBreaks() {
      return recording.breaks?.counted ?? {};
    },
    dispose: async () => {
      leave();
      await recording.dispose();
    },
  };
}
