/** @file Binding: views, in-place results, shared memory, wrong arrays, repeated runs, disposal. */
import { createHash } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import {
  compile,
  type Executable,
  type HostArray,
  type HostTensor,
  type Tensor,
} from '../../../src/compiler/index.js';
import { hasCompiler } from '../native/compilerSupport.js';
import { differentiated, programInputs } from '../programs.js';
import { floats, leavesOf, ops, tf } from '../support.js';

const x = { shape: [4], dtype: 'float32' } as const;

const made: Executable[] = [];
afterAll(() => Promise.all(made.map((executable) => executable.dispose())));

async function compiled(f: (inputs: any) => any, inputs: any, options = {}): Promise<Executable> {
  const executable = await compile(f, inputs, { name: 'step', numThreads: 2, ...options });
  made.push(executable);
  return executable;
}

/** A digest of the bytes of each array: comparing long arrays element by element is slow. */
const bits = (arrays: HostArray[]): string[] =>
  arrays.map((array) => createHash('sha256').update(new Uint8Array(array.buffer)).digest('hex'));

const double = ({ x }: { x: Tensor }) => ({ y: tf.mul(x, 2) });

test('inputs and outputs are views into larger buffers, and nothing beside them is touched', async () => {
  for (const engine of ['onnx', 'eager'] as const) {
    const executable = await compiled(double, { x }, { engine });
    const buffer = Float32Array.from({ length: 16 }, (_, i) => i);
    const call = executable.bind({
      inputs: { x: buffer.subarray(3, 7) },
      outputs: { y: buffer.subarray(9, 13) },
    });
    await call.run();
    expect([...buffer]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 6, 8, 10, 12, 13, 14, 15]);
    buffer.fill(1);
    const { y } = (await call.run()) as { y: HostTensor };
    expect([...y.data]).toEqual([2, 2, 2, 2]);
    expect(y.data.buffer).toBe(buffer.buffer);
  }
});

test('an elementwise program may write over its inputs', async () => {
  const adam = ({ p, g, m }: Record<string, Tensor>) => {
    const next = tf.add(tf.mul(m!, 0.9), tf.mul(g!, 0.1));
    return { p: tf.sub(p!, tf.mul(tf.div(next, tf.add(tf.sqrt(tf.square(g!)), 1e-3)), 0.5)), m: next };
  };
  const size = 100_003;
  const spec = { shape: [size], dtype: 'float32' } as const;
  const executable = await compiled(adam, { p: spec, g: spec, m: spec });
  const fresh = () => ({
    p: floats([size], -1, 1, 1).data,
    g: floats([size], -1, 1, 2).data,
    m: floats([size], -1, 1, 3).data,
  });
  const apart = fresh();
  const [expectedP, expectedM] = leavesOf(await executable.bind({ inputs: apart }).run());
  const inPlace = fresh();
  await executable.bind({ inputs: inPlace, outputs: { p: inPlace.p, m: inPlace.m } }).run();
  expect(bits([inPlace.p, inPlace.m])).toEqual(bits([expectedP!.data, expectedM!.data]));
});

test('an output that is an input, a constant or another output gets its own array', async () => {
  const executable = await compiled(
    ({ x }: { x: Tensor }) => {
      const y = tf.neg(x);
      return [x, y, y, tf.tensor([7]), tf.reshape(y, [2, 2])];
    },
    { x },
  );
  const input = Float32Array.of(1, 2, 3, 4);
  const results = leavesOf(await executable.bind({ inputs: { x: input } }).run());
  expect(results.map(({ data }) => [...data])).toEqual([
    [1, 2, 3, 4],
    [-1, -2, -3, -4],
    [-1, -2, -3, -4],
    [7],
    [-1, -2, -3, -4],
  ]);
  expect(new Set(results.map(({ data }) => data.buffer)).size).toBe(5);
});

test('memory that threads share goes in and out', async () => {
  const shared = new SharedArrayBuffer(48);
  const input = new Float32Array(shared, 8, 4);
  const output = new Float32Array(shared, 32, 4);
  const call = (await compiled(double, { x })).bind({ inputs: { x: input }, outputs: { y: output } });
  for (const values of [
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ]) {
    input.set(values);
    const { y } = (await call.run()) as { y: HostTensor };
    expect(y.data).toBe(output);
    expect([...output]).toEqual(values.map((value) => 2 * value));
  }
});

test.each([
  ['a missing input', { inputs: {} }, "step: no array for input 'x' (float32[4])."],
  [
    'an input of another type',
    { inputs: { x: new Int32Array(4) } },
    "step: input 'x' is float32[4] and needs a Float32Array of 4 elements, got a Int32Array of 4.",
  ],
  [
    'an input of another length',
    { inputs: { x: new Float32Array(5) } },
    "step: input 'x' is float32[4] and needs a Float32Array of 4 elements, got a Float32Array of 5.",
  ],
  [
    'a missing output',
    { inputs: { x: new Float32Array(4) }, outputs: { z: null } },
    "step: no array for output 'y' (float32[4]).",
  ],
  [
    'an output of another length',
    { inputs: { x: new Float32Array(4) }, outputs: { y: new Float32Array(1) } },
    "step: output 'y' is float32[4] and needs a Float32Array of 4 elements, got a Float32Array of 1.",
  ],
])('%s is refused', async (_, binding, message) => {
  const executable = await compiled(double, { x });
  expect(() => executable.bind(binding as any)).toThrow(message);
});

const buffer = new Float32Array(8);
const [front, back] = [buffer.subarray(0, 4), buffer.subarray(4)];

test.each<[string, (t: any) => any, object, string]>([
  [
    'two outputs on one array',
    ({ x }) => ({ y: tf.neg(x), z: tf.square(x) }),
    { inputs: { x: front }, outputs: { y: back, z: back } },
    "step: outputs 'y' and 'z' share memory; bind each to memory of its own.",
  ],
  [
    'outputs that overlap',
    ({ x }) => ({ y: tf.neg(x), z: tf.square(x) }),
    { inputs: { x: new Float32Array(4) }, outputs: { y: buffer.subarray(2, 6), z: front } },
    "step: outputs 'z' and 'y' share memory; bind each to memory of its own.",
  ],
  [
    'an output on a part of an input',
    ({ x }) => ({ y: tf.neg(x) }),
    { inputs: { x: front }, outputs: { y: buffer.subarray(1, 5) } },
    "step: output 'y' overlaps a part of input 'x'; bind it to memory of its own.",
  ],
  [
    'an output on an input that it is read with, each with a part for each run',
    ({ x }) => ({ y: tf.reverse(x, 0) }),
    { inputs: { x: buffer }, outputs: { y: buffer }, runs: 2 },
    "step: output 'y' shares memory with stacked input 'x' and is written before that is last read; bind it to memory of its own.",
  ],
])('%s is refused', async (_, f, binding, message) => {
  const executable = await compiled(f, { x });
  expect(() => executable.bind(binding as any)).toThrow(message);
});

/** Functions of two tensors [4]; the first result lies on the first of them, the second on the second. */
const overwriting: Record<string, (x: Tensor, y: Tensor) => Tensor[]> = {
  'element by element': (x, y) => [tf.add(tf.mul(x, y), x), tf.neg(y)],
  exchanged: (x, y) => [tf.clone(y), tf.clone(x)],
  'read once more behind': (x, y) => [tf.mul(x, 2), tf.add(y, x)],
  'read in another order': (x, y) => [tf.reverse(x, 0), tf.transpose(tf.reshape(y, [2, 2]))],
  'read by all rows': (x, y) => [tf.sub(x, tf.slice(x, [0], [1])), tf.gather(y, [3, 2, 0, 0])],
  'read by a product': (x, y) => [tf.matMul(tf.reshape(x, [2, 2]), tf.reshape(x, [2, 2])), tf.softmax(y)],
  'read behind a row': (x, y) => {
    const rows = tf.reshape(x, [2, 2]);
    return [tf.mul(rows, 2), tf.reshape(tf.sub(rows, tf.sum(rows, 1, true)), y.shape)];
  },
};

test.each(['eager', 'auto', 'onnx', ...(hasCompiler ? ['native' as const] : [])] as const)(
  'outputs on inputs are what they are elsewhere, on %s',
  async (engine) => {
    for (const [what, f] of Object.entries(overwriting)) {
      const executable = await compiled(({ x, y }) => f(x, y), { x, y: x }, { engine });
      const values = [floats([4], 1, 2, 5).data, floats([4], 1, 2, 6).data] as const;
      const [expected, given] = [0, 1].map(() => values.map((data) => data.slice()));
      for (const [[a, b], outputs] of [
        [expected!, null],
        [given!, given!],
      ] as const) {
        const call = executable.bind({ inputs: { x: a!, y: b! }, outputs: outputs && [...outputs] } as any);
        for (let run = 0; run < 2; run++) {
          const results = leavesOf(await call.run());
          if (outputs === null) results.forEach(({ data }, i) => void expected![i]!.set(data));
        }
      }
      expect([what, ...given!.map((data) => [...data])]).toEqual([
        what,
        ...expected!.map((data) => [...data]),
      ]);
      await executable.dispose();
    }
  },
);

test('two threads give the same bits on every run', async () => {
  const steps = ['gram', 'exp', 'product', 'layerNorm', 'sum', 'softmax', 'lookup', 'tile'].map((op, i) => ({
    op,
    a: i,
    b: 2 * i,
    n: i,
  }));
  const small = await compiled(differentiated(steps), programInputs);
  const wide = await compiled(
    ({ a, b }: any) => [tf.matMul(a, b), tf.softmax(tf.matMul(b, a)), tf.sum(tf.square(a), 0), tf.mean(b)],
    { a: floats([257, 191]), b: floats([191, 257]) },
  );
  const wideInputs = { a: floats([257, 191]), b: floats([191, 257], -1, 1, 2) };
  for (const [executable, inputs] of [
    [small, programInputs],
    [wide, wideInputs],
  ] as const) {
    const once = async () => bits(leavesOf(await executable.run(inputs as any)).map(({ data }) => data));
    const first = await once();
    for (let run = 0; run < 10; run++) expect(await once()).toEqual(first);
  }
});

test('two programs are alive at once, and runs may overlap', async () => {
  const a = await compiled(double, { x });
  const b = await compiled(({ x }: { x: Tensor }) => ({ y: ops.gelu(tf.neg(x)) }), { x });
  const inputs = (value: number) => ({ x: { ...x, data: new Float32Array(4).fill(value) } });
  const results = await Promise.all([1, 2, 3].flatMap((v) => [a.run(inputs(v)), b.run(inputs(v))]));
  const firsts = results.map((result) => leavesOf(result)[0]!.data[0]!);
  [2, -0.15866, 4, -0.0455, 6, -0.00405].forEach((value, i) => {
    expect(firsts[i]).toBeCloseTo(value, 4);
  });
});

test('a program that has been disposed of says so', async () => {
  for (const engine of ['onnx', 'eager'] as const) {
    const executable = await compile(double, { x }, { name: 'step', engine });
    const call = executable.bind({ inputs: { x: new Float32Array(4) } });
    await call.run();
    await executable.dispose();
    await executable.dispose();
    await expect(call.run()).rejects.toThrow('step: the program has been disposed of.');
    expect(() => executable.bind({ inputs: { x: new Float32Array(4) } })).toThrow(
      'step: the program has been disposed of.',
    );
  }
});

test('the eager engine keeps no tensors between runs', async () => {
  const executable = await compiled(differentiated([{ op: 'gram', a: 0, b: 0, n: 0 }]), programInputs, {
    engine: 'eager',
  });
  await executable.run(programInputs as any);
  const before = tf.memory().numTensors;
  for (let run = 0; run < 3; run++) await executable.run(programInputs as any);
  expect(tf.memory().numTensors).toBe(before);
});

test.each(['eager', 'onnx', ...(hasCompiler ? ['native' as const] : [])] as const)(
  'a call repeats itself, outputs becoming inputs, on %s',
  async (engine) => {
    const grow = ({ x, step, seen }: Record<string, Tensor>) => ({
      x: tf.mul(x!, 2),
      step: tf.add(step!, tf.scalar(1, 'int32')),
      seen: ops.updateSlice(seen!, tf.reshape(x!, [1, 2]), step!, 0),
    });
    const int = { shape: [], dtype: 'int32' } as const;
    const specs = {
      x: { shape: [2], dtype: 'float32' },
      step: int,
      seen: { shape: [6, 2], dtype: 'float32' },
    } as const;
    const executable = await compiled(grow, specs, { engine });
    const [x, step] = [new Float32Array([1, 3]), new Int32Array(1)];
    const [seen] = executable.newInputs(['seen']) as [Float32Array];
    const inPlace = executable.updatesInPlace;
    expect(inPlace).toBe(engine === 'native');
    const call = executable.bind({
      inputs: { x, step, seen },
      outputs: { x: null, step: null, seen: inPlace ? seen : null },
      carried: { x: 'x', step: 'step', ...(!inPlace && { seen: 'seen' }) },
    });
    await call.run(3);
    await call.run();
    await call.run(0);
    expect([...x, ...step]).toEqual([16, 48, 4]);
    expect([...seen]).toEqual([1, 3, 2, 6, 4, 12, 8, 24, 0, 0, 0, 0]);
    expect(() => executable.bind({ inputs: { x, step, seen }, carried: { y: 'x' } })).toThrow(
      "step: there is no output 'y'.",
    );
    expect(() => executable.newInputs(['z'])).toThrow("step: there is no input 'z'.");
  },
);

test.each(['eager', 'onnx', ...(hasCompiler ? ['native' as const] : [])] as const)(
  'each run of a call has its part of an array, on %s',
  async (engine) => {
    const add = ({ x, sum }: Record<string, Tensor>) => {
      const after = tf.add(x!, sum!);
      return { sum: after, total: tf.sum(after) };
    };
    const executable = await compiled(add, { x, sum: x }, { engine });
    const [eights, sum] = [new Float32Array(3 * 4).map((_, i) => i), new Float32Array(4)];
    const bound = { inputs: { x: eights, sum }, carried: { sum: 'sum' }, runs: 3 };
    const call = executable.bind(bound);
    const { total } = (await call.run(3)) as { total: HostTensor };
    expect(total.shape).toEqual([]);
    expect([...total.data]).toEqual([6, 28, 66]);
    expect([...sum]).toEqual([12, 15, 18, 21]);
    // Fewer runs begin at the first part as well, and leave the others' results.
    await call.run();
    expect([...total.data]).toEqual([72, 28, 66]);
    await expect(call.run(4)).rejects.toThrow('step: expected at most 3 runs per call, as bound, got 4.');
    // What all runs read alike is given once.
    const alike = executable.bind({ ...bound, inputs: { x: eights.slice(4, 8), sum: sum.fill(0) } });
    const sums = (await alike.run(3)) as { total: HostTensor };
    expect([...sums.total.data]).toEqual([22, 44, 66]);
    expect(() => executable.bind({ ...bound, inputs: { x: new Float32Array(8), sum } })).toThrow(
      "step: input 'x' is float32[4] and needs a Float32Array of 4 elements, or 3 times as many, got a Float32Array of 8.",
    );
    expect(() => executable.bind({ ...bound, inputs: { x: eights, sum: eights } })).toThrow(
      "step: input 'sum' is float32[4] and needs a Float32Array of 4 elements, got a Float32Array of 12.",
    );
  },
);

/** Gradients of a product by its weights, and a step along them: each weight changes by what all rows say. */
const [rows, width] = [150, 40];
const scores = ({ x, w }: Record<string, Tensor>) => {
  const y = tf.matMul(x!, w!);
  return { y, grad: tf.matMul(x!, tf.sub(y, 1), true) };
};
const descend = ({ w, grad, y }: Record<string, Tensor>) => {
  const norm = tf.sqrt(tf.sum(tf.square(grad!)));
  return { w: tf.sub(w!, tf.div(grad!, norm)), largest: tf.max(y!), norm };
};
const scoreSpecs = {
  x: { shape: [rows, width], dtype: 'float32' },
  w: { shape: [width, width], dtype: 'float32' },
} as const;
const following = {
  name: 'descend',
  f: descend,
  inputs: {
    w: scoreSpecs.w,
    grad: scoreSpecs.w,
    y: { shape: [rows, width], dtype: 'float32' },
  },
} as const;

test.each(['eager', 'onnx', ...(hasCompiler ? ['native' as const] : [])] as const)(
  'a function that follows in the same run reads what the first wrote, and writes over what it read, on %s',
  async (engine) => {
    for (const numThreads of [1, 2]) {
      const options = { engine, numThreads } as const;
      const both = await compiled(scores, scoreSpecs, { ...options, following });
      const apart = [
        await compiled(scores, scoreSpecs, options),
        await compiled(descend, following.inputs, options),
      ];
      const arrays = () => ({
        x: floats([rows, width], -1, 1, 1).data,
        w: floats([width, width], -1, 1, 2).data,
        y: new Float32Array(rows * width),
        grad: new Float32Array(width * width),
        told: { largest: new Float32Array(1), norm: new Float32Array(1) },
      });
      const [a, b] = [arrays(), arrays()];
      const call = both.bind({
        inputs: [{ x: a.x, w: a.w }, a],
        outputs: [
          { y: a.y, grad: a.grad },
          { w: a.w, ...a.told },
        ],
      });
      const calls = [
        apart[0]!.bind({ inputs: b, outputs: { y: b.y, grad: b.grad } }),
        apart[1]!.bind({ inputs: b, outputs: { w: b.w, ...b.told } }),
      ];
      for (let step = 0; step < 3; step++) {
        await call.run();
        for (const one of calls) await one.run();
        expect(bits([a.w, a.y, a.grad, a.told.largest, a.told.norm])).toEqual(
          bits([b.w, b.y, b.grad, b.told.largest, b.told.norm]),
        );
      }
      // Runs that are asked for at once follow one another as well.
      await call.run(2);
      for (let step = 0; step < 2; step++) for (const one of calls) await one.run();
      expect(bits([a.w])).toEqual(bits([b.w]));
    }
  },
);
