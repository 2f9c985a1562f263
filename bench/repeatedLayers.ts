/**
 * @file Compilation, steps and memory of a GPT's training program whose layers are repeated, and of one that has each layer
 * apart, on both engines, on Linux. Each measurement is a process of its own without cached programs, which prints a line
 * of JSON; rounds go through all of them in turn.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Engine } from '../src/compiler/index.js';
import { openToolchain } from '../src/compiler/native/toolchain/index.js';
import { type Config, derive } from '../src/hparams/index.js';
import { StackedTransformerRepeated } from '../src/layers/index.js';
import type { LanguageModel } from '../src/models/index.js';
import { jobOptions, openProgram } from './gptJob.js';
import { resident } from './resident.js';
import { timeSteps } from './stepTimes.js';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    layers: { type: 'string', default: '4,12,48' },
    engines: { type: 'string', default: 'native,onnx' },
    kinds: { type: 'string', default: 'apart;repeated;apart, remat;repeated, remat' },
    // Of one measurement.
    engine: { type: 'string' },
    kind: { type: 'string', default: 'apart' },
  },
});
const shape = { heads: 4, width: 64, context: 64, batch: 8, vocabulary: 65, steps: 1 };
const STEPS = 8;

/** One program. */
interface Measured {
  /** From the configs to a program that is ready to run, and the CPU time of the process and its compilers in it. */
  readonly open: number;
  readonly openCpu: number;
  /** The shortest step after the first, and the CPU time of all threads in it. */
  readonly step: number;
  readonly cpu: number;
  /** Peak of resident memory in steps after the first, less that of the process before, in MB. */
  readonly megabytes: number;
}

/** Most bytes that were resident since `forgetPeak`. */
const peak = (): number =>
  1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);

const forgetPeak = (): void => writeFileSync('/proc/self/clear_refs', '5');

/** CPU milliseconds of this process and of those that it has waited for, compilers among them; Linux counts in 10 ms. */
function cpuOfAll(): number {
  const [user, system] = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ').slice(13, 15);
  const own = process.cpuUsage();
  return (own.user + own.system) / 1e3 + 10 * (Number(user) + Number(system));
}

async function measure(engine: Engine, kind: string, layers: number): Promise<Measured> {
  const options = jobOptions({ ...shape, layers }, engine);
  const task = derive(options.task, ({ model }) => {
    const { lmTpl } = model as Config<LanguageModel>;
    const remat = kind.endsWith('remat');
    const { hiddenDims, numHeads, transformerLayerParamsTpl } = lmTpl.stackedTransformerTpl;
    const fields = { hiddenDims, numHeads, transformerLayerParamsTpl, remat };
    if (kind.startsWith('repeated'))
      lmTpl.stackedTransformerTpl = StackedTransformerRepeated.config({ ...fields, xTimes: layers });
    else lmTpl.stackedTransformerTpl.remat = remat;
  });
  const before = resident();
  const [started, busy] = [performance.now(), cpuOfAll()];
  const program = await openProgram({ ...options, task });
  const [open, openCpu] = [performance.now() - started, cpuOfAll() - busy];
  await program.run();
  resident();
  forgetPeak();
  const { minMs: step, minCpuMs: cpu } = await timeSteps(() => program.run(), { steps: STEPS });
  const megabytes = (peak() - process.memoryUsage().heapTotal - before) / 1e6;
  await program.executable.dispose();
  return { open, openCpu, step, cpu, megabytes };
}

function measureApart(engine: string, kind: string, layers: string): Measured {
  const cache = mkdtempSync(join(tmpdir(), 'repeated-'));
  cpSync(kernels, cache, { recursive: true });
  const own = [`--engine=${engine}`, `--kind=${kind}`, `--layers=${layers}`];
  const args = [...process.execArgv, process.argv[1]!, ...own];
  const env = { ...process.env, XDG_CACHE_HOME: cache };
  const { stdout, status } = spawnSync(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  rmSync(cache, { recursive: true });
  if (status !== 0) throw new Error(`${own.join(' ')}: exit status ${status}`);
  return JSON.parse(`${stdout}`);
}

if (flags.engine !== undefined) {
  process.stdout.write(
    JSON.stringify(await measure(flags.engine as Engine, flags.kind, Number(flags.layers))),
  );
  process.exit();
}
// What all programs share.
const kernels = mkdtempSync(join(tmpdir(), 'repeated-kernels-'));
await openToolchain({ ...process.env, XDG_CACHE_HOME: kernels });
const subjects = flags.engines
  .split(',')
  .flatMap((engine) =>
    flags.layers
      .split(',')
      .flatMap((layers) => flags.kinds.split(';').map((kind) => ({ engine, layers, kind }))),
  );
const found = new Map<(typeof subjects)[number], Measured[]>(subjects.map((subject) => [subject, []]));
for (let round = 0; round < Number(flags.rounds); round++)
  for (const [{ engine, kind, layers }, results] of found) results.push(measureApart(engine, kind, layers));
for (const [{ engine, kind, layers }, results] of found) {
  const least = (of: keyof Measured): string =>
    Math.min(...results.map((each) => each[of])).toFixed(of === 'step' || of === 'cpu' ? 1 : 0);
  const figures = (['open', 'openCpu', 'step', 'cpu', 'megabytes'] as const).map(least);
  console.log(`| ${engine} | ${layers} | ${kind} | ${figures.join(' | ')} |`);
}
rmSync(kernels, { recursive: true });
