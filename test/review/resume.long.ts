/**
 * @file What reviews say of checkpoints, checked by runs: for each planted change the old code trains a few steps, the new code
 * goes on, and the column is compared with the exit code, and with the bits of a run of the old code that did not stop.
 */
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { compareVersions } from '../../src/review/compareVersions.js';
import type { CheckpointEffect } from '../../src/review/reports/diffReport.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { oneIn, title } from '../faults/campaign.js';
import { withCommandEnvironment } from '../loader.js';
import { stateAt, untimedLines } from '../programs/runs.js';
import { plantedResumptions, resumedFiles } from './plantedResumptions.js';
import { repositoryOf, type TestRepository } from './repository.js';

withCommandEnvironment();

const steps = 6;
const changes = oneIn(8, plantedResumptions);
const flags = (name: string, directory: string, numSteps = steps) => [
  `--exp=text.${name}`,
  `--job_log_dir=${directory}`,
  '--engine=eager',
  ...['--set', `task.train.numTrainSteps=${numSteps}`],
];

let repository: TestRepository;
/** Directories of the old code's runs, by experiments: one that stopped, and one that did not. */
const runs = new Map<string, Promise<readonly [stopped: string, whole: string]>>();

async function trained(name: string, numSteps: number): Promise<string> {
  const directory = temporaryDirectory();
  const { code, stdout, stderr } = await runCommand(flags(name, directory, numSteps), repository.folder);
  expect(code, stdout + stderr).toBe(0);
  return directory;
}

beforeAll(async () => {
  repository = repositoryOf(resumedFiles);
  for (const { of = 'Plain' } of changes)
    if (!runs.has(of)) runs.set(of, Promise.all([trained(of, 3), trained(of, steps)]));
  await Promise.all(runs.values());
}, 300_000);

/** What a run left that training computes: its last state, and its losses and metrics. */
const bitsOf = (directory: string) => ({
  state: stateAt(directory, steps).toString('base64'),
  lines: untimedLines(directory).filter(({ program }) => program === 'train'),
});

/** What really happens to a run of the old code. */
async function reality(name: string): Promise<{ goesOn: CheckpointEffect['goesOn']; said: string }> {
  const [stopped, whole] = (await runs.get(name))!;
  const directory = temporaryDirectory();
  cpSync(stopped, directory, { recursive: true });
  const { code, stdout, stderr } = await runCommand(flags(name, directory), repository.folder);
  if (code !== 0) return { goesOn: 'never', said: stderr };
  const isSame = JSON.stringify(bitsOf(directory)) === JSON.stringify(bitsOf(whole));
  return { goesOn: isSame ? 'same' : 'changed', said: stdout };
}

test.for(changes)(`$change ${title('')}`, async ({ of = 'Plain', edits, goesOn, told, forcedBy }) => {
  const { folder, git, write } = repository;
  git('reset', '--quiet', '--hard', 'main');
  git('clean', '--quiet', '--force', '-d');
  write(
    Object.fromEntries(
      Object.entries(edits).map(([file, edit]) => [
        file,
        typeof edit === 'string' ? edit : edit(readFileSync(join(folder, file), 'utf8')),
      ]),
    ),
  );
  const [report, real] = [
    await compareVersions({
      ...{ project: folder, base: 'main', exact: false, name: `text.${of}`, changes: [] },
      limits: { seconds: 120, gigabytes: 4 },
    }),
    await reality(of),
  ];
  const effect = report.experiments.find(({ name }) => name === `text.${of}`)?.checkpoints;
  expect(
    { goesOn: effect?.goesOn ?? 'same', really: real.goesOn },
    JSON.stringify([effect, real.said]),
  ).toEqual({
    goesOn,
    really: goesOn,
  });
  const text = JSON.stringify(effect);
  if (told !== undefined) expect(`${text} initFromCheckpoint would load`).toMatch(told);
  if (forcedBy !== undefined) expect(effect?.forcedBy.join('\n')).toMatch(forcedBy);
  // The job's own sentence is the one that the review tells.
  if (effect?.error !== undefined) {
    const [first, ...others] = effect.error.replace(/^a checkpoint: /, '').split('\n');
    for (const line of [first!.replace('data/train.json', ''), ...others.slice(0, 3)].filter(
      (each) => each.trim() !== '',
    ))
      expect(real.said).toContain(line.split(' Since the run began')[0]!.trim());
  }
});
