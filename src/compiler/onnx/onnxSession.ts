/** @file ONNX Runtime sessions as backends. */
import type { Tensor } from '#onnxruntime';
import type { Backend, FlatBinding } from '../program/backend.js';
import { IndexError, UNKNOWN_INDEX } from '../program/indexChecks.js';
import type { Graph } from '../program/ir.js';
import { narrow, widen } from '../program/narrowStorage.js';
import {
  CompilerError,
  type HostArray,
  type NarrowArray,
  newHostArray,
  sizeOf,
  type TensorSpec,
} from '../program/tensors.js';
import { onnxTypeOf } from './controlLowerings.js';
import { inputName, lowerToOnnx, prepareForOnnx } from './lowerToOnnx.js';
import { overwritesOf } from './onnxOverwrites.js';
import { encodeModel } from './proto.js';
import { disableTelemetry } from './telemetry.js';

/** Options of an ONNX Runtime session. */
export interface OnnxOptions {
  /** Name in messages; 'program' by default. */
  readonly name?: string;
  /** Threads per operation; 0 lets ONNX Runtime use one per core. */
  readonly numThreads?: number;
}

/** Loads ONNX Runtime at first use, since loading takes 60 ms and shape inference doesn't need it. */
export async function loadRuntime(): Promise<typeof import('#onnxruntime')> {
  await disableTelemetry();
  try {
    return await import('#onnxruntime');
  } catch (error) {
    throw new CompilerError(
      `ONNX Runtime could not be loaded (package onnxruntime-node on ${process.platform} ${process.arch}): ${(error as Error).message}. ` +
        'Run with --engine=eager, or install the packages anew.',
      { cause: error },
    );
  }
}

/** ONNX Runtime doesn't accept shared memory: such arrays are copied at each run. */
const isShared = (array: HostArray): boolean => array.buffer instanceof SharedArrayBuffer;

/** Whether the host converts an array, since ONNX Runtime's binding has none of its elements. */
const isConverted = ({ storage }: TensorSpec): boolean => storage === 'bfloat16';

/** The array that a session reads or writes: the caller's where it can. */
const ownArray = (spec: TensorSpec, array: HostArray): HostArray => {
  if (isConverted(spec)) return newHostArray(spec.dtype, array.length);
  return isShared(array) ? array.slice() : array;
};

/** ONNX Runtime's message for a gather index out of range. */
const BAD_INDEX = /indices element out of data bounds/;

/** Compiles a graph, runs it once, and returns its outputs. */
export async function runOnnx(
  graph: Graph,
  inputs: readonly HostArray[],
  options: OnnxOptions = {},
): Promise<HostArray[]> {
  const outputs = graph.outputs.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape)));
  const backend = await compileOnnx(graph, options);
  try {
    await backend.bind({ inputs, outputs })();
  } finally {
    await backend.dispose();
  }
  return outputs;
}

/** Compiles a graph to an ONNX Runtime session. */
export async function compileOnnx(graph: Graph, options: OnnxOptions = {}): Promise<Backend> {
  const { name = 'program' } = options;
  const prepared = prepareForOnnx(graph);
  const model = lowerToOnnx(prepared);
  const { InferenceSession, Tensor: OrtTensor } = await loadRuntime();
  const session = await InferenceSession.create(encodeModel(model), {
    intraOpNumThreads: options.numThreads ?? 0,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    // Errors are also thrown.
    logSeverityLevel: 4,
    // With a memory pattern, both the first run's arena and the planned block stay: 700 MB more on the small GPT,
    // without a speedup.
    enableMemPattern: false,
    extra: {
      session: {
        // Threads spin between the operations of a run, so that the next one starts sooner. Spinning must end with the
        // run, or the threads of one session starve those of the next.
        force_spinning_stop: '1',
      },
      // It drops the computed shape that a barrier waits by, and finds no input to connect it to.
      ...(prepared.nodes.some(({ op }) => op === 'Barrier') && {
        optimization: { disable_specified_optimizers: 'ReshapeFusion' },
      }),
    },
  });
  const tensor = (spec: TensorSpec, data: HostArray, shape = spec.shape): Tensor =>
    new OrtTensor(onnxTypeOf(spec) as 'float32', data as Float32Array, shape);
  return {
    runner: 'onnx',
    mayOverwrite: overwritesOf(prepared),
    bind: (binding: FlatBinding) => {
      const inputs = binding.inputs.map((array, i) => ownArray(graph.inputs[i]!, array));
      const outputs = binding.outputs.map((array, i) => ownArray(graph.outputs[i]!, array));
      const known = new Set(session.inputNames);
      const feeds: Record<string, Tensor> = {};
      graph.inputs.forEach((input, i) => {
        if (known.has(inputName(i))) feeds[inputName(i)] = tensor(input, inputs[i]!);
      });
      const fetches = Object.fromEntries(
        graph.outputs.map((output, i) => {
          const { name, shape } = model.outputs[i]!;
          return [name, tensor(output, outputs[i]!, shape)];
        }),
      );
      return async () => {
        inputs.forEach((own, i) => {
          const array = binding.inputs[i]!;
          if (own !== array)
            own.set(isConverted(graph.inputs[i]!) ? widen(array as NarrowArray, 'bfloat16') : array);
        });
        await session.run(feeds, fetches).catch((error: Error) => {
          throw BAD_INDEX.test(error.message) ? new IndexError(name, UNKNOWN_INDEX) : error;
        });
        outputs.forEach((own, i) => {
          const array = binding.outputs[i]!;
          if (own !== array)
            array.set(isConverted(graph.outputs[i]!) ? narrow(own as Float32Array, 'bfloat16') : own);
        });
      };
    },
    dispose: () => session.release(),
  };
}
