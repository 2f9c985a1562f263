/**
 * @file Before each test file of a worker: our modules are loaded anew, so that no file sees what another registered.
 * Packages stay loaded, for loading them takes longer than most files; tfjs forgets what our modules told it.
 */
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-layers';
import * as tf from '@tensorflow/tfjs-core';
import { vi } from 'vitest';

/** The kernels of tfjs's own backends. This module, too, is loaded for each file, so the worker keeps them. */
const worker = globalThis as typeof globalThis & { tfjsKernels?: ReadonlyMap<string, tf.KernelConfig[]> };
const engine = tf.engine();
const backends = Object.keys(engine.registryFactory);

worker.tfjsKernels ??= new Map(backends.map((name) => [name, tf.getKernelsForBackend(name)]));
for (const backend of backends) {
  for (const { kernelName } of tf.getKernelsForBackend(backend)) tf.unregisterKernel(kernelName, backend);
  const own = worker.tfjsKernels.get(backend);
  for (const kernel of own ?? []) tf.registerKernel(kernel);
  // Not tf.removeBackend: a backend that records has nothing to dispose of, and says so by an error.
  if (own === undefined) for (const known of [engine.registry, engine.registryFactory]) delete known[backend];
}
// Our modules cover these methods of the engine, so that gradients carry the scopes of layers and copy nothing.
for (const method of ['addTapeNode', 'clone']) Reflect.deleteProperty(engine, method);
vi.resetModules();
