/** @file Parts that few experiments have: rules for machines, programs and executors of their own, specs, experiments in parts. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { configure, dumpText } from '../../src/cli/index.js';
import { pickRule } from '../../src/cli/machineRules.js';
import { parseFlags } from '../../src/cli/run/flags.js';
import { instantiate, MachineRule, ParameterizedExperiment } from '../../src/experiment/index.js';
import { build, getPath, history, isEqual } from '../../src/hparams/index.js';
import { checkInputSpecs, DatasetInputSpecsProvider } from '../../src/inputs/index.js';
import { programsOf } from '../../src/programs/jobPrograms.js';
import { runLoop } from '../../src/programs/loop.js';
import { resolveExperiment, subExperimentsOf } from '../../src/registry/index.js';
import { describeConfigs } from '../../src/runs/index.js';
import { Parts, Plain, TwoTurns } from '../fixtures/parts/experiments/parts.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';
import { openJob, tinyOptions, tokens } from '../programs/tinyJob.js';

const directories = [fileURLToPath(new URL('../fixtures/parts/experiments', import.meta.url))];
const resolved = await resolveExperiment('parts.Parts', directories);
const changes = (...flags: string[]) => parseFlags(flags).changes as never[];
const laptop = { device: 'cpu', cpu: 'AMD EPYC 9R14', cores: 2, ranks: 1 };
const server = { ...laptop, device: 'gpu', cores: 1024 };

test('of the rules for machines, the first that fits comes before flags; without a machine none does', () => {
  const on = (machine?: typeof laptop, ...flags: string[]) => {
    const { configs, datasets, hits, task } = configure(resolved, changes(...flags), machine);
    return {
      configs,
      hits,
      rows: datasets.map(({ batchSize }) => batchSize),
      dims: getPath(task, 'model.lmTpl.modelDims'),
    };
  };
  expect(on()).toMatchObject({ rows: [2, 3], dims: 16, hits: [], configs: { machineRule: null } });
  expect(on(server)).toMatchObject({ rows: [2, 3], dims: 64, configs: { machineRule: 0 } });
  const here = on(laptop);
  expect(here).toMatchObject({ rows: [5, 5], dims: 8, configs: { machineRule: 1 } });
  expect(here.hits).toEqual([
    'machineRules()[1] (device cpu) is for this machine (cpu, AMD EPYC 9R14, 2 cores, 1 rank): ' +
      'modelDims=8, datasets[*].batchSize=5',
    'machineRules()[1]: datasets[*].batchSize=5 changes 2 fields: datasets[0].batchSize, datasets[1].batchSize',
  ]);
  expect(history(here.configs, 'machineRule' as never).at(-1)!.where).toBe(
    'machine: cpu, AMD EPYC 9R14, 2 cores, 1 rank',
  );
  expect(on(laptop, '--set', 'modelDims=24', '--set', 'datasets[0].batchSize=7')).toMatchObject({
    ...{ rows: [7, 5], dims: 24 },
  });
  expect(on({ ...laptop, device: 'gpu' }).hits).toEqual([
    'None of machineRules() is for this machine: gpu, AMD EPYC 9R14, 2 cores, 1 rank.',
  ]);
  // Rules are configs: a review compares them, whatever the machine.
  const dump = dumpText(resolved, [], 'text');
  expect(dump).toContain("machineRules[1].device : 'cpu'\n");
  expect(dumpText(resolved, [], 'history', { machine: laptop })).toContain(
    'modelDims : 8 @ machineRules()[1]: modelDims=8\n',
  );
});

test.each([
  [{ device: '*epyc*' }, true],
  [{ device: 'EPYC' }, false],
  [{ device: 'cpu', cores: 2, ranks: 1 }, true],
  [{ cores: '2..' }, true],
  [{ cores: '3..' }, false],
  [{ cores: '..2' }, true],
  [{ cores: '1..1' }, false],
  [{ cores: '1..4', ranks: '2..' }, false],
])('the rule for %j: %s', (conditions, fits) => {
  const rule = build(MachineRule.config({ ...conditions, set: {} }));
  expect(rule.fits(laptop)).toBe(fits);
  expect(pickRule([rule], laptop).index).toBe(fits ? 0 : null);
});

test('ranges of rules are checked as they are written', () => {
  expect(() => MachineRule.config({ cores: '..', set: {} })).toThrow(
    "MachineRule.cores: expected a number or a range such as 8.., 2..4 or ..4, got '..'",
  );
});

test('own programs take the place of those of datasets', () => {
  const { evalPrograms, decodePrograms, executor } = configure(resolved);
  expect(isEqual(executor, TwoTurns.config())).toBe(true);
  const datasets = [tokens('train', { isTraining: true }), tokens('held_out', { numBatches: 1 })] as never[];
  const names = (mode: 'eval' | 'train' | 'train_and_decode', more = {}) => {
    const options = { ...tinyOptions({}, { mode, jobLogDir: 'out' }), datasets, evalPrograms, ...more };
    return programsOf(options, build(options.task)).map(({ name }) => name);
  };
  expect(names('eval')).toEqual(['counted']);
  expect(names('train')).toEqual([]);
  const decodeDatasets = [tokens('prompts', { numBatches: 1 })];
  expect(names('train_and_decode', { decodeDatasets })).toEqual(['counted', 'decode_test_prompts']);
  expect(names('train_and_decode', { decodeDatasets, decodePrograms })).toEqual(['counted']);
  const described = describeConfigs({
    ...tinyOptions({}, { jobLogDir: 'out' }),
    evalPrograms,
    executor,
  } as never);
  expect(described).toMatch(/^evalPrograms\[0\]\.name : 'counted'$/m);
  expect(described).toMatch(/^executor : TwoTurns$/m);
});

test('an executor orders steps and programs; where it leaves, training ends with its programs', async () => {
  const ran: number[] = [];
  const counted = {
    name: 'counted',
    isDue: (step: number, isLast: boolean) => isLast || step === 1,
    async run({ step }: { step: number }) {
      ran.push(step);
      return undefined;
    },
    async close() {},
  };
  const options = { ...tinyOptions({ saveIntervalSteps: 100 }), executor: TwoTurns.config() };
  const { loop, run, lines } = await openJob(options, [counted]);
  await runLoop(loop);
  expect([run.step, run.ended, ran]).toEqual([2, 'TwoTurns ended it', [1, 2]]);
  expect(lines.filter((line) => line.startsWith('turn'))).toEqual([
    'turn 0 ends at step 1',
    'turn 1 ends at step 2',
  ]);
});

test('a batch has what the declared specs say, whatever its number of rows, and may have more', () => {
  const declared = build(DatasetInputSpecsProvider.config({ input: tokens('x') as never })).getInputSpecs();
  const [ids] = [{ shape: [7, 8], dtype: 'int32' as const }];
  const rows = Object.fromEntries(
    Object.entries(declared).map(([name, spec]) => [
      name,
      { ...spec, shape: [7, ...(spec.shape as number[]).slice(1)] },
    ]),
  );
  expect(() => checkInputSpecs(declared, { ...rows, more: ids } as never, 'x')).not.toThrow();
  const { labels: _, ...unlabelled } = rows;
  const narrow = { ...unlabelled, ids: { shape: [7, 4], dtype: 'float32' } };
  expect(() => checkInputSpecs(declared, narrow as never, 'x')).toThrow(
    "Input 'x' does not fit the specs of inputSpecsProvider(): ids has rows of float32 [4], not int32 [8]; labels is missing.",
  );
});

test('an experiment of configs alone gives copies; a dataset among the wrong ones is named', () => {
  const [plain, tiny] = [instantiate(Plain), instantiate(Tiny)];
  expect(isEqual(plain.task(), tiny.task())).toBe(true);
  expect(isEqual(plain.datasets(), tiny.datasets())).toBe(true);
  expect(plain.decodeDatasets()).toEqual([]);
  plain.task().train.numTrainSteps = 1;
  expect(plain.task().train.numTrainSteps).toBe(12);
  const [train, validation] = tiny.datasets();
  const made = (trainDatasets: unknown[], evalDatasets: unknown[]) => {
    class Wrong extends ParameterizedExperiment.of({
      task: tiny.task(),
      trainDatasets,
      evalDatasets,
    } as never) {}
    return () => instantiate(Wrong).datasets();
  };
  expect(made([validation], [])).toThrow("The training dataset 'validation' must have isTraining true.");
  expect(made([train], [train])).toThrow("The eval dataset 'train' must have isTraining false.");
});

test('a sub-experiment is named behind a slash', async () => {
  const pair = await resolveExperiment('Pair', directories);
  expect(subExperimentsOf(pair).map(({ part, resolved: { name } }) => [part, name])).toEqual([
    ['narrow', 'parts.Pair/narrow'],
    ['wide', 'parts.Pair/wide'],
  ]);
  expect((await resolveExperiment('Pair/wide', directories)).cls).toBe(Tiny);
  await expect(resolveExperiment('parts.Pair/narow', directories)).rejects.toThrow(
    "parts.Pair has no sub-experiment 'narow'. Did you mean 'narrow'? It has narrow, wide.",
  );
  await expect(resolveExperiment('parts.Parts/x', directories)).rejects.toThrow(
    "parts.Parts has no sub-experiment 'x'. It has none.",
  );
  expect(subExperimentsOf(resolved)).toMatchObject([
    { part: '', resolved: { name: 'parts.Parts', cls: Parts } },
  ]);
});
