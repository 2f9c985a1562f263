/** @file Luthier's loss and gradients of an architecture, timed; prints one line of JSON. */
import { parseArgs } from 'node:util';
import {
  compile,
  type Engine,
  evalShape,
  type HostTensor,
  Profiler,
  sizeOf,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
  valueAndGrad,
  withPrecision,
} from '../src/compiler/index.js';
import { type Architecture, logitsOf, lossOf } from './architectures.js';
import { inputsOf, labelsOf, uniforms } from './hashedValues.js';
import type { Precision } from './results.js';
import { showProfile, timeSteps } from './stepTimes.js';

const { values: flags } = parseArgs({
  options: {
    /** As JSON. */
    architecture: { type: 'string', default: '' },
    precision: { type: 'string', default: 'f32' },
    engine: { type: 'string', default: 'native' },
    threads: { type: 'string', default: '0' },
    seconds: { type: 'string', default: '3' },
    /** Tables of the time that kinds of work and layers take, on stderr. */
    profile: { type: 'boolean', default: false },
  },
});
const architecture: Architecture = JSON.parse(flags.architecture);

const dtype = architecture.vocabulary === undefined ? 'float32' : 'int32';
const x: TensorSpec = { shape: architecture.input, dtype };
/** Parameters in the order in which the layers ask for them. */
const values: { readonly shape: readonly number[]; readonly data: Float32Array }[] = [];
const logits = evalShape(
  ({ x }: any) =>
    logitsOf(architecture, x, (shape, fan, around) => {
      values.push({ shape, data: uniforms(values.length, sizeOf(shape), fan, around) });
      return tf.zeros([...shape]);
    }) as any,
  { x },
) as TensorSpec;
const labels: TensorSpec = { shape: logits.shape.slice(0, -1), dtype: 'int32' };
const params = Object.fromEntries(values.map(({ shape }, i) => [i, { shape, dtype: 'float32' } as const]));

const profiler = flags.profile ? new Profiler() : undefined;
const program = await compile(
  ({ params, x, labels }: any) =>
    withPrecision(flags.precision === 'bf16' ? 'bfloat16' : 'float32', () => {
      const loss = (p: Record<number, Tensor>) => {
        let next = 0;
        return { value: lossOf(architecture, x, labels, () => p[next++]!), aux: {} };
      };
      const { value, grads } = valueAndGrad(loss as any, params);
      return { loss: value, grads };
    }) as any,
  { params, x, labels } as Tree<TensorSpec>,
  {
    engine: flags.engine as Engine,
    name: 'beyond',
    profiler,
    ...(flags.threads !== '0' && { numThreads: Number(flags.threads) }),
  },
);
const call = program.bind({
  inputs: {
    params: Object.fromEntries(values.map(({ data }, i) => [i, data])),
    x: inputsOf(architecture),
    labels: labelsOf(architecture, sizeOf(labels.shape)),
  } as any,
});

for (let i = 0; i < 3; i++) await call.run();
profiler?.programs[0]?.restart();
const times = await timeSteps(() => call.run(), { steps: 5, seconds: Number(flags.seconds) });
if (profiler !== undefined) await showProfile(profiler, flags.precision as Precision);
const { loss, grads } = call.outputs as unknown as { loss: HostTensor; grads: Record<string, HostTensor> };
const squares = Object.values(grads).map(({ data }) =>
  (data as Float32Array).reduce((sum, g) => sum + g * g, 0),
);
const result = {
  version: 'Luthier',
  ...times,
  loss: loss.data[0],
  gradientNorm: Math.sqrt(squares.reduce((a, b) => a + b)),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit();
