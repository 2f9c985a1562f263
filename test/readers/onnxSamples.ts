/** @file ONNX files of models and functions, with what our own engine computes, for scripts/check-readers.sh. */
import '@tensorflow/tfjs-backend-cpu';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import {
  compile,
  exportOnnx,
  type HostTensor,
  newHostArray,
  type OpenSpec,
  ops,
  sizeOf,
  type Tensor,
  tf,
} from '../../src/compiler/index.js';
import type { OnnxOptions } from '../../src/compiler/onnx/exportModel.js';
import { architectures } from '../jit/graphModels.js';

// As the compiler does: one copy of the engine.
const { io, layers, loadGraphModel, sequential } = createRequire(import.meta.url)('@tensorflow/tfjs') as any;

interface Sample {
  readonly f: (inputs: any) => any;
  readonly inputs: Readonly<Record<string, OpenSpec>>;
  /** Two sizes of each dimension. */
  readonly sizes: readonly Readonly<Record<string, number>>[];
  readonly options?: OnnxOptions;
}

const rows = [{ batch: 1 }, { batch: 5 }];
const ofModel = (model: any, shape: OpenSpec['shape']): Sample => ({
  f: ({ x }: { x: Tensor }) => ({ y: model.apply(x) }),
  inputs: { x: { shape: ['batch', ...shape], dtype: 'float32' } },
  sizes: rows,
});

async function graphModel(name: string, shape: OpenSpec['shape']): Promise<Sample> {
  const [file, [output]] = architectures[name]!();
  const model = await loadGraphModel(io.fromMemory(file.artifacts()));
  return {
    f: ({ x }: { x: Tensor }) => ({ y: model.execute(x, output) }),
    inputs: { x: { shape: ['batch', ...shape], dtype: 'float32' } },
    sizes: rows,
  };
}

const samples = async (): Promise<Readonly<Record<string, Sample>>> => ({
  convnet: {
    ...ofModel(
      sequential({
        layers: [
          layers.conv2d({ inputShape: [9, 9, 2], filters: 4, kernelSize: 3, strides: 2, padding: 'same' }),
          layers.batchNormalization(),
          layers.activation({ activation: 'relu' }),
          layers.depthwiseConv2d({ kernelSize: 3 }),
          layers.upSampling2d({ size: [2, 2] }),
          layers.maxPooling2d({ poolSize: 2 }),
          layers.flatten(),
          layers.dense({ units: 3, activation: 'softmax' }),
        ],
      }),
      [9, 9, 2],
    ),
    options: {
      inputNames: { x: 'image' },
      outputNames: { y: 'probabilities' },
      ...{ name: 'convnet', description: 'Ünï', producer: { name: 'check', version: '1.2' } },
      metadata: { step: '7', labels: 'a,b,c' },
    },
  },
  lstm: ofModel(
    sequential({ layers: [layers.lstm({ inputShape: [4, 3], units: 5 }), layers.dense({ units: 2 })] }),
    [4, 3],
  ),
  mobilenet: await graphModel('MobileNet v1', [32, 32, 3]),
  attention: {
    f: ({ ids, table }: { ids: Tensor; table: Tensor }) => {
      const x = tf.gather(table, ids) as any;
      const mixed = tf.matMul(tf.softmax(tf.matMul(x, x, false, true)), x);
      const [batch, length] = ids.shape as [number, number];
      return {
        flat: tf.reshape(ops.gelu(mixed), [batch * length, 4]),
        mean: tf.mean(mixed, [0, 1]),
        best: tf.argMax(mixed, -1),
        isEven: tf.equal(tf.mod(ids, 2), 0),
      };
    },
    inputs: {
      ids: { shape: ['batch', 'length'], dtype: 'int32' },
      table: { shape: [6, 4], dtype: 'float32' },
    },
    sizes: [
      { batch: 1, length: 3 },
      { batch: 4, length: 21 },
    ],
  },
  loop: {
    f: ({ x }: { x: Tensor }) => {
      const [last, all] = ops.scan(
        (sum: Tensor, row: Tensor) => [tf.add(tf.mul(sum, 0.5), row), tf.tanh(sum)] as any,
        tf.zeros([x.shape[0]!]),
        tf.transpose(x) as any,
      ) as any;
      return { last, all };
    },
    inputs: { x: { shape: ['batch', 6], dtype: 'float32' } },
    sizes: rows,
  },
});

function valuesOf({ shape, dtype }: OpenSpec, sizes: Sample['sizes'][0]): HostTensor {
  const whole = shape.map((size) => (typeof size === 'number' ? size : sizes[size]!));
  const data = newHostArray(dtype, sizeOf(whole));
  data.forEach((_, i) => {
    data[i] = dtype === 'int32' ? (i * 7) % 6 : Math.sin(i * i);
  });
  return { shape: whole, dtype, data };
}

const shown = (arrays: object): object =>
  Object.fromEntries(
    Object.entries(arrays).map(([name, { shape, dtype, data }]) => [name, { shape, dtype, data: [...data] }]),
  );

/** Writes each file beside the inputs and outputs of two runs. */
export async function writeOnnxSamples(directory: string): Promise<void> {
  mkdirSync(directory);
  await tf.setBackend('cpu');
  for (const [name, { f, inputs, sizes, options }] of Object.entries(await samples())) {
    writeFileSync(join(directory, `${name}.onnx`), exportOnnx(f, inputs, options));
    const runs: object[] = [];
    for (const each of sizes) {
      const given = Object.fromEntries(
        Object.entries(inputs).map(([key, spec]) => [key, valuesOf(spec, each)]),
      );
      const executable = await compile(f, given, { numThreads: 1 });
      runs.push({ inputs: shown(given), outputs: shown((await executable.run(given)) as object) });
      await executable.dispose();
    }
    const dims = Object.fromEntries(Object.entries(inputs).map(([key, { shape }]) => [key, shape]));
    writeFileSync(join(directory, `${name}.json`), JSON.stringify({ dims, runs, ...options }));
  }
}
