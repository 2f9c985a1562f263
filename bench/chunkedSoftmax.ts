/**
 * @file `npm run bench:chunked-softmax`: memory of a training step with a large vocabulary, with a softmax whole, in chunks and
 * without one, each in a process of its own; and the time of a step at 4k classes in chunks beside the whole one, steps of both
 * in turn in one process. `--only=TEXT` runs the measurements whose name has that text.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compile, type Tensor, tf, valueAndGrad } from '../src/compiler/index.js';
import { build } from '../src/hparams/index.js';
import { FullSoftmax, listVariables, runInContext } from '../src/layers/index.js';
import { resident } from './resident.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    // Of one measurement.
    classes: { type: 'string' },
    chunk: { type: 'string', default: '0' },
    layers: { type: 'string', default: '0' },
    none: { type: 'boolean', default: false },
    paired: { type: 'boolean', default: false },
  },
});

const [ROWS, DEPTH, HIDDEN] = [16_384, 512, 2048];
const [STEPS, PAIRS] = [4, 7];

/** A step of SGD of a stack of feed-forward layers below a softmax, or below a mean of squares. */
async function open(numClasses: number, chunkSize: number, layers: number, isNone: boolean) {
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
  const train = ({ params, x, ids }: Inputs) => {
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
  const program = await compile(train as never, specs as never, { engine: 'native', name: 'chunkedSoftmax' });
  const data = (shape: readonly number[]) =>
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => 0.05 * Math.sin(i * i));
  const inputs = {
    params: Object.fromEntries(Object.entries(params).map(([path, { shape }]) => [path, data(shape)])),
    x: data([ROWS, DEPTH]),
    ids: Int32Array.from({ length: ROWS }, (_, i) => (i * 7919) % numClasses),
  };
  const call = program.bind({ inputs: inputs as never });
  await call.run();
  const step = async (): Promise<number> => {
    const started = performance.now();
    await call.run();
    return performance.now() - started;
  };
  return { step, dispose: () => program.dispose() };
}

async function measure(...args: Parameters<typeof open>) {
  const { step, dispose } = await open(...args);
  resident();
  writeFileSync('/proc/self/clear_refs', '5');
  let milliseconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < STEPS; i++) milliseconds = Math.min(milliseconds, await step());
  const peak = 1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
  await dispose();
  return { megabytes: (peak - process.memoryUsage().heapTotal) / 1e6, milliseconds };
}

/** Steps in chunks and steps of the whole in turn: the medians, and that of the ratios of neighbours. */
async function measurePaired(numClasses: number, chunkSize: number, layers: number) {
  const [chunked, whole] = [
    await open(numClasses, chunkSize, layers, false),
    await open(numClasses, 0, layers, false),
  ];
  const pairs: (readonly [chunked: number, whole: number])[] = [];
  for (let i = 0; i < PAIRS; i++) pairs.push([await chunked.step(), await whole.step()]);
  for (const { dispose } of [chunked, whole]) await dispose();
  const milliseconds = median(pairs.map(([ms]) => ms));
  return {
    milliseconds,
    whole: median(pairs.map(([, ms]) => ms)),
    ratio: median(pairs.map(([chunked, whole]) => chunked / whole)),
  };
}

if (flags.classes !== undefined) {
  const shape = [+flags.classes, +flags.chunk, +flags.layers] as const;
  const found = flags.paired ? await measurePaired(...shape) : await measure(...shape, flags.none);
  process.stdout.write(JSON.stringify(found));
  process.exit();
}

type Found = Readonly<Record<string, number>>;
function apart(args: readonly string[]): Found {
  const { stdout, status } = spawnSync(process.execPath, [...process.execArgv, process.argv[1]!, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`${args.join(' ')}: exit status ${status}`);
  return JSON.parse(`${stdout}`);
}

const subjects: Readonly<Record<string, readonly string[]>> = {
  '4k classes, chunks of 4096 beside the whole': ['--classes=4096', '--chunk=4096', '--paired'],
  '4k classes, chunks of 1024 beside the whole': ['--classes=4096', '--chunk=1024', '--paired'],
  '4 layers, no softmax': ['--classes=32768', '--layers=4', '--none'],
  '4 layers, 32k classes, chunks of 512': ['--classes=32768', '--layers=4', '--chunk=512'],
  '4 layers, 32k classes, whole': ['--classes=32768', '--layers=4'],
};
const names = Object.keys(subjects).filter((name) => name.includes(flags.only));
const found = new Map<string, Found[]>(names.map((name) => [name, []]));
for (let round = 0; round < Number(flags.rounds); round++)
  for (const [name, results] of found) results.push(apart(subjects[name]!));
for (const [name, results] of found) {
  const least = (of: string): string => Math.min(...results.map((each) => each[of]!)).toFixed(0);
  const [first] = results;
  console.log(
    first!.ratio === undefined
      ? `| ${name} | ${least('megabytes')} MB | ${least('milliseconds')} ms |`
      : `| ${name} | ${least('milliseconds')} ms beside ${least('whole')} | ${median(results.map(({ ratio }) => ratio!)).toFixed(3)} |`,
  );
}
