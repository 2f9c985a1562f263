/** @file Compiled function for one signature: its executable, bound to the memory of its variables. */
import {
  type BoundCall,
  type CompileOptions,
  compileProgram,
  type Engine,
  type Executable,
  type HostArray,
  type HostTensor,
  newHostArray,
  type PrngKey,
  sizeOf,
  type TensorSpec,
  type tf,
} from '../compiler/index.js';
import type { Arguments } from './callStructure.js';
import { numberIn, tensorIn } from './optimizerTrace.js';
import { discard, discover, type StateProgram, stateProgram } from './stateTrace.js';
import { adopt, arrayOf, bringValues, partFromClones, showValues } from './variableMemory.js';

/** Options of the compilation. */
export type ProgramOptions = Pick<CompileOptions, 'name' | 'numThreads' | 'runs' | 'explain'> & {
  readonly engine?: Exclude<Engine, 'eager'>;
};

type Specs = Record<string, Record<string, TensorSpec> | undefined>;
type Arrays = Record<string, HostArray>;

const newArrays = (specs: Record<string, TensorSpec> = {}): Arrays =>
  Object.fromEntries(
    Object.entries(specs).map(([key, { dtype, shape }]) => [key, newHostArray(dtype, sizeOf(shape))]),
  );

const memoryOf = (variables: ReadonlyMap<string, tf.Variable>): Arrays =>
  Object.fromEntries([...variables].map(([key, variable]) => [key, arrayOf(variable)]));

/** Copies the values of arguments into the program's arrays. */
async function fill(arrays: Arrays, given: Arguments): Promise<void> {
  for (const [key, array] of Object.entries(arrays)) array.set(await given.arrays[Number(key)]!.values);
}

/** A function compiled for the arguments of one signature. */
export class StatefulProgram {
  private readonly variables: readonly tf.Variable[];
  private readonly assigned: readonly tf.Variable[];
  private readonly args: Arrays;
  private readonly tensors: Arrays;
  private readonly numbers: Arrays;
  private readonly keys: Arrays;
  private readonly read = new Map<string, object>();
  private readonly call: BoundCall;

  private constructor(
    private readonly traced: StateProgram,
    private readonly executable: Executable,
  ) {
    const inputs = traced.program.inputs as unknown as Specs;
    this.variables = [...traced.variables.values()];
    this.assigned = [...traced.assigned.values()];
    this.args = newArrays(inputs.arguments);
    this.tensors = newArrays(inputs.tensors);
    this.numbers = newArrays(inputs.numbers);
    this.keys = newArrays(inputs.keys);
    const { args, tensors, numbers, keys } = this;
    const results = newArrays((traced.program.outputs as unknown as Specs).results);
    const trees = {
      inputs: { arguments: args, tensors, numbers, keys, variables: memoryOf(traced.variables) },
      outputs: { results, assigned: memoryOf(traced.assigned), created: {} },
    };
    this.call = executable.bind(trees);
  }

  /** Traces and compiles `f`; gives variables that it makes their first values, which may be drawn. */
  static async compile(
    f: (...args: any[]) => unknown,
    given: Arguments,
    options: ProgramOptions,
    nextKey: () => PrngKey,
  ): Promise<StatefulProgram> {
    const found = discover(f, given);
    if (found.created !== undefined) await initialize(found, given, nextKey());
    const traced = stateProgram(f, given, found);
    return new StatefulProgram(traced, await compileProgram(traced.program, options));
  }

  /** Whether the program still matches the function: its variables and optimizers are the same. */
  isCurrent(): boolean {
    const { optimizers, trainable } = this.traced;
    const isSame = (variable: tf.Variable, i: number): boolean =>
      !variable.isDisposed && variable.trainable === trainable[i];
    return this.variables.every(isSame) && optimizers.isCurrent();
  }

  /**
   * Runs once; gives the function's results, with values converted by `wrap`.
   *
   * @param nextKey the key of this call's draws.
   */
  async run(
    given: Arguments,
    wrap: (result: HostTensor) => unknown,
    nextKey: () => PrngKey,
  ): Promise<unknown> {
    await fill(this.args, given);
    await bringValues([...this.variables, ...this.assigned]);
    for (const [key, field] of this.traced.tensors) {
      const tensor = tensorIn(field);
      if (this.read.get(key) === tensor.dataId) continue;
      this.tensors[key]!.set(await tensor.data());
      this.read.set(key, tensor.dataId);
    }
    for (const [key, number] of this.traced.numbers)
      this.numbers[key]!.fill(number.factor * numberIn(number));
    for (const key of Object.values(this.keys)) key.set(nextKey());
    partFromClones(this.assigned);
    let outputs: Record<string, Record<string, HostTensor>>;
    try {
      outputs = (await this.call.run()) as typeof outputs;
    } finally {
      showValues(this.assigned);
    }
    this.traced.optimizers.step();
    // The next run overwrites the arrays.
    const results = Object.values(outputs.results ?? {}).map((result) =>
      wrap({ ...result, data: result.data.slice() }),
    );
    return this.traced.rebuild(results);
  }

  dispose(): Promise<void> {
    return this.executable.dispose();
  }
}

/** Gives the variables that a trace has made their initial values. */
async function initialize(
  { created, traced }: ReturnType<typeof discover>,
  given: Arguments,
  prngKey: PrngKey,
): Promise<void> {
  const { program, variables } = created!;
  try {
    const inputs = program.inputs as unknown as Specs;
    const args = newArrays(inputs.arguments);
    await fill(args, given);
    const read = new Map(
      Object.keys(inputs.variables ?? {}).map((key) => [key, traced.variables[Number(key)]!]),
    );
    await bringValues([...read.values()]);
    const [tensors, keys] = [newArrays(inputs.tensors), newArrays(inputs.keys)];
    for (const key of Object.values(keys)) key.set(prngKey);
    const executable = await compileProgram(program, { name: 'initial values', engine: 'onnx' });
    const call = executable.bind({ inputs: { arguments: args, tensors, keys, variables: memoryOf(read) } });
    const { created } = (await call.run()) as Record<string, Record<string, HostTensor>>;
    variables.forEach((variable, i) => void adopt(variable, created![i]!.data));
    await executable.dispose();
  } catch (error) {
    discard(variables);
    throw error;
  }
}
