/** @file Luthier's loss and gradients of a model beyond GPT, timed; prints one line of JSON. */
import { parseArgs } from 'node:util';
import {
  compile,
  type Engine,
  type HostTensor,
  newHostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
  valueAndGrad,
  withPrecision,
} from '../src/compiler/index.js';
import { lossOf, models, type Tensors } from './beyondModels.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string', default: 'conv' },
    precision: { type: 'string', default: 'f32' },
    engine: { type: 'string', default: 'native' },
    threads: { type: 'string', default: '0' },
    seconds: { type: 'string', default: '3' },
  },
});
const model = models[flags.model]!;

const float = (shape: readonly number[]): TensorSpec => ({ shape, dtype: 'float32' });
const specs = {
  params: Object.fromEntries(Object.entries(model.params).map(([path, shape]) => [path, float(shape)])),
  x: float(model.shape),
  labels: { shape: [model.shape[0]!], dtype: 'int32' } as const,
};

/** Weights of a variance of 1 / inputs; zeros for biases, ones for scales. */
function initial(path: string, shape: readonly number[], i: number): Float32Array {
  const values = newHostArray('float32', sizeOf(shape)) as Float32Array;
  if (path.endsWith('.scale')) return values.fill(1);
  if (shape.length === 1) return values;
  const inputs = path.startsWith('depthwise') ? 9 : sizeOf(shape) / shape.at(-1)!;
  let state = i + 1;
  return values.map(() => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 31 - 1) * Math.sqrt(3 / inputs);
  });
}

const tensors = {
  params: Object.fromEntries(
    Object.entries(model.params).map(([path, shape], i) => [
      path,
      { ...float(shape), data: initial(path, shape, i) },
    ]),
  ),
  x: { ...specs.x, data: newHostArray('float32', sizeOf(model.shape)).map((_, i) => Math.sin(i * 12.9898)) },
  labels: { ...specs.labels, data: newHostArray('int32', model.shape[0]!).map((_, i) => i % 10) },
};

const program = await compile(
  ({ params, x, labels }: any) =>
    withPrecision(flags.precision === 'bf16' ? 'bfloat16' : 'float32', () => {
      const { value, grads } = valueAndGrad(
        (p: Tensors) => ({ value: lossOf(model, p, x, labels), aux: {} }),
        params as Tensors,
      );
      return { loss: value, grads };
    }) as any,
  specs as Tree<TensorSpec>,
  {
    engine: flags.engine as Engine,
    name: flags.model,
    ...(flags.threads !== '0' && { numThreads: Number(flags.threads) }),
  },
);
const inputs = {
  params: Object.fromEntries(Object.entries(tensors.params).map(([k, t]) => [k, t.data])),
  x: tensors.x.data,
  labels: tensors.labels.data,
};
const call = program.bind({ inputs: inputs as any });

for (let i = 0; i < 3; i++) await call.run();
const [milliseconds, cpu]: [number[], number[]] = [[], []];
const end = performance.now() + Number(flags.seconds) * 1000;
while (milliseconds.length < 5 || performance.now() < end) {
  const [before, busy] = [performance.now(), process.cpuUsage()];
  await call.run();
  milliseconds.push(performance.now() - before);
  const { user, system } = process.cpuUsage(busy);
  cpu.push((user + system) / 1000);
}
const { loss } = call.outputs as unknown as { loss: HostTensor };
const result = {
  version: 'Luthier',
  minMs: Math.min(...milliseconds),
  medianMs: median(milliseconds),
  minCpuMs: Math.min(...cpu),
  loss: loss.data[0],
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit();
