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

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    // Of one measurement.
    engine: { type: 'string' },
    policy: { type: 'string', default: 'none' },
  },
});
const shape = { layers: 8, heads: 4, width: 128, context: 128, batch: 16, vocabulary: 65, steps: 1 };
const policies = ['none', 'SAVE_DOT_ONLY', 'SAVE_DOT_WITH_NO_BATCH_DIM', 'SAVE_OUT_PROJ', 'SAVE_NOTHING'];
const STEPS = 5;

/** One engine and policy. */
interface Measured {
  /** Peak of resident memory in steps after the first, less that of the process before. */
  readonly megabytes: number;
  /** The shortest step. */
  readonly milliseconds: number;
}

/** Most bytes that were resident since `forgetPeak`. */
const peak = (): number =>
  1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);

const forgetPeak = (): void => writeFileSync('/proc/self/clear_refs', '5');

async function measure(engine: Engine, policy: string): Promise<Measured> {
  const options = jobOptions(shape, engine);
  const task = derive(options.task, ({ model }) => {
    const stack: Config<StackedTransformer> = (model as Config<LanguageModel>).lmTpl.stackedTransformerTpl;
    if (policy !== 'none') Object.assign(stack, { remat: true, checkpointPolicy: policy });
  });
  const before = resident();
  const program = await openProgram({ ...options, task });
  await program.run();
  resident();
  forgetPeak();
  let milliseconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < STEPS; i++) {
    const started = performance.now();
    await program.run();
    milliseconds = Math.min(milliseconds, performance.now() - started);
  }
  const megabytes = (peak() - process.memoryUsage().heapTotal - before) / 1e6;
  await program.executable.dispose();
  return { megabytes, milliseconds };
}

function measureApart(engine: string, policy: string): Measured {
  const args = [...process.execArgv, process.argv[1]!, `--engine=${engine}`, `--policy=${policy}`];
  const { stdout, status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (status !== 0) throw new Error(`${engine}, ${policy}: exit status ${status}`);
  return JSON.parse(`${stdout}`);
}

if (flags.engine !== undefined) {
  process.stdout.write(JSON.stringify(await measure(flags.engine as Engine, flags.policy)));
  process.exit();
}
const subjects = policies.flatMap((policy) => ['native', 'onnx'].map((engine) => ({ policy, engine })));
const found = new Map<(typeof subjects)[number], Measured[]>(subjects.map((subject) => [subject, []]));
for (let round = 0; round < Number(flags.rounds); round++)
  for (const [{ policy, engine }, results] of found) results.push(measureApart(engine, policy));
for (const [{ policy, engine }, results] of found) {
  const least = (of: keyof Measured): string => Math.min(...results.map((each) => each[of])).toFixed(0);
  console.log(`| ${policy} | ${engine} | ${least('megabytes')} | ${least('milliseconds')} |`);
}
