/** @file Buckets of jit: programs shared by calls of different numbers of rows, and no padding in what they give. */
import { expect, test } from 'vitest';
import type { HostTensor, Tensor } from '../../src/compiler/index.js';
import { type BucketJitOptions, compileModel, type JitOptions, jit, type Rows } from '../../src/jit/index.js';
import { floats, host, tf } from '../compiler/support.js';
import { GraphFile } from './graphModelFiles.js';
import { convnet, expectSame, tensor, tfjs } from './layersModels.js';

const quick: JitOptions = { engine: 'onnx', numThreads: 1 };
const first: BucketJitOptions = { ...quick, bucket: { arguments: [0] } };

const rowsOf = (count: number, seed = 1): HostTensor => floats([count, 3], 0.5, 2, seed);

const tensorOf = ({ data, shape }: HostTensor): Tensor => tf.tensor(data as Float32Array, [...shape]);

/** The values that tfjs's cpu backend gives. */
const expected = (f: () => Tensor): number[] => Array.from(tf.tidy(() => f().dataSync()));

function expectValues(actual: HostTensor, wanted: readonly number[]): void {
  expect(actual.data.length).toBe(wanted.length);
  wanted.forEach((value, i) => {
    expect(actual.data[i]).toBeCloseTo(value, 5);
  });
}

test('calls of all sizes up to a power of two share a program, and get their rows', async () => {
  const f = jit((rows: Rows, x: Tensor, w: Tensor) => {
    const y = tf.matMul(tf.log(x), w);
    return { y, square: tf.square(w), mean: rows.mean(y), sum: rows.sum(y), masked: tf.mul(rows.mask, 2) };
  }, first);
  // As many rows as the bucket of 3 and 4 has.
  const w = floats([3, 4], -1, 1, 2);
  const square = floats([4, 4], -1, 1, 3);
  for (const count of [1, 2, 3, 4, 5, 7, 8]) {
    const x = rowsOf(count, count);
    const result: any = await f(x, w);
    const y = (): Tensor => tf.matMul(tf.log(tensorOf(x)), tensorOf(w));
    expect(result.y.shape).toEqual([count, 4]);
    expectValues(result.y, expected(y));
    expectValues(
      result.mean,
      expected(() => tf.mean(y(), 0)),
    );
    expectValues(
      result.sum,
      expected(() => tf.sum(y(), 0)),
    );
    expect(result.masked).toEqual(host([count], Array(count).fill(2)));
    expect(result.square.shape).toEqual([3, 4]);
  }
  expect(f.numPrograms).toBe(4);
  await f.dispose();

  const whole = jit((_: Rows, x: Tensor, w: Tensor) => [tf.neg(x), tf.square(w)], first);
  const [negative, squared]: any = await whole(rowsOf(3), square);
  expect(negative.shape).toEqual([3, 3]);
  // It has as many rows as the bucket, which are no rows of the argument.
  expect(squared.shape).toEqual([4, 4]);
  const [none]: any = await whole(host([0, 3], []), square);
  expect(none).toEqual(host([0, 3], []));
  await whole.dispose();
});

test('a training step on padded rows gives the weights and gradients of the rows alone', async () => {
  const train = (optimizer: any, weights: any, lossOf: (predicted: Tensor, wanted: Tensor) => Tensor) => {
    return (x: Tensor, y: Tensor) =>
      optimizer.minimize(() => lossOf(tf.matMul(tf.log(x), weights), y), true, [weights]) as Tensor;
  };
  const [padded, plain] = [0, 1].map(() => tf.variable(tf.ones([3, 2])));
  const rate = { padded: tf.train.adam(0.1), plain: tf.train.adam(0.1) };
  const step = jit(
    (rows: Rows, x: Tensor, y: Tensor) =>
      train(rate.padded, padded, (p, wanted) => tf.mean(rows.mean(tf.square(tf.sub(p, wanted)))))(x, y),
    { ...quick, bucket: { arguments: [0, 1], sizes: [8, 3] } },
  );
  const own = train(rate.plain, plain, (p, wanted) => tf.mean(tf.square(tf.sub(p, wanted))));
  for (const count of [2, 5, 3, 8, 1]) {
    const [x, y] = [rowsOf(count, count), floats([count, 2], -1, 1, count + 20)];
    const loss: any = await step(x, y);
    expectValues(
      loss,
      expected(() => own(tensorOf(x), tensorOf(y))),
    );
  }
  expect(step.numPrograms).toBe(2);
  expectValues(host([3, 2], [...padded!.dataSync()]), [...plain!.dataSync()]);
  await expect(step(rowsOf(9), floats([9, 2]))).rejects.toThrow('got 9 rows, and its largest bucket has 8');
  await expect(step(rowsOf(3), floats([4, 2]))).rejects.toThrow(
    "expected as many rows in 'arguments[1]' as in 'arguments[0]', [3,3], got [4,2]",
  );
  await step.dispose();
});

test('what padding would change, or can not be cut from, is refused', async () => {
  const mean = jit((_: Rows, x: Tensor) => tf.mean(x), { ...first, name: 'mean' });
  await expect(mean(rowsOf(3))).rejects.toThrow(
    "mean: result 1, [], is computed from all rows of a bucket, padding too. Take the function's first argument, rows",
  );
  const kept = tf.variable(tf.zeros([3]));
  const assigned = jit(
    (_: Rows, x: Tensor) => {
      kept.assign(tf.sum(x, 0) as any);
      return x;
    },
    { ...first, name: 'assigned' },
  );
  await expect(assigned(rowsOf(3))).rejects.toThrow('assigned: the new value of a variable, [3],');
  const turned = jit((_: Rows, x: Tensor) => tf.transpose(x), first);
  await expect(turned(rowsOf(3))).rejects.toThrow('result 1, [3,4], grows with the 4 rows of its bucket');
  const twice = jit((_: Rows, x: Tensor) => tf.concat([x, x]), first);
  await expect(twice(rowsOf(3))).rejects.toThrow('result 1, [8,3], grows');
  const wrong = jit((rows: Rows, x: Tensor) => rows.mean(tf.transpose(x)), first);
  await expect(wrong(rowsOf(3))).rejects.toThrow(
    'Expected the 4 rows of a bucket as first dimension, got [3,4].',
  );
  // Nothing was run.
  expect([...kept.dataSync()]).toEqual([0, 0, 0]);
  for (const f of [mean, assigned, turned, twice, wrong]) expect(f.numPrograms).toBe(0);
  expect(() => jit((_: Rows, x: Tensor) => x, { bucket: { arguments: [] } })).toThrow(
    'expected bucket.arguments to be positions of arguments, such as [0], got []',
  );
  expect(() => jit((_: Rows, x: Tensor) => x, { bucket: { arguments: [0], sizes: [4, 0] } })).toThrow(
    'expected bucket.sizes to be positive integers, got [4,0]',
  );
});

test('operation by operation, nothing is padded', async () => {
  const sizes: number[] = [];
  const body = (rows: Rows, { x }: { x: Tensor }) => {
    sizes.push(x.shape[0]!);
    return { mean: rows.mean(x), twice: tf.mul(x, rows.count), read: x.dataSync().length };
  };
  const notices: string[] = [];
  const f = jit(body, {
    ...first,
    graphBreaks: true,
    notify: (notice) => notices.push(notice),
  });
  const x = rowsOf(5);
  const result: any = await f({ x: tensorOf(x) } as any);
  expect(sizes.at(-1)).toBe(5);
  expect(notices).toHaveLength(1);
  expect(result.read).toBe(15);
  expect(result.twice.shape).toEqual([5, 3]);
  expectValues(
    { ...host([3], []), data: result.mean.dataSync() },
    expected(() => tf.mean(tensorOf(x), 0)),
  );
});

test('models predict any number of rows by a few programs', async () => {
  await tf.setBackend('cpu');
  const model = convnet();
  const compiled = compileModel(model, { ...quick, bucket: { sizes: [2, 4] } });
  for (const rows of [1, 3, 4, 7]) {
    const x = tensor([rows, 8, 8, 2], rows);
    expectSame((await compiled.predict(x, { batchSize: 4 })) as Tensor, model.predict(x), `${rows} rows`);
  }
  expect(compiled.numPrograms).toBe(2);
  await expect(compiled.predict(tensor([5, 8, 8, 2], 1))).rejects.toThrow('largest bucket has 4');
  await compiled.dispose();
  expect(compiled.numPrograms).toBe(0);

  const file = new GraphFile();
  const y = file.dense(file.input('x', [-1, 4]), 4, 4);
  const total = file.node('Mean', [y, file.int(0)], {}, 'total');
  const graph = await tfjs.loadGraphModel(tf.io.fromMemory(file.artifacts() as any));
  const bucketed = compileModel(graph as { modelVersion: string; execute(): unknown }, {
    ...quick,
    bucket: {},
  });
  for (const rows of [3, 4]) {
    const x = tensor([rows, 4], rows);
    expectSame((await bucketed.execute(x, y)) as Tensor, graph.execute(x, y), `${rows} rows`);
  }
  expect(bucketed.numPrograms).toBe(1);
  await expect(bucketed.execute(tensor([3, 4], 3), total)).rejects.toThrow(
    'computed from all rows of a bucket',
  );
  await bucketed.dispose();
});
