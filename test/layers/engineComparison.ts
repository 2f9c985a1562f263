/** @file Layers on each engine: losses, outputs and gradients, compared with those of the eager one. */
import { expect } from 'vitest';
import {
  compile,
  compileProgram,
  type Engine,
  type Executable,
  type HostTensor,
  type Program,
  sizeOf,
  type Tensor,
  tf,
  traceProgram,
  valueAndGrad,
} from '../../src/compiler/index.js';
import { runInContext } from '../../src/layers/index.js';
import { engines } from '../compiler/engines.js';
import { repeatedly } from '../compiler/repeatedRuns.js';
import { numbers } from './helpers.js';

export type Tensors = Readonly<Record<string, Tensor>>;
export type Host = HostTensor & { readonly shape: number[] };

/** Random numbers in (-factor, factor). */
export const floats = (shape: readonly number[], seed = 1, factor = 1): Host => ({
  shape: [...shape],
  dtype: 'float32',
  data: numbers(sizeOf(shape), seed).map((x) => x * factor),
});

/** Ids that cover all classes below `classes`, in no order. */
export const ids = (shape: readonly number[], classes: number): Host => ({
  shape: [...shape],
  dtype: 'int32',
  data: Int32Array.from({ length: sizeOf(shape) }, (_, i) => (i * 7 + 3) % classes),
});

/** Given numbers of one type. */
export const given = (
  dtype: 'float32' | 'int32',
  data: readonly number[],
  shape: readonly number[],
): Host => ({
  shape: [...shape],
  dtype,
  data: dtype === 'int32' ? Int32Array.from(data) : Float32Array.from(data),
});

/** A call of a layer, and what it reads. */
export interface Subject {
  readonly title: string;
  /** The call, within a context with the parameters and the state. */
  readonly call: (inputs: Tensors) => Tensor;
  readonly inputs: Readonly<Record<string, Host>>;
  /** Values of variables by path. */
  readonly params: Readonly<Record<string, Host>>;
  /** Values of variables without gradients. */
  readonly state?: Readonly<Record<string, Host>>;
  readonly doEval?: boolean;
  /** Whether gradients are compared, as they are by default. */
  readonly hasGradients?: boolean;
  /** Largest difference between engines, as part of 1 + |value|; 2e-5 by default. */
  readonly tolerance?: number;
}

export const isReal = (x: { readonly dtype: string }): boolean => x.dtype === 'float32';

interface Arguments {
  readonly params: Subject['params'];
  readonly state: Subject['params'];
  readonly real: Subject['inputs'];
  readonly fixed: Subject['inputs'];
  readonly key: Host;
}

function argumentsOf({ params, state = {}, inputs }: Subject): Arguments {
  const entries = Object.entries(inputs);
  return {
    params,
    state,
    real: Object.fromEntries(entries.filter(([, x]) => isReal(x))),
    fixed: Object.fromEntries(entries.filter(([, x]) => !isReal(x))),
    key: given('int32', [5, 6], [2]),
  };
}

type Traced = { readonly [name in keyof Arguments]: name extends 'key' ? Tensor : Record<string, Tensor> };

/** Outputs, their weighted sum, and its gradients. */
function computed({ call, doEval = false, hasGradients = true }: Subject, t: Traced) {
  const outputsOf = (params: Tensors, real: Tensors): Tensor =>
    runInContext({ theta: { ...params, ...t.state }, prngKey: t.key, doEval }, () =>
      call({ ...real, ...t.fixed }),
    );
  if (!hasGradients) return { outputs: outputsOf(t.params, t.real) };
  const loss = ({ params, real }: Pick<Traced, 'params' | 'real'>) => {
    const outputs = outputsOf(params, real);
    const weights = tf.tensor(numbers(outputs.size, 99), outputs.shape);
    return { value: tf.sum(tf.mul(outputs, weights)), aux: { outputs } };
  };
  const { value, aux, grads } = valueAndGrad(loss as never, { params: t.params, real: t.real } as never);
  return { value, ...(aux as { outputs: Tensor }), ...(grads as Record<string, Record<string, Tensor>>) };
}

export type Results = readonly Record<string, HostTensor | Record<string, HostTensor>>[];

/** Gives the results of all subjects on an engine, as one program that is traced once: both take longer than running. */
export function evaluator(subjects: readonly Subject[]): (engine: Engine) => Promise<Results> {
  const args = subjects.map(argumentsOf) as never;
  const program = ((all: readonly Traced[]) => all.map((t, i) => computed(subjects[i]!, t))) as never;
  let traced: Program | undefined;
  const compiled = (engine: Engine): Promise<Executable> => {
    if (engine === 'eager') return compile(program, args, { engine, numThreads: 1 });
    traced ??= traceProgram(program, args);
    return compileProgram(traced, { engine, numThreads: 1 });
  };
  return async (engine) => {
    const executable = await compiled(engine);
    const results = (await repeatedly(executable, args)) as unknown as Results;
    await executable.dispose();
    return results;
  };
}

function expectSame(title: string, actual: unknown, expected: unknown, tolerance: number): void {
  const { data, shape } = expected as HostTensor;
  if (!data) {
    expect(Object.keys(actual as object), title).toEqual(Object.keys(expected as object));
    for (const [name, value] of Object.entries(expected as object))
      expectSame(`${title}, ${name}`, (actual as Record<string, unknown>)[name], value, tolerance);
    return;
  }
  const other = actual as HostTensor;
  expect(other.shape, title).toEqual(shape);
  data.forEach((value: number, i: number) => {
    if (!(Math.abs(other.data[i]! - value) <= tolerance * (1 + Math.abs(value))))
      expect.fail(`${title}[${i}]: compiled ${other.data[i]}, eager ${value}`);
  });
}

/** Expects of an engine's results that they are those of the eager one. */
export function expectSameResults(
  engine: string,
  subjects: readonly Subject[],
  compiled: Results,
  eager: Results,
): void {
  for (const [i, { title, tolerance = 2e-5 }] of subjects.entries())
    expectSame(`${engine}, ${title}`, compiled[i], eager[i], tolerance);
}

/** Compares all engines that there are with the eager one. */
export async function expectAllSame(subjects: readonly Subject[]): Promise<void> {
  const evaluate = evaluator(subjects);
  const eager = await evaluate('eager');
  for (const [title, { engine, available }] of engines)
    if (available) expectSameResults(title, subjects, await evaluate(engine), eager);
}
