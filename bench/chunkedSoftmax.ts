/**
 * @file `npm run bench:chunked-softmax`: memory of a training step with a large vocabulary, with a softmax whole, in chunks and
 * without one; and the time of a step at 4k classes in chunks of several sizes beside the whole one.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compile, type Tensor, tf, valueAndGrad } from '../src/compiler/index.js';
import { build } from '../src/hparams/index.js';
import { FullSoftmax, listVariables, runInContext } from '../src/layers/index.js';
import { resident } from './resident.js';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    // Of one measurement.
    classes: { type: 'string' },
    chunk: { type: 'string', default: '0' },
    layers: { type: 'string', default: '0' },
    none: { type: 'boolean', default: false },
  },
});

const [ROWS, DEPTH, HIDDEN] = [16_384, 512, 2048];
const STEPS = 4;

/** A step of SGD of a stack of feed-forward layers below a softmax, or below a mean of squares. */
async function measure(numClasses: number, chunkSize: number, layers: number, isNone: boolean) {
  const softmax = build(FullSoftmax.config({ inputDims: DEPTH, numClasses, chunkSize }));
  const variables = isNone
    ? []
    : listVariables(softmax).map(({ path, shape }) => [path, [...shape]] as const);
  const stack = Array.from({ length: layers }, (_, i) => [
    [`up${i}`, [DEPTH, HIDDEN]] as const,
    [`down${i}`, [HIDDEN, DEPTH]] as const,
  ]).flat();
  const float = (shape: readonly number[]) => ({ shape, dtype: 'float32' as const });
  const params = Object.fromEntries([...variables, ...stack].map(([path, shape]) => [path, float(shape)]));
  const specs = { params, x: float([ROWS, DEPTH]), ids: { shape: [ROWS], dtype: 'int32' as const } };
  type Inputs = { params: Record<string, Tensor>; x: Tensor; ids: Tensor };
  const step = ({ params, x, ids }: Inputs) => {
    const { value, grads } = valueAndGrad(
      (given: { p: Record<string, Tensor>; x: Tensor }) => {
        let h = given.x;
        for (let i = 0; i < layers; i++)
          h = tf.add(h, tf.matMul(tf.relu(tf.matMul(h, given.p[`up${i}`]!)), given.p[`down${i}`]!));
        const loss = isNone
          ? tf.mean(tf.square(h))
          : runInContext({ theta: given.p }, () => softmax.fprop(h, tf.ones([ROWS]), ids).avgXent);
        return { value: tf.add(loss, tf.mul(tf.sum(given.x), 1e-9)) as Tensor, aux: {} };
      },
      { p: params, x },
    );
    const next = Object.fromEntries(
      Object.entries(params).map(([path, w]) => [path, tf.sub(w, tf.mul(grads.p[path]!, 0.1)) as Tensor]),
    );
    return { value, params: next, dx: tf.sum(grads.x) };
  };
  const program = await compile(step as never, specs as never, { engine: 'native', name: 'chunkedSoftmax' });
  const data = (shape: readonly number[]) =>
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => 0.05 * Math.sin(i * i));
  const inputs = {
    params: Object.fromEntries(Object.entries(params).map(([path, { shape }]) => [path, data(shape)])),
    x: data([ROWS, DEPTH]),
    ids: Int32Array.from({ length: ROWS }, (_, i) => (i * 7919) % numClasses),
  };
  const call = program.bind({ inputs: inputs as never });
  await call.run();
  resident();
  writeFileSync('/proc/self/clear_refs', '5');
  let milliseconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < STEPS; i++) {
    const started = performance.now();
    await call.run();
    milliseconds = Math.min(milliseconds, performance.now() - started);
  }
  const peak = 1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
  await program.dispose();
  return { megabytes: (peak - process.memoryUsage().heapTotal) / 1e6, milliseconds };
}

if (flags.classes !== undefined) {
  const found = await measure(+flags.classes, +flags.chunk, +flags.layers, flags.none);
  process.stdout.write(JSON.stringify(found));
  process.exit();
}

type Found = Awaited<ReturnType<typeof measure>>;
function apart(args: readonly string[]): Found {
  const { stdout, status } = spawnSync(process.execPath, [...process.execArgv, process.argv[1]!, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`${args.join(' ')}: exit status ${status}`);
  return JSON.parse(`${stdout}`);
}

const subjects: Readonly<Record<string, readonly string[]>> = {
  '4k classes, whole': ['--classes=4096'],
  '4k classes, chunks of 4096': ['--classes=4096', '--chunk=4096'],
  '4k classes, chunks of 1024': ['--classes=4096', '--chunk=1024'],
  '4 layers, no softmax': ['--classes=32768', '--layers=4', '--none'],
  '4 layers, 32k classes, chunks of 512': ['--classes=32768', '--layers=4', '--chunk=512'],
  '4 layers, 32k classes, whole': ['--classes=32768', '--layers=4'],
};
const found = new Map<string, Found[]>(Object.keys(subjects).map((name) => [name, []]));
for (let round = 0; round < Number(flags.rounds); round++)
  for (const [name, results] of found) results.push(apart(subjects[name]!));
for (const [name, results] of found) {
  const least = (of: keyof Found): string => Math.min(...results.map((each) => each[of])).toFixed(0);
  console.log(`| ${name} | ${least('megabytes')} | ${least('milliseconds')} |`);
}
