/**
 * @file Training steps of a GPT whose every feed-forward layer has experts, beside those of the dense GPT with as many active
 * parameters: calls of both in turn, in one process.
 */
import { parseArgs } from 'node:util';
import { Profiler } from '../src/compiler/index.js';
import { type Config, derive } from '../src/hparams/index.js';
import { TransformerFeedForwardMoe } from '../src/layers/index.js';
import type { LanguageModel } from '../src/models/index.js';
import { readMeasured } from './flags.js';
import { jobOptions, openProgram } from './gptJob.js';
import { median } from './results.js';
import { showProfile } from './stepTimes.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'baby' },
    engine: { type: 'string', default: 'native' },
    precision: { type: 'string', default: 'f32' },
    experts: { type: 'string', default: '8' },
    active: { type: 'string', default: '2' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '7' },
    // Timed steps of a call.
    steps: { type: 'string', default: '2' },
    /** Tables of the time that kinds of work and layers take in the programs, on stderr. */
    profile: { type: 'boolean', default: false },
  },
});
const { shape, engine, precision } = readMeasured(flags);
const [numExperts, active, threads, rounds, steps] = [
  ...[flags.experts, flags.active, flags.threads, flags.rounds, flags.steps].map(Number),
] as [number, number, number, number, number];

/** The dense model with `numExperts` experts in each layer, of which each token takes `active`: together as wide as one layer. */
function withExperts(options: ReturnType<typeof jobOptions>): ReturnType<typeof jobOptions> {
  const task = derive(options.task, ({ model }) => {
    const stack = (model as Config<LanguageModel>).lmTpl.stackedTransformerTpl;
    const { activationTpl, lnTpl } = stack.transformerLayerParamsTpl.trFflayerTpl;
    stack.moeLayers = Array.from({ length: stack.numLayers }, (_, i) => i);
    stack.numExperts = numExperts;
    stack.gatingFunc = 'topk';
    stack.moeLayerTpl = TransformerFeedForwardMoe.config({
      ...{ activationTpl, lnTpl, hiddenDims: stack.hiddenDims / active },
      ...{ numExpertsPerToken: active, unadjustedExpertCapacityFactor: 0, moeLoadBalanceLossWeight: 0.01 },
    });
  });
  return { ...options, task };
}

const dense = jobOptions(shape, engine, threads, precision);
const models = { dense, experts: withExperts(dense) };
const programs = await Promise.all(
  Object.entries(models).map(async ([name, options]) => {
    const profiler = flags.profile ? new Profiler() : undefined;
    const program = await openProgram({ ...options, name, profiler });
    await program.run();
    await program.runSteps(steps);
    profiler?.restart();
    return { program, profiler, times: [] as number[], cpuTimes: [] as number[] };
  }),
);
for (let round = 0; round < rounds; round++)
  for (const { program, times, cpuTimes } of programs) {
    const [before, busy] = [performance.now(), process.cpuUsage()];
    await program.runSteps(steps);
    times.push((performance.now() - before) / steps);
    const { user, system } = process.cpuUsage(busy);
    cpuTimes.push((user + system) / 1000 / steps);
  }
const [plain, moe] = programs.map(({ times }) => median(times)) as [number, number];
const [plainCpu, moeCpu] = programs.map(({ cpuTimes }) => Math.min(...cpuTimes)) as [number, number];
console.log(
  JSON.stringify({
    ...{ shape: flags.shape, precision, engine, threads, numExperts, active },
    ...{ denseMs: plain, expertsMs: moe, ratio: moe / plain },
    ratios: programs[1]!.times.map((ms, i) => (ms / programs[0]!.times[i]!).toFixed(3)),
    ...{ denseCpuMs: plainCpu, expertsCpuMs: moeCpu, cpuRatio: moeCpu / plainCpu },
  }),
);
for (const { profiler } of programs) if (profiler !== undefined) await showProfile(profiler, precision);
process.exit();
