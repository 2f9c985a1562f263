/** @file Choice of an engine: machine code for programs whose runs pay for its compiling. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { predictSeconds } from '../../../src/compiler/engines/engineCost.js';
import { compile, mayBeNative, type Tensor, tf } from '../../../src/compiler/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { hasCompiler } from '../native/compilerSupport.js';

const square = ({ x }: { x: Tensor }) => ({ y: tf.matMul(x, x) });
const x = { shape: [4, 4], dtype: 'float32' } as const;

/** Runs from which machine code is predicted to be faster in all. */
function breakEven(f: (given: any) => any, shape: readonly number[], threads = 2): number {
  const { graph } = traceProgram(f, { x: { shape: [...shape], dtype: 'float32' } });
  const pays = (runs: number) => {
    const { native, onnx } = predictSeconds([graph], runs, threads);
    return native <= onnx;
  };
  let [low, high] = [0, 1 << 20];
  expect(pays(low)).toBe(false);
  expect(pays(high)).toBe(true);
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (pays(middle)) high = middle;
    else low = middle;
  }
  return high;
}

describe('the predicted break-even', () => {
  const elementwise = ({ x }: { x: Tensor }) => tf.tanh(tf.add(tf.mul(x, x), x));
  const layers = (count: number) => (given: { x: Tensor }) => {
    let { x } = given;
    for (let i = 0; i < count; i++) x = tf.relu(tf.matMul(x, given.x));
    return x;
  };
  const convolution = ({ x }: { x: Tensor }) =>
    tf.conv2d(x as never, tf.ones([3, 3, x.shape[3]!, 8]) as never, 1, 'same');

  test('comes sooner for larger arrays, more operations and larger images', () => {
    expect(breakEven(elementwise, [1 << 20])).toBeLessThan(breakEven(elementwise, [1 << 10]));
    expect(breakEven(layers(8), [64, 64])).toBeLessThan(breakEven(layers(1), [64, 64]));
    expect(breakEven(convolution, [8, 64, 64, 3])).toBeLessThan(breakEven(convolution, [8, 8, 8, 3]));
  });

  test('is hundreds to thousands of runs for tiny programs, and few for large convolutions', () => {
    const tiny = breakEven(square as never, [4, 4]);
    expect(tiny).toBeGreaterThan(500);
    expect(tiny).toBeLessThan(10_000);
    expect(breakEven(convolution, [64, 128, 128, 32])).toBeLessThan(20);
  });

  test('comes later with more threads, which make runs cheaper on both engines', () => {
    expect(breakEven(convolution, [8, 64, 64, 3], 8)).toBeGreaterThan(
      breakEven(convolution, [8, 64, 64, 3], 1),
    );
  });

  test('counts a second graph, and compiles operations of one kind and shape for less than different ones', () => {
    const graphOf = (f: (given: any) => any) =>
      traceProgram(f, { x: { shape: [8, 8], dtype: 'float32' } }).graph;
    const same = graphOf(({ x }) => tf.tanh(tf.tanh(tf.tanh(x))));
    const different = graphOf(({ x }) => tf.tanh(tf.sqrt(tf.exp(x))));
    expect(predictSeconds([same], 0, 2).native).toBeLessThan(predictSeconds([different], 0, 2).native);
    const [one, both] = [predictSeconds([same], 10, 2), predictSeconds([same, different], 10, 2)];
    expect(both.native).toBeGreaterThan(one.native);
    expect(both.onnx).toBeGreaterThan(one.onnx);
  });
});

test('options allow machine code: by themselves, or where it is asked for, and not on a GPU', () => {
  expect(
    ([{}, { engine: 'auto' }, { engine: 'native' }, { device: 'cpu' }] as const).map(mayBeNative),
  ).toEqual([true, true, true, true]);
  expect(([{ engine: 'onnx' }, { engine: 'eager' }, { device: 'gpu' }] as const).map(mayBeNative)).toEqual([
    false,
    false,
    false,
  ]);
});

test('auto takes what is predicted, whatever the cache has, and explains it in a sentence', async () => {
  const told: string[] = [];
  const explain = (sentence: string) => told.push(sentence);
  const runnerOf = async (options: object) => {
    const executable = await compile(square, { x }, { name: 'square', explain, ...options });
    const { runner } = executable;
    await executable.dispose();
    return runner;
  };
  const compiled = hasCompiler ? 'native' : 'onnx';
  expect(await runnerOf({})).toBe('onnx');
  expect(await runnerOf({ runs: 100_000 })).toBe(compiled);
  // It is compiled by now; a run that is repeated takes the same engine all the same.
  expect(await runnerOf({ runs: 1 })).toBe('onnx');
  expect(await runnerOf({ runs: 100_000, engine: 'onnx' })).toBe('onnx');
  const sentence = (engine: string, runs: string, other: string) =>
    expect.stringMatching(
      new RegExp(
        `^square runs on engine ${engine}: ${runs} should take [\\d.]+ s there, compiling included, ` +
          `and [\\d.]+ s on ${other} \\(--engine=${other} takes that\\)\\.$`,
      ),
    );
  expect(told).toEqual([
    sentence('onnx', '100 runs', 'native'),
    ...(hasCompiler ? [sentence('native', '100000 runs', 'onnx')] : []),
    sentence('onnx', '1 run', 'native'),
  ]);
});

describe('without a C compiler', () => {
  const missing = '/nonexistent/engine-test-cc';
  beforeEach(() => void vi.stubEnv('CC', missing));
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });
  const reason = `There is no C compiler: CC is '${missing}', which is not there. `;

  test('auto takes the next engine that can, and says so once instead of explaining the choice', async () => {
    const told: string[] = [];
    const explained: string[] = [];
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => told.push(String(text)) > 0);
    const runnerOf = async (f: (given: any) => any, runs: number) => {
      const explain = (sentence: string) => explained.push(sentence);
      const executable = await compile(f, { x }, { name: 'square', runs, explain });
      const { runner } = executable;
      await executable.dispose();
      return runner;
    };
    expect(await runnerOf(square, 100_000)).toBe('onnx');
    expect(explained).toEqual([]);
    expect(
      told.map((line) => [
        line.startsWith(reason),
        line.endsWith(' Running on ONNX Runtime instead, which is slower.\n'),
      ]),
    ).toEqual([[true, true]]);
    // It is not asked where another one is cheaper.
    expect(await runnerOf(square, 1)).toBe('onnx');
    expect(explained).toEqual([expect.stringMatching(/^square runs on engine onnx: 1 run should take /)]);
  });

  test('native is an error that says why, and what to ask for instead', async () => {
    const asked = compile(square, { x }, { name: 'square', engine: 'native' });
    await expect(asked).rejects.toThrow(`square: ${reason}`);
    await expect(asked).rejects.toThrow(/ Use --engine=onnx\.$/);
  });
});
