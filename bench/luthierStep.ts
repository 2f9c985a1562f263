/** @file Timing of Luthier's training step on a GPT shape, one measurement per process; prints one line of JSON. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { FlatTrainState } from '../src/programs/taskState.js';
import { readMeasured } from './flags.js';
import { jobOptions, openProgram } from './gptJob.js';
import { median, type StepResult } from './results.js';
import { parameterCount, type Shape } from './shapes.js';

/** The shortest of them determines how many timed steps make up a call. */
const warmupSteps = 3;

/** Parameters of a state, checked against the peers' count. */
function countParameters({ layout }: FlatTrainState, shape: Shape): number {
  const found = layout.entries.reduce((sum, { size }) => sum + size, 0);
  const expected = parameterCount(shape);
  if (found !== expected) throw new Error(`the model has ${found} parameters, the peers' has ${expected}`);
  return found;
}

/** Peak resident memory of this process so far, in MiB. */
function peakRssMb(): number {
  return process.resourceUsage().maxRSS / 1024;
}

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'nano' },
    engine: { type: 'string', default: 'auto' },
    precision: { type: 'string', default: 'f32' },
    threads: { type: 'string' },
    steps: { type: 'string' },
    // Limits the number of timed steps.
    seconds: { type: 'string' },
  },
});
const { shape, engine, precision } = readMeasured(flags);
const steps = Number(flags.steps ?? shape.steps);
const end = performance.now() + 1000 * Number(flags.seconds ?? Number.POSITIVE_INFINITY);
const loadedRssMb = peakRssMb();

const started = performance.now();
const options = jobOptions(
  shape,
  engine,
  flags.threads === undefined ? undefined : Number(flags.threads),
  precision,
);
const program = await openProgram(options);
const first = await program.run();
const firstStepSeconds = (performance.now() - started) / 1000;

/** Takes steps in one call; returns milliseconds per step, by the clock and of the CPU, and the last loss. */
async function time(count: number): Promise<{ ms: number; cpuMs: number; loss: number }> {
  const [before, busy] = [performance.now(), process.cpuUsage()];
  const reports = await program.runSteps(count);
  const ms = (performance.now() - before) / count;
  const { user, system } = process.cpuUsage(busy);
  return { ms, cpuMs: (user + system) / 1000 / count, loss: reports.at(-1)!.loss };
}

const warmup: number[] = [firstStepSeconds * 1000];
for (let i = 0; i < warmupSteps && performance.now() < end; i++) warmup.push((await time(1)).ms);
// Steps per call as in training, between summaries.
const atOnce = program.timelySteps(Math.min(...warmup) / 1000);
const [milliseconds, cpu]: [number[], number[]] = [[], []];
let { loss } = first;
let taken = 0;
for (; taken < steps && (taken === 0 || performance.now() < end); taken += atOnce) {
  const timed = await time(Math.min(atOnce, steps - taken));
  milliseconds.push(timed.ms);
  cpu.push(timed.cpuMs);
  ({ loss } = timed);
}

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const medianMs = median(milliseconds);
const result: StepResult = {
  version: `Luthier ${version}`,
  shape: flags.shape,
  precision,
  mode: engine,
  threads: options.numThreads ?? availableParallelism(),
  parameters: countParameters(program.state, shape),
  steps: Math.min(taken, steps),
  medianMs,
  minMs: Math.min(...milliseconds),
  minCpuMs: Math.min(...cpu),
  firstStepSeconds,
  firstLoss: first.loss,
  loss,
  tokensPerSec: (shape.batch * shape.context * 1000) / medianMs,
  loadedRssMb,
  peakRssMb: peakRssMb(),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit();
