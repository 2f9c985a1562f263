/** @file Timing of Luthier's first training step on a GPT shape; prints one line of JSON. */
import { parseArgs } from 'node:util';
import { readMeasured } from './flags.js';
import { jobOptions, openProgram } from './gptJob.js';
import { median } from './results.js';

/** Steps that tell what the first one would take without what has to be done once. */
const laterSteps = 3;

/** The line of JSON. */
export interface FirstStepResult {
  /** From the configs to the end of the first step. */
  readonly firstMs: number;
  /** Of it, until the program could run. */
  readonly openMs: number;
  /** A later step. */
  readonly stepMs: number;
  /** What this process, without the compiler, has computed until the end of the first step, on all cores. */
  readonly cpuMs: number;
  readonly loss: number;
}

/** Milliseconds of all cores so far. */
function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function measure(): Promise<FirstStepResult> {
  const { values: flags } = parseArgs({
    options: {
      shape: { type: 'string', default: 'nano' },
      engine: { type: 'string', default: 'auto' },
      precision: { type: 'string', default: 'bf16' },
    },
  });
  const { shape, engine, precision } = readMeasured(flags);
  const [started, computed] = [performance.now(), cpuTime()];
  const program = await openProgram(jobOptions(shape, engine, undefined, precision));
  const openMs = performance.now() - started;
  const { loss } = await program.run();
  const [firstMs, cpuMs] = [performance.now() - started, cpuTime() - computed];
  const steps: number[] = [];
  for (let i = 0; i < laterSteps; i++) {
    const before = performance.now();
    await program.run();
    steps.push(performance.now() - before);
  }
  return { firstMs, openMs, stepMs: median(steps), cpuMs, loss };
}

process.stdout.write(`${JSON.stringify(await measure())}\n`);
process.exit();
