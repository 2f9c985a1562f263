/** @file Lazy execution: values, gradients and variables, what is kept, and what is refused. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { compile, type Lazy, lazy, ops, tf } from '../../../src/compiler/index.js';
import { engines } from '../engines.js';

let open: Lazy | null = null;
const enter = (options?: Parameters<typeof lazy>[0]): Lazy => {
  open = lazy(options);
  return open;
};
afterEach(async () => {
  await open?.dispose();
  open = null;
});

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('reading computes values, gradients and updates of variables', async () => {
    enter({ engine: engine as 'onnx' | 'native', numThreads: 1 });
    const x = tf.tensor2d([1, 2, 3, 4], [2, 2]);
    const squares = tf.matMul(x, x);
    expect(await squares.array()).toEqual([
      [7, 10],
      [15, 22],
    ]);
    // What was read is an input of what follows.
    expect(await tf.sum(squares).data()).toEqual(Float32Array.of(54));
    expect(
      await tf
        .grad((v: tf.Tensor) => tf.sum(tf.mul(v, v)))(x)
        .data(),
    ).toEqual(Float32Array.of(2, 4, 6, 8));
    const w = tf.variable(tf.scalar(3));
    const optimizer = tf.train.sgd(0.25);
    for (let step = 0; step < 3; step++) optimizer.minimize(() => tf.square(w) as tf.Scalar);
    expect(await w.data()).toEqual(Float32Array.of(3 / 8));
    w.dispose();
    expect(await tf.greater(x, 2).data()).toEqual(Uint8Array.of(0, 0, 1, 1));
    const normed = await ops.layerNorm(x, null, null, { epsilon: 0 }).data();
    expect(Array.from(normed, Math.round)).toEqual([-1, 1, -1, 1]);
  });
});

test('what no program can hold runs on the cpu backend, and is counted', async () => {
  const execution = enter({ engine: 'onnx' });
  const x = tf.tensor1d([3, 1, 3, 2]);
  const doubled = tf.mul(x, 2);
  await doubled.data();
  // Reading made the elements known, in this shape and others.
  const { values, indices } = tf.unique(tf.reshape(tf.reshape(doubled, [2, 2]), [4]));
  expect(await tf.add(values, 1).data()).toEqual(Float32Array.of(7, 3, 5));
  expect(await indices.data()).toEqual(Int32Array.of(0, 1, 0, 2));
  const words = tf.concat([tf.tensor1d(['a', 'b']), tf.fill([1], 'c', 'string' as 'int32')]);
  expect(await tf.equal(words, 'b').array()).toEqual([0, 1, 0]);
  expect(await words.array()).toEqual(['a', 'b', 'c']);
  const kept = tf.image.nonMaxSuppression(tf.tensor2d([0, 0, 1, 1, 0, 0, 1, 0.9], [2, 4]), [0.5, 0.9], 2);
  expect(await tf.gather(x, kept).data()).toEqual(Float32Array.of(1));
  const ragged = tf.raggedTensorToTensor(
    [2, 2],
    tf.tensor1d([1, 2, 3]),
    0,
    [tf.tensor1d([0, 1, 3], 'int32')],
    ['ROW_SPLITS'],
  );
  expect(await ragged.array()).toEqual([
    [1, 0],
    [2, 3],
  ]);
  const pixels = { data: Uint8Array.of(1, 2, 3, 255), width: 1, height: 1 } as unknown as tf.PixelData;
  expect(await tf.browser.fromPixels(pixels).array()).toEqual([[[1, 2, 3]]]);
  expect(execution.graphBreaks).toEqual({
    Concat: 1,
    Equal: 1,
    Fill: 1,
    FromPixels: 1,
    NonMaxSuppressionV3: 1,
    RaggedTensorToTensor: 1,
    Unique: 1,
  });
  expect(() => tf.unique(tf.add(x, 1))).toThrow(
    'tf.unique runs outside of programs, and needs the value of a lazy tensor float32[4] at once. Compute that first: await x.data().',
  );
  await execution.dispose();
  expect(words.dataSync()).toEqual(['a', 'b', 'c']);
  enter({ engine: 'onnx', graphBreaks: false });
  expect(() => tf.unique(tf.add([1, 1], 1))).toThrow('tf.unique cannot be compiled');
  expect(() => tf.tensor1d(['a'])).toThrow('Tensors of dtype string cannot be compiled');
  expect(open!.graphBreaks).toEqual({});
});

test('programs take no strings, in lazy execution too', async () => {
  enter({ engine: 'onnx' });
  const words = tf.tensor1d(['a', 'b']);
  const f = (x: tf.Tensor): tf.Tensor => tf.add(x, tf.cast(tf.equal(words, 'b'), 'float32'));
  await expect(compile(f, { shape: [2], dtype: 'float32' })).rejects.toThrow(
    'Tensors of dtype string cannot be compiled',
  );
});

test('values that are read together are computed one after the other; few programs are kept', async () => {
  enter({ engine: 'onnx', maxPrograms: 1 });
  const read = [1, 2, 3].flatMap((n) => [tf.ones([n]), tf.sum(tf.ones([n]))]).map((x) => x.data());
  expect((await Promise.all(read)).map((data) => [...data])).toEqual([[1], [1], [1, 1], [2], [1, 1, 1], [3]]);
});

test('what no tensor depends on is forgotten', async () => {
  const { setFlagsFromString } = await import('node:v8');
  setFlagsFromString('--expose-gc');
  const collect = (await import('node:vm')).runInNewContext('gc') as () => void;
  enter({ engine: 'onnx' });
  let state: tf.Tensor = tf.zeros([4]);
  const read: WeakRef<object>[] = [];
  for (let step = 1; step <= 6; step++) {
    state = tf.add(state, 1);
    const data = await state.data();
    expect(data).toEqual(new Float32Array(4).fill(step));
    read.push(new WeakRef(data));
  }
  // The first is a constant of its program, the last is the state's, and the last run's input may still be on the stack.
  // A collection that was under way keeps what it had marked: the next one takes it.
  await vi.waitFor(() => {
    collect();
    expect(read.slice(1, -2).filter((data) => data.deref() !== undefined).length).toBe(0);
  });
  expect(state.dataSync()).toEqual(new Float32Array(4).fill(6));
});

test('the backend comes back, and values that were not read are lost', async () => {
  const before = tf.getBackend();
  const execution = enter({ engine: 'onnx' });
  const [read, lost] = [tf.add(1, 2), tf.add(3, 4)];
  await read.data();
  await execution.dispose();
  expect(tf.getBackend()).toBe(before);
  expect(read.dataSync()).toEqual(Float32Array.of(3));
  expect(() => lost.dataSync()).toThrow('The value of a traced tensor float32[] was read.');
});

test('what cannot be lazy is refused', async () => {
  enter({ engine: 'onnx' });
  expect(() => tf.add(1, 2).dataSync()).toThrow(
    'The value of a lazy tensor float32[] was read at once. await x.data() or x.array() computes it.',
  );
  expect(() => lazy()).toThrow('lazy was called in lazy execution: dispose of that first.');
  await open!.dispose();
  expect(() => lazy({ maxPrograms: 0 })).toThrow(
    'lazy: expected maxPrograms to be a positive integer, got 0.',
  );
  enter({ engine: 'onnx' });
  const nested = compile(
    (x: tf.Tensor) => {
      lazy();
      return x;
    },
    { shape: [], dtype: 'float32' },
  );
  await expect(nested).rejects.toThrow('lazy was called');
});

test('tf draws random numbers on the host, and programs can be compiled meanwhile', async () => {
  enter({ engine: 'onnx' });
  const drawn = await tf.randomUniform([100]).data();
  expect(new Set(drawn).size).toBeGreaterThan(90);
  const program = await compile(
    (x: tf.Tensor) => tf.mul(x, 2),
    { shape: [], dtype: 'float32' },
    { engine: 'onnx' },
  );
  expect(await program.run({ shape: [], dtype: 'float32', data: Float32Array.of(4) })).toMatchObject({
    data: Float32Array.of(8),
  });
  expect(await tf.mul(3, 4).data()).toEqual(Float32Array.of(12));
  await program.dispose();
});
