/** @file Luthier's products aᵀb of a[k, m] and b[k, n], timed; prints one line of JSON. */
import { parseArgs } from 'node:util';
import { compile, type Tensor, tf, withPrecision } from '../src/compiler/index.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shapes: { type: 'string', default: '' },
    precision: { type: 'string', default: 'f32' },
    threads: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '0.5' },
  },
});

const filled = (size: number) => Float32Array.from({ length: size }, (_, i) => Math.sin(i * 12.9898));
const precision = flags.precision === 'bf16' ? 'bfloat16' : 'float32';
const milliseconds: Record<string, { min: number; median: number }> = {};
for (const shape of flags.shapes.split(',')) {
  const [m, k, n] = shape.split('x').map(Number) as [number, number, number];
  const specs = {
    a: { shape: [k, m], dtype: 'float32' },
    b: { shape: [k, n], dtype: 'float32' },
  } as const;
  const product = ({ a, b }: { a: Tensor; b: Tensor }) =>
    withPrecision(precision, () => ({ c: tf.matMul(a, b, true) as Tensor }));
  const executable = await compile(product, specs, {
    engine: 'native',
    name: shape,
    numThreads: Number(flags.threads),
  });
  const call = executable.bind({ inputs: { a: filled(k * m), b: filled(k * n) } });
  for (let i = 0; i < 3; i++) await call.run();
  const times: number[] = [];
  for (const end = performance.now() + 1000 * Number(flags.seconds); performance.now() < end; ) {
    const before = performance.now();
    await call.run();
    times.push(performance.now() - before);
  }
  milliseconds[shape] = { min: Math.min(...times), median: median(times) };
  await executable.dispose();
}
process.stdout.write(`${JSON.stringify(milliseconds)}\n`);
process.exit();
