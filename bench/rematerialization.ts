/**
 * @file Memory and time of a GPT's training step under each checkpoint policy, on both engines, on Linux. Each
 * measurement is a process of its own, which prints a line of JSON; rounds go through all of them in turn.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Engine } from '../src/compiler/index.js';
import { type Config, derive } from '../src/hparams/index.js';
import type { StackedTransformer } from '../src/layers/index.js';
import type { LanguageModel } from '../src/models/index.js';
import { jobOptions, openProgram } from './gptJob.js';
import { resident } from './resident.js';
import type { Precision } from './results.js';
import { timeSteps } from './stepTimes.js';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    layers: { type: 'string', default: '8' },
    precision: { type: 'string', default: 'f32' },
    threads: { type: 'string', default: '2' },
    engines: { type: 'string', default: 'native,onnx' },
    policies: {
      type: 'string',
      default: 'none,SAVE_DOT_ONLY,SAVE_DOT_WITH_NO_BATCH_DIM,SAVE_OUT_PROJ,SAVE_NOTHING',
    },
    // Of one measurement.
    engine: { type: 'string' },
    policy: { type: 'string', default: 'none' },
  },
});
const { layers, precision, threads } = flags;
const shape = { heads: 4, width: 128, context: 128, batch: 16, vocabulary: 65, steps: 1 };
const STEPS = 5;

/** One engine and policy. */
interface Measured {
  /** Peak of resident memory in steps after the first, less that of the process before. */
  readonly megabytes: number;
  /** The shortest step, and the CPU time of all threads in one. */
  readonly milliseconds: number;
  readonly cpu: number;
}

/** Most bytes that were resident since `forgetPeak`. */
const peak = (): number =>
  1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);

const forgetPeak = (): void => writeFileSync('/proc/self/clear_refs', '5');

async function measure(engine: Engine, policy: string): Promise<Measured> {
  const options = jobOptions(
    { ...shape, layers: Number(layers) },
    engine,
    Number(threads),
    precision as Precision,
  );
  const task = derive(options.task, ({ model }) => {
    const stack: Config<StackedTransformer> = (model as Config<LanguageModel>).lmTpl.stackedTransformerTpl;
    if (policy !== 'none') Object.assign(stack, { remat: true, checkpointPolicy: policy });
  });
  const before = resident();
  const program = await openProgram({ ...options, task });
  await program.run();
  resident();
  forgetPeak();
  const { minMs: milliseconds, minCpuMs: cpu } = await timeSteps(() => program.run(), { steps: STEPS });
  const megabytes = (peak() - process.memoryUsage().heapTotal - before) / 1e6;
  await program.executable.dispose();
  return { megabytes, milliseconds, cpu };
}

function measureApart(engine: string, policy: string): Measured {
  const own = { layers, precision, threads, engine, policy };
  const flagsOf = Object.entries(own).map(([name, value]) => `--${name}=${value}`);
  const args = [...process.execArgv, process.argv[1]!, ...flagsOf];
  const { stdout, status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (status !== 0) throw new Error(`${engine}, ${policy}: exit status ${status}`);
  return JSON.parse(`${stdout}`);
}

if (flags.engine !== undefined) {
  process.stdout.write(JSON.stringify(await measure(flags.engine as Engine, flags.policy)));
  process.exit();
}
const subjects = flags.policies
  .split(',')
  .flatMap((policy) => flags.engines.split(',').map((engine) => ({ policy, engine })));
const found = new Map<(typeof subjects)[number], Measured[]>(subjects.map((subject) => [subject, []]));
for (let round = 0; round < Number(flags.rounds); round++)
  for (const [{ policy, engine }, results] of found) results.push(measureApart(engine, policy));
for (const [{ policy, engine }, results] of found) {
  const least = (of: keyof Measured): string => Math.min(...results.map((each) => each[of])).toFixed(0);
  const figures = (['megabytes', 'milliseconds', 'cpu'] as const).map(least);
  console.log(`| ${policy} | ${engine} | ${figures.join(' | ')} |`);
}
