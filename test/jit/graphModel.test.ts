/** @file Graph models, compiled, against the same models on tfjs's cpu backend. */
import { firstOf } from '../faults/campaign.js';
import '@tensorflow/tfjs-backend-cpu';
import { createRequire } from 'node:module';
import { beforeEach, expect, test } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import { compileModel, type JitOptions } from '../../src/jit/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { expectClose, floats, tf } from '../compiler/support.js';
import { GraphFile } from './graphModelFiles.js';
import { architectures } from './graphModels.js';

const require = createRequire(import.meta.url);
// As the compiler does: one copy of the engine.
const { loadGraphModel } = require('@tensorflow/tfjs') as any;
const quick: JitOptions = { engine: 'onnx', numThreads: 1 };

beforeEach(async () => {
  await tf.setBackend('cpu');
});

/** What tfjs-converter loads. */
interface Loaded {
  readonly modelVersion: string;
  execute(inputs: unknown, outputs: readonly string[]): Tensor | Tensor[];
  executeAsync(inputs: unknown, outputs: readonly string[]): Promise<Tensor>;
}

const loaded = (file: GraphFile): Promise<Loaded> =>
  loadGraphModel(tf.io.fromMemory(file.artifacts() as any));

const image = (shape: number[], high = 1): Tensor =>
  tf.tensor(floats(shape, -high, high, 5).data as Float32Array, shape);

function expectSame(actual: Tensor, expected: Tensor, what: string): void {
  const host = (tensor: Tensor): any => ({
    shape: tensor.shape,
    dtype: tensor.dtype,
    data: tensor.dataSync(),
  });
  expectClose(host(actual), host(expected), { relative: 2e-4, absolute: 2e-5 }, what);
}

const inputs: Readonly<Record<string, () => Tensor>> = {
  'MobileNet v1': () => image([2, 32, 32, 3]),
  'MobileNet v2': () => image([2, 32, 32, 3]),
  PoseNet: () => image([1, 40, 24, 3], 200),
  BlazeFace: () => image([1, 64, 64, 3]),
  encoder: () =>
    tf.tensor2d(
      [
        [4, 9, 0, 0, 0],
        [7, 49, 1, 30, 2],
      ],
      [2, 5],
      'int32',
    ),
};

test.each(firstOf(Object.keys(architectures), 2))(
  '%s computes what it does on the cpu backend',
  async (name) => {
    const [file, outputs] = architectures[name]!();
    const model = await loaded(file);
    const x = inputs[name]!();
    const expected = [model.execute(x, outputs)].flat() as Tensor[];
    for (const engine of hasCompiler ? (['onnx', 'native'] as const) : (['onnx'] as const)) {
      const compiled = compileModel(model, { ...quick, engine });
      const actual = [await compiled.execute(x, outputs)].flat() as Tensor[];
      expect(actual.length).toBe(outputs.length);
      actual.forEach((output, i) => void expectSame(output, expected[i]!, `${outputs[i]} on ${engine}`));
      await compiled.dispose();
    }
  },
);

/** Boxes from an image, of which the best are gathered by a node that needs their values, then a branch. */
async function detector(): Promise<{ readonly model: Loaded; readonly output: string }> {
  const file = new GraphFile();
  const x = file.input('image', [1, 8, 8, 3]);
  const features = file.conv(x, [3, 3, 3, 5], 2, 'Relu');
  const rows = file.reshape(features, file.int(-1, 5));
  const columns = file.node('Split', [file.int1(1), rows], { num_split: { i: '5' } });
  const boxes = file.node('ConcatV2', [0, 1, 2, 3].map((i) => `${columns}:${i}`).concat(file.int1(1)), {
    N: { i: '4' },
  });
  const scores = file.reshape(`${columns}:4`, file.int(-1));
  const limits = [file.int1(4), file.scalar(0.9), file.scalar(0)];
  const best = file.node('NonMaxSuppressionV3', [boxes, scores, ...limits], {}, 'best');
  const chosen = file.node('GatherV2', [boxes, best, file.int1(0)], { batch_dims: { i: '0' } }, 'chosen');
  const isLarge = file.node('Less', [file.scalar(0), file.node('Max', [scores, file.int(0)], {}, 'largest')]);
  const branch = file.node('Switch', [chosen, isLarge], {}, 'branch');
  const doubled = file.node('Mul', [`${branch}:1`, file.scalar(2)]);
  const output = file.node('Merge', [branch, doubled], { N: { i: '2' } }, 'joined');
  return { model: await loaded(file), output };
}

test('nodes that need values are named, and run by tfjs after what comes before them, which is compiled', async () => {
  const { model, output } = await detector();
  const x = image([1, 8, 8, 3]);
  const strict = compileModel(model, quick);
  await expect(strict.predict(x)).rejects.toThrow(
    "The graph model has nodes that need values while it runs: best (NonMaxSuppressionV3), branch (Switch), joined (Merge). Compile what comes before them, with execute(inputs, ['ConcatV2_9', 'Reshape_11', 'largest']), and pass these values by name to the model's own executeAsync",
  );
  const notices: string[] = [];
  const options = { ...quick, graphBreaks: true, notify: (notice: string) => void notices.push(notice) };
  const compiled = compileModel(model, options);
  const expected = await model.executeAsync(x, [output]);
  for (let i = 0; i < 2; i++) expectSame((await compiled.execute(x, output)) as Tensor, expected, output);
  expect(notices.length).toBe(1);
  expect(expected.shape[0]).toBeGreaterThan(1);
  await strict.dispose();
  await compiled.dispose();
});

test('a node that cannot be compiled is named, with the values before it', async () => {
  const file = new GraphFile();
  const x = file.input('x', [-1, 4]);
  const hidden = file.node('Tanh', [file.dense(x, 4, 4)], {}, 'hidden');
  const size = file.node('Max', [hidden, file.int(0, 1)], {}, 'largest');
  const range = file.node('Range', [file.scalar(0), size, file.scalar(0.1)], { Tidx: { type: 'DT_FLOAT' } });
  const compiled = compileModel(await loaded(file), quick);
  await expect(compiled.execute(image([2, 4]), range)).rejects.toThrow(
    /Node 'Range_\d+' \(Range\) of the graph model can't be compiled: The value of a traced tensor float32\[\] was read.* execute\(inputs, \['largest'\]\)/,
  );
  await expect(compiled.execute(image([2, 4]), 'hiden')).rejects.toThrow(
    "The graph model has no node 'hiden'",
  );
  const { shape } = (await compiled.execute({ hidden: image([3, 4]) }, 'largest')) as Tensor;
  expect(shape).toEqual([]);
  await compiled.dispose();
});
