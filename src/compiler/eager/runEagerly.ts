/** @file Functions run operation by operation on values, without a trace, so that their code may read every tensor. */

import type { HostArray, HostTensor, Tree } from '../program/tensors.js';
import { mapTree } from '../program/tensorTrees.js';
import * as tf from '../tfjs/tfjs.js';
import { isTensor, tidyAll } from '../trace/gradients.js';
import { isSpec } from '../trace/tracedProgram.js';
import { withBackend, withCallsKept } from '../trace/tracing.js';
import { loadBackend } from './eagerBackend.js';

/**
 * Calls `f` once on values: unlike in a compiled function, even by the eager engine, `print` and `dataSync` work in it.
 * Errors name the layer and show the user's line, in gradients too. Runs on tfjs's CPU backend.
 */
export async function runEagerly(
  f: (inputs: any) => Tree<tf.Tensor>,
  inputs: Tree<HostTensor>,
): Promise<Tree<HostTensor>> {
  const backend = await loadBackend('cpu');
  let outputs: Tree<HostTensor> = [];
  withCallsKept(() =>
    withBackend(backend, () =>
      tidyAll(() => {
        const isHost = isSpec as (value: unknown) => value is HostTensor;
        // The backend may keep the array, and the caller reuses it.
        const given = mapTree<HostTensor, tf.Tensor>(inputs, isHost, ({ data, shape, dtype }) =>
          tf.tensor(data.slice() as Float32Array, [...shape], dtype),
        );
        outputs = mapTree<tf.Tensor, HostTensor>(f(given), isTensor, (tensor) => {
          const { shape, dtype } = tensor;
          return { shape, dtype: dtype as HostTensor['dtype'], data: tensor.dataSync() as HostArray };
        });
      }),
    ),
  );
  return outputs;
}
