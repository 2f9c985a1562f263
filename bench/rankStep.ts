/**
 * @file A training step of each rank, in memory and time, beside its plan; rank 0 prints a line of JSON. `mpirun` starts it, or
 * nothing does. The arguments are an experiment's name, a device file with mesh, and --set flags.
 */
import { setTimeout } from 'node:timers/promises';
import { planMeshes, plannedDevice, readDevice } from '../src/analysis/index.js';
import { parseSet } from '../src/cli/overrides.js';
import { gatherJson, launchOf } from '../src/collectives/index.js';
import { build } from '../src/hparams/index.js';
import { openRanks, threadsOfRank, trainingDataset } from '../src/programs/index.js';
import { ProgramDataset, TRAIN } from '../src/programs/programDataset.js';
import { nextTurn } from '../src/programs/ranks/agreement.js';
import { shareState } from '../src/programs/ranks/followRanks.js';
import { meshOfJob } from '../src/programs/ranks/jobMesh.js';
import { optionsOfRank } from '../src/programs/ranks/optionsOfRank.js';
import { SplitState } from '../src/programs/ranks/splitState.js';
import { beginToInitialize, outlineOf, trainStateOf } from '../src/programs/taskState.js';
import { TrainProgram } from '../src/programs/trainProgram.js';
import type { JobOptions } from '../src/runs/options.js';
import { configureFor } from '../src/tools/commandExperiment.js';
import { jobOptions } from './gptJob.js';
import { resident } from './resident.js';

const [name, deviceFile, ...settings] = process.argv.slice(2) as [string, string, ...string[]];
const { STEPS = '10' } = process.env;
const shape = { layers: 1, heads: 1, width: 8, context: 8, batch: 1, vocabulary: 8, steps: 1 };
/** Of ids, whose values are of no interest. */
const records = { read: () => undefined, pathOf: () => '', write: () => {} };

const launch = launchOf();
const ranks = launch === null ? undefined : await openRanks(launch);
const configured = (more: readonly string[]) =>
  configureFor(name, {
    changes: [...settings, ...more].filter((text) => text !== '--set').map((text) => parseSet(text)),
    warn: () => {},
  });

/** Takes steps of an experiment. @returns bytes by which this process has grown, and seconds of each step */
async function measured({ name, task, datasets }: Awaited<ReturnType<typeof configured>>, steps: number) {
  const alone: JobOptions = {
    ...jobOptions(shape, 'native', launch === null ? Number(process.env.THREADS ?? 1) : threadsOfRank()),
    ...{ name, task, datasets: [trainingDataset({ datasets } as never)] },
  };
  const before = resident();
  const options = ranks === undefined ? alone : await optionsOfRank({ ...alone, ranks } as never, ranks);
  const built = build(options.task);
  const split = await SplitState.of(options, built);
  if (split !== undefined) split.source = { from: 'seed' };
  const state = split === undefined ? trainStateOf(built) : { ...outlineOf(built), split };
  const initialized = split === undefined ? await beginToInitialize(options, built, state) : undefined;
  const dataset = new ProgramDataset(options, built, trainingDataset(options), TRAIN, records as never);
  const program = await TrainProgram.create(options, built, state, dataset.open());
  await initialized?.done;
  if (ranks !== undefined) await shareState(options, ranks, state);
  let most = 0;
  const seconds: number[] = [];
  for (let i = 0; i < steps; i++) {
    if (ranks !== undefined && ranks.rank > 0) await nextTurn(ranks);
    const start = performance.now();
    await program.run();
    seconds.push((performance.now() - start) / 1e3);
    // The system may take back pages that were not used for a while.
    if (i < 3) most = Math.max(most, resident());
  }
  await dataset.close();
  await program.executable.dispose();
  return { bytes: most - before, seconds };
}

// One-time loading and compiling does not belong to the subject, nor do MPI's own buffers.
const tiny = ['modelDims=32', 'numLayers=2', 'numHeads=4', 'vocabSize=64'];
if (process.env.WARM !== '0') {
  await measured(await configured(name.includes('Spmd') ? [...tiny, 'dimsPerHead=8'] : []), 3);
  for (let i = 0; i < 3; i++) await ranks?.allGather(new Uint8Array(ranks.count << 22));
  // Arrays that are collected are given back a while later.
  resident();
  await setTimeout(500);
}
const subject = await configured([]);
const own = await measured(subject, Number(STEPS));
const all = ranks === undefined ? [own] : await gatherJson(ranks, own);
if (ranks === undefined || ranks.rank === 0) {
  const { iciMeshShape } = meshOfJob(subject.task, all.length).hp;
  const device = plannedDevice(readDevice(deviceFile));
  const { plans } = planMeshes(subject, { device, shape: iciMeshShape });
  const [plan] = plans;
  const sorted = own.seconds.slice(2).sort((a, b) => a - b);
  const result = {
    ...{ name, settings: settings.filter((text) => text !== '--set').join(' '), ranks: all.length },
    measured: { median: sorted[sorted.length >> 1], least: sorted[0], bytes: all.map(({ bytes }) => bytes) },
    planned: plan && { bytes: plan.memory, ...plan.time },
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
await ranks?.finish();
process.exit();
