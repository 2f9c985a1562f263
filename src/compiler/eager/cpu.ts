/** @file Runs a function op by op on a tfjs backend: `cpu` is the oracle of the tests. */

import type { Backend } from '../executable.js';
import { isTensor } from '../gradients.js';
import { IndexError, problemOf, UNKNOWN_INDEX } from '../indexChecks.js';
import type { Program, TensorFunction } from '../program.js';
import { isSpec } from '../program.js';
import * as tf from '../tfjs.js';
import { withBackend } from '../trace.js';
import { flattenTree, mapTree } from '../tree.js';
import { DeviceError, type TensorSpec, type Tree } from '../types.js';

/** Backends that the eager engine can run on. */
export type EagerDevice = 'cpu' | 'gpu';

/** The tfjs backend of a device, loaded at first use. */
export async function loadBackend(device: EagerDevice): Promise<string> {
  if (device === 'cpu') {
    await import('@tensorflow/tfjs-backend-cpu');
    // Its first use would print an advertisement for tfjs-node.
    (tf.findBackend('cpu') as tf.KernelBackend & { firstUse: boolean }).firstUse = false;
    return 'cpu';
  }
  const name = '@tensorflow/tfjs-node-gpu';
  try {
    // Missing, or installed without its binary: both mean that there is no GPU backend.
    await import(name);
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

/** What tfjs's gather says of an index, as other engines are told it; undefined for other errors. */
function indexError(program: string, error: unknown): IndexError | undefined {
  const message = error instanceof Error ? error.message : '';
  const [, value, last, where] = /the index value (-?\d+) is not in \[0, (\d+)\](.*)/s.exec(message) ?? [];
  if (value === undefined) return undefined;
  const addressed = { limit: Number(last) + 1, what: `${Number(last) + 1} that there are`, where: where! };
  return new IndexError(program, { ...UNKNOWN_INDEX, problem: problemOf(Number(value), addressed) });
}

/** Wraps `f` so that it runs eagerly on host memory. */
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
    bind:
      ({ inputs, outputs }) =>
      async () => {
        withBackend(backend, () =>
          tf.engine().tidy(() => {
            let next = 0;
            const tree = mapTree<TensorSpec, tf.Tensor>(program.inputs, isSpec, ({ shape, dtype }) =>
              // The backend may keep the array, and the caller writes to it again: it gets a copy.
              tf.tensor(inputs[next++]!.slice() as Float32Array, [...shape], dtype),
            );
            const results = flattenTree<tf.Tensor>(call(tree), isTensor);
            results.forEach(({ value }, i) => void outputs[i]!.set(value.dataSync()));
            // valueAndGrad keeps its auxiliary results beyond any tidy.
            for (const { value } of results) if (value.kept) value.dispose();
          }),
        );
      },
    dispose: async () => {},
  };
}
