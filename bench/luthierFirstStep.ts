/** @file Timing of Luthier's first training step on a GPT shape; prints one line of JSON. */
import { parseArgs } from 'node:util';
import { readMeasured } from './flags.js';
import { jobOptions, openProgram } from './gptJob.js';
import { median } from './results.js';

/** Later steps, whose time is subtracted from the first step's to get one-time costs. */
const laterSteps = 3;

/** Content of the line of JSON. */
export interface FirstStepResult {
  /** From the configs to the end of the first step. */
  readonly firstMs: number;
  /** Part of it until the program could run. */
  readonly openMs: number;
  /** Time of a later step. */
  readonly stepMs: number;
  /** CPU time of this process, without the compiler, until the end of the first step, on all cores. */
  readonly cpuMs: number;
  readonly loss: number;
}

/** CPU milliseconds of all cores so far. */
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
