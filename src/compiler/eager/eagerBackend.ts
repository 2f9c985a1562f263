/** @file Eager engine: runs a function operation by operation on a tfjs backend. `cpu` is the reference in tests. */

import { createRequire } from 'node:module';
import type { Backend } from '../program/backend.js';
import { IndexError, problemOf, UNKNOWN_INDEX } from '../program/indexChecks.js';
import { narrow, widen } from '../program/narrowStorage.js';
import { TensorMemory } from '../program/tensorMemory.js';
import {
  type BoundArray,
  CompilerError,
  DeviceError,
  formatSpec,
  type HostArray,
  type NarrowArray,
  sameShape,
  type TensorSpec,
  type Tree,
} from '../program/tensors.js';
import { flattenTree, type Leaf, mapTree } from '../program/tensorTrees.js';
import * as tf from '../tfjs/tfjs.js';
import { isTensor, tidyAll } from '../trace/gradients.js';
import { cpuBackend } from '../trace/onCpu.js';
import type { Program, TensorFunction } from '../trace/tracedProgram.js';
import { isSpec } from '../trace/tracedProgram.js';
import { withBackend } from '../trace/tracing.js';
import { answerForComplex } from './complexKernels.js';
import { answerForEmpties } from './empties.js';
import { checkSegmentIds } from './segmentIds.js';
import { TfjsCopy } from './tfjsCopy.js';

const require = createRequire(import.meta.url);

/** Backends that the eager engine can run on. */
export type EagerDevice = 'cpu' | 'gpu';

/** Loads tfjs's cpu backend at first use. */
export function loadCpuBackend(): string {
  require('@tensorflow/tfjs-backend-cpu');
  cpuBackend();
  answerForEmpties('cpu');
  answerForComplex('cpu');
  checkSegmentIds('cpu');
  return 'cpu';
}

/** Loads the tfjs backend of a device at first use. */
export async function loadBackend(device: EagerDevice): Promise<string> {
  if (device === 'cpu') return loadCpuBackend();
  const name = '@tensorflow/tfjs-node-gpu';
  try {
    // The package is missing, or was installed without its binary: either way there is no GPU backend.
    await import(name);
    answerForEmpties('tensorflow');
    checkSegmentIds('tensorflow');
    return 'tensorflow';
  } catch (error) {
    const reason = (error as Error).message.split('\n')[0]!.replace(/\.$/, '');
    throw new DeviceError(
      `--device=gpu needs the package ${name}, which could not be loaded (${reason}). ` +
        `Install it with \`npm install ${name}@4.22.0\` on a machine with CUDA 11 and cuDNN 8, or use --device=cpu.`,
      { cause: error },
    );
  }
}

/** The index error behind an error of tfjs's gather or segment sum; undefined for other errors. */
function indexError(program: string, error: unknown): IndexError | undefined {
  const message = error instanceof Error ? error.message : '';
  const [, value, last, where] = /the index value (-?\d+) is not in \[0, (\d+)\](.*)/s.exec(message) ?? [];
  if (value === undefined) return undefined;
  const addressed = { limit: Number(last) + 1, what: `${Number(last) + 1} that there are`, where: where! };
  return new IndexError(program, { ...UNKNOWN_INDEX, problem: problemOf(Number(value), addressed) });
}

/** Results in the order that was traced: the branches of a choice may give theirs in another order. */
function inOrder(results: readonly Leaf<tf.Tensor>[], { outputPaths }: Program): Leaf<tf.Tensor>[] {
  const byPath = new Map(results.map((result) => [result.path, result]));
  return outputPaths.map((path) => byPath.get(path)!);
}

/**
 * Checks the shapes and dtypes that the rules inferred against those of the results.
 *
 * @throws CompilerError where a result has another shape or dtype than was traced.
 */
function checkResults(results: readonly Leaf<tf.Tensor>[], { graph, outputPaths }: Program): void {
  const isSame = ({ value: { shape, dtype } }: Leaf<tf.Tensor>, spec: TensorSpec): boolean =>
    dtype === spec.dtype && sameShape(shape, spec.shape);
  results.forEach((result, i) => {
    const spec = graph.outputs[i]!;
    if (isSame(result, spec)) return;
    throw new CompilerError(
      `Output '${outputPaths[i]}' was traced as ${formatSpec(spec)}, and tfjs gives ${formatSpec(result.value as TensorSpec)}: ` +
        "the rule of one of its operations (src/compiler/rules) is wrong, or tfjs's kernel.",
    );
  });
}

/** The values of a result, as memory holds them. */
function hostValues(result: tf.Tensor, { storage }: TensorSpec): BoundArray {
  const values = result.dataSync() as Float32Array;
  return storage === undefined ? values : narrow(values, storage);
}

/** Wraps `f` so that it runs eagerly, on host memory and on tensors that stand for parts of a `TensorMemory`. */
export async function compileEager(
  f: TensorFunction,
  program: Program,
  device: EagerDevice = 'cpu',
  name = 'program',
): Promise<Backend> {
  const backend = await loadBackend(device);
  const call = (tree: Tree<tf.Tensor>): Tree<tf.Tensor> => {
    try {
      return f(tree);
    } catch (error) {
      throw indexError(name, error) ?? error;
    }
  };
  return {
    runner: 'eager',
    holdsCopies: true,
    // Results are written once all of them are there.
    mayOverwrite: () => true,
    bind: ({ inputs, outputs }) => {
      const memories = TensorMemory.among([...inputs, ...outputs]);
      return async () => {
        const copies = new Map<TensorMemory, TfjsCopy>();
        for (const memory of memories) copies.set(memory, await memory.copyOn(backend, () => new TfjsCopy()));
        /** The copy that has an array's elements; those of other types are always on the host. */
        const copyOf = (array: HostArray, { storage }: TensorSpec): TfjsCopy | undefined => {
          if (!(array instanceof Float32Array) || storage !== undefined || array.length === 0)
            return undefined;
          const memory = TensorMemory.of(array);
          return memory && copies.get(memory);
        };
        withBackend(backend, () =>
          tidyAll(() => {
            let next = 0;
            const tree = mapTree<TensorSpec, tf.Tensor>(program.inputs, isSpec, (spec) => {
              const { shape, dtype, storage } = spec;
              const given = inputs[next++]!;
              const copy = copyOf(given, spec);
              if (copy !== undefined) return tf.reshape(copy.take(given as Float32Array), [...shape]);
              // The backend may keep the array, and the caller reuses it: pass a copy.
              const values = storage === undefined ? given.slice() : widen(given as NarrowArray, storage);
              return tf.tensor(values as Float32Array, [...shape], dtype);
            });
            const results = inOrder(flattenTree<tf.Tensor>(call(tree), isTensor), program);
            checkResults(results, program);
            results.forEach(({ value }, i) => {
              const spec = program.graph.outputs[i]!;
              const copy = copyOf(outputs[i]!, spec);
              if (copy === undefined) outputs[i]!.set(hostValues(value, spec));
              else copy.put(outputs[i] as Float32Array, value);
            });
          }),
        );
      };
    },
    dispose: async () => {},
  };
}
