/**
 * @file Memory of decoding a checkpoint of GPT-2's 124M shape, on Linux: most bytes that a process had resident beyond what it
 * had before the weights, V8's heap aside, from loading them to the last token. Each precision is a process of its own.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Checkpointer } from '../src/checkpoints/index.js';
import { prngKey } from '../src/compiler/index.js';
import { GREEDY, GreedyDecoder, type Int32Tensor, Stepper } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { LanguageModel } from '../src/models/index.js';
import { restoreParams } from '../src/programs/index.js';
import { paramsOf } from '../src/programs/taskState.js';
import { checkpointDirectory, compileOptions } from '../src/runs/index.js';
import { jobOptions } from './gptJob.js';
import { resident } from './resident.js';
import type { Precision } from './results.js';
import type { Shape } from './shapes.js';

const { values: flags } = parseArgs({
  options: {
    shape: {
      type: 'string',
      default: '{"layers":12,"heads":12,"width":768,"context":256,"batch":1,"vocabulary":50257,"steps":1}',
    },
    prompt: { type: 'string', default: '128' },
    // Of one measurement.
    run: { type: 'string' },
    precision: { type: 'string' },
  },
});
const shape = JSON.parse(flags.shape) as Shape;

/** Resident bytes in all: now, and at most since `forgetPeak`. */
const status = (name: 'VmRSS' | 'VmHWM'): number =>
  1024 * Number(new RegExp(`${name}:\\s*(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))![1]);
const forgetPeak = (): void => writeFileSync('/proc/self/clear_refs', '5');

const optionsOf = (jobLogDir: string, precision: Precision) => ({
  ...jobOptions(shape, 'native', undefined, precision),
  jobLogDir,
});

/** Writes a checkpoint of initial values, without slots. */
async function write(directory: string): Promise<void> {
  const options = optionsOf(directory, 'f32');
  const task = build(options.task);
  const state = paramsOf(task);
  await task.initialize(state.views, options);
  const checkpointer = new Checkpointer({
    directory: checkpointDirectory(options),
    experiment: options.name,
  });
  await checkpointer.save(state);
  await checkpointer.close();
}

/** Loads the checkpoint, takes a prompt and draws tokens to the end of the context. */
async function measure(directory: string, precision: Precision): Promise<Record<string, number>> {
  const options = optionsOf(directory, precision);
  const task = build(options.task);
  const { model } = task;
  if (!(model instanceof LanguageModel)) throw new Error('the benchmark has a language model');
  const before = resident();
  forgetPeak();
  const found: Record<string, number> = {};
  const note = (name: string): void => {
    found[name] = (status('VmRSS') - process.memoryUsage().heapTotal - before) / 1e6;
  };
  const params = await restoreParams(options, task, false);
  note('loaded');
  const rows = shape.batch;
  const stepper = await Stepper.create({
    ...{ model, params, rows, seqlen: shape.context, rule: GREEDY },
    compileOptions: (name) => compileOptions(options, name),
  });
  note('compiled');
  const decoder = build(GreedyDecoder.config({ seqlen: shape.context, eosId: [] }));
  const count = Number(flags.prompt);
  const ids: Int32Tensor = {
    shape: [rows, count],
    dtype: 'int32',
    data: new Int32Array(rows * count).fill(1),
  };
  const lengths: Int32Tensor = { shape: [rows], dtype: 'int32', data: new Int32Array(rows).fill(count) };
  await decoder.decode({ prefixIds: ids, prefixLengths: lengths, key: prngKey(0), ...stepper.calls });
  note('decoded');
  const { size } = params.layout;
  const peak = (status('VmHWM') - process.memoryUsage().heapTotal - before) / 1e6;
  const weights = (size * (precision === 'bf16' ? 2 : 4)) / 1e6;
  return { ...found, peak, weights, times: peak / weights, process: status('VmHWM') / 1e6 };
}

const run = (...own: string[]): string => {
  const args = [...process.execArgv, process.argv[1]!, ...process.argv.slice(2), ...own];
  const child = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (child.status !== 0) throw new Error(`${own.join(' ')}: exit status ${child.status}`);
  return `${child.stdout}`;
};

if (flags.run !== undefined) {
  if (flags.precision === undefined) await write(flags.run);
  else process.stdout.write(JSON.stringify(await measure(flags.run, flags.precision as Precision)));
  process.exit();
}
const directory = mkdtempSync(join(tmpdir(), 'decode-memory-'));
run(`--run=${directory}`);
for (const precision of ['f32', 'bf16']) {
  const found = Object.entries(JSON.parse(run(`--run=${directory}`, `--precision=${precision}`)) as object);
  console.log(
    `${precision}: ${found.map(([name, value]) => `${name} ${value.toFixed(name === 'times' ? 2 : 0)}`).join(', ')}`,
  );
}
rmSync(directory, { recursive: true });
