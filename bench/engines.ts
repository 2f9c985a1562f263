/**
 * @file `npm run bench:engines`: programs of 10, 100 and 1000 runs on each engine, and what `auto` takes. `--json` prints
 * the measurements, with the measured times of compiling and of a run.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compile, type Engine, tf } from '../src/compiler/index.js';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { engineJobs, type Job } from './engineJobs.js';
import { median } from './results.js';

const RUNS = [10, 100, 1000];
/** Runs of a call of training and decoding steps, as between summaries. */
const RUNS_OF_A_CALL = 16;
/** Milliseconds of measured runs, after the first. */
const MEASURED_MS = 700;

interface Times {
  /** Milliseconds to the end of the first run: traced, compiled, run. */
  readonly firstMs: number;
  readonly runMs: number;
}

async function measure(job: Job, engine: Engine): Promise<Times> {
  const started = performance.now();
  const opened = await job.open({ engine }, 1);
  await opened.run(1);
  const firstMs = performance.now() - started;
  const milliseconds: number[] = [];
  const end = performance.now() + MEASURED_MS;
  while (milliseconds.length < 3 || performance.now() < end) {
    const before = performance.now();
    const runs = await opened.run(RUNS_OF_A_CALL);
    milliseconds.push((performance.now() - before) / runs);
  }
  await opened.dispose();
  return { firstMs, runMs: median(milliseconds) };
}

/** The engine that `auto` takes for a number of runs. */
async function choice(job: Job, runs: number): Promise<string> {
  let explained = '';
  const explain = (sentence: string) => {
    explained ||= sentence;
  };
  const opened = await job.open({ engine: 'auto', explain }, runs);
  await opened.dispose();
  return /runs on engine (\w+)/.exec(explained)![1]!;
}

const seconds = ({ firstMs, runMs }: Times, runs: number): number => (firstMs + (runs - 1) * runMs) / 1000;

const { values: flags } = parseArgs({
  options: { only: { type: 'string', default: '' }, json: { type: 'boolean', default: false } },
});
// A cache of its own, so that programs are compiled; kernels and ONNX Runtime are ready before the first.
const cache = mkdtempSync(join(tmpdir(), 'luthier-engines-'));
process.env.XDG_CACHE_HOME = cache;
try {
  const spec = { shape: [4, 4], dtype: 'float32' } as const;
  for (const engine of ['native', 'onnx'] as const)
    await (await compile(({ x }) => ({ y: tf.square(x) }), { x: spec }, { engine })).dispose();
  const rows: string[][] = [];
  process.stdout.write(`Load before: ${loadavg()[0]!.toFixed(1)}\n`);
  for (const job of engineJobs().filter(({ name }) => name.includes(flags.only))) {
    const native = await measure(job, 'native');
    const onnx = await measure(job, 'onnx');
    if (flags.json) process.stdout.write(`${JSON.stringify({ name: job.name, native, onnx })}\n`);
    for (const runs of RUNS) {
      const [onNative, onOnnx] = [seconds(native, runs), seconds(onnx, runs)];
      const taken = await choice(job, runs);
      const lost = (taken === 'native' ? onNative : onOnnx) - Math.min(onNative, onOnnx);
      const cells = [onNative.toFixed(2), onOnnx.toFixed(2), taken, lost > 0 ? lost.toFixed(2) : ''];
      rows.push([job.name, String(runs), ...cells]);
    }
  }
  const heads = ['program', 'runs', 'native, s', 'onnx, s', 'auto takes', 'and loses, s'];
  process.stdout.write(`Load after: ${loadavg()[0]!.toFixed(1)}\n\n${markdownTable(rows, heads)}\n`);
} finally {
  rmSync(cache, { recursive: true, force: true });
}
process.exit();
