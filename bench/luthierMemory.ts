/**
/**
 * @file Memory of a training step: its plan compared with the growth of the process's resident memory; one line of JSON. The
 * arguments are a GPT's shape as JSON and `f32` or `bf16`, or an experiment's name with --set flags.
 */
import { spawnSync } from 'node:child_process';
import { analyze } from '../src/analysis/analyze.js';
import { parseSet } from '../src/cli/overrides.js';
import { chooseBfloat16, kernelRates } from '../src/compiler/index.js';
import { trainingDataset } from '../src/programs/programDataset.js';
import type { JobOptions } from '../src/runs/options.js';
import { configureFor } from '../src/tools/commandExperiment.js';
import { jobOptions, openProgram } from './gptJob.js';
import { resident } from './resident.js';
import type { Precision } from './results.js';

async function grown(options: JobOptions): Promise<number> {
  const before = resident();
  const program = await openProgram(options);
  let most = 0;
  let seconds: number | undefined;
  for (let i = 0; i < 3; i++) {
    const steps = program.timelySteps(seconds);
    const start = performance.now();
    await program.runSteps(steps);
    seconds = (performance.now() - start) / 1e3 / steps;
    // The system may reclaim pages that were not used for a while.
    most = Math.max(most, resident());
  }
  await program.executable.dispose();
  return most - before;
}

const [subject, ...rest] = process.argv.slice(2) as [string, ...string[]];

/** The job that is measured. */
async function subjectOptions(): Promise<JobOptions> {
  if (subject.startsWith('{'))
    return jobOptions(JSON.parse(subject), 'native', undefined, (rest[0] ?? 'f32') as Precision);
  const changes = rest.filter((text) => text !== '--set').map((text) => parseSet(text));
  const configured = await configureFor(subject, { changes, warn: console.warn });
  const { task, name } = configured;
  const shape = { layers: 1, heads: 1, width: 8, context: 8, batch: 1, vocabulary: 8, steps: 1 };
  return { ...jobOptions(shape, 'native'), name, task, datasets: [trainingDataset(configured)] };
}

// Else glibc serves buffers of some megabytes from what the process freed before, and they don't show.
const allocator = { MALLOC_MMAP_THRESHOLD_: '65536' };
if (process.env.MALLOC_MMAP_THRESHOLD_ === undefined) {
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const { status } = spawnSync(process.execPath, args, {
    env: { ...process.env, ...allocator },
    stdio: 'inherit',
  });
  process.exit(status ?? 1);
}
// One-time loading and compiling does not belong to the subject.
const tiny = { layers: 1, heads: 2, width: 32, context: 16, batch: 4, vocabulary: 65, steps: 1 };
await grown(jobOptions(tiny, 'native', undefined, rest[0] === 'bf16' ? 'bf16' : 'f32'));
const options = await subjectOptions();
const table = await kernelRates();
const said = analyze(options as never, table === null ? undefined : chooseBfloat16(table)).memory;
const bytes = await grown(options);
process.stdout.write(
  `${JSON.stringify({ subject, settings: rest, said, grown: bytes, ratio: said.total / bytes })}\n`,
);
process.exit();
