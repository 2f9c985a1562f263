/** @file Backend of elementwise programs in WebAssembly, run block by block. */
import type { Backend } from '../backend.js';
import type { Graph } from '../ir.js';
import { DeviceError, type HostArray, sizeOf } from '../tensors.js';
import { BLOCK, lowerToWasm, type Place } from './lowerToWasm.js';

/** Exports of a generated module. */
interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly kernel: (bytes: number) => void;
}

/** Node's global, which TypeScript declares only in the browser's library. */
declare const WebAssembly: {
  instantiate(code: Uint8Array): Promise<{ readonly instance: { readonly exports: unknown } }>;
};

/**
 * Compiles an elementwise program to one loop. Blocks of the arrays are copied to the module's memory and back, within
 * the cache: each array passes through main memory once instead of once per operation.
 *
 * @param graph one of the loops of `cutLoops`.
 * @throws DeviceError where the system has no room for the module's memory.
 */
export async function compileWasm(graph: Graph): Promise<Backend> {
  const { code, inputs, outputs } = lowerToWasm(graph);
  const { instance } = await WebAssembly.instantiate(code).catch(withoutRoom);
  const { memory, kernel } = instance.exports as KernelExports;
  const size = sizeOf(graph.outputs[0]!.shape);
  const view = ({ address, isScalar, isMask }: Place): Float32Array | Int32Array =>
    isMask
      ? new Int32Array(memory.buffer, address, 1)
      : new Float32Array(memory.buffer, address, isScalar ? 1 : BLOCK);
  const inputViews = inputs.map(view);
  const outputViews = outputs.map(view);

  const runBlock = (from: number, given: readonly HostArray[], wanted: readonly HostArray[]): void => {
    const length = Math.min(BLOCK, size - from);
    inputs.forEach(({ isScalar }, i) => {
      if (!isScalar) inputViews[i]!.set(given[i]!.subarray(from, from + length));
    });
    // Lanes behind the last element process leftovers of an earlier block, which are ignored.
    kernel(Math.ceil(length / 4) * 16);
    outputs.forEach((_, i) => {
      wanted[i]!.set(length === BLOCK ? outputViews[i]! : outputViews[i]!.subarray(0, length), from);
    });
  };

  return {
    runner: 'wasm',
    // Every block is read before it is written, and scalars before all blocks.
    mayOverwrite: () => true,
    bind:
      ({ inputs: given, outputs: wanted }) =>
      async () => {
        inputs.forEach(({ isScalar, isMask }, i) => {
          if (isScalar) inputViews[i]![0] = isMask ? -given[i]![0]! : given[i]![0]!;
        });
        for (let from = 0; from < size; from += BLOCK) runBlock(from, given, wanted);
      },
    dispose: async () => {},
  };
}

function withoutRoom(error: unknown): never {
  if (!(error instanceof RangeError)) throw error;
  throw new DeviceError(
    `There is no room for a memory of WebAssembly, which reserves 10 GB of addresses (${error.message}). ` +
      'Raise the limit, ulimit -v, or use --engine=onnx.',
    { cause: error },
  );
}
