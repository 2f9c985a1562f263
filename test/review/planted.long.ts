/** @file luthier diff on planted changes of every kind but those of checkpoints, each checked against runs of its own. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { compareVersions } from '../../src/review/compareVersions.js';
import type { ExperimentReport } from '../../src/review/reports/diffReport.js';
import { textOf } from '../../src/review/reports/textReport.js';
import { Child } from '../../src/system/child.js';
import { plain } from '../../src/system/text/terminalOutput.js';
import { oneIn, title } from '../faults/campaign.js';
import { withCommandEnvironment } from '../loader.js';
import { scratchProject } from '../tools/scratch.js';
import { allPlants } from './planted.js';
import { baseFilesOf, type Plant, plantedFilesOf } from './plantedProject.js';
import type { Question, RealBits } from './realBitsProgram.js';
import { repositoryOf } from './repository.js';

withCommandEnvironment();

/** Those of this run: all, or with SHORT=1 a twentieth; PLANTS=a,b names some. */
const asked = process.env.PLANTS?.split(',');
const plants =
  asked === undefined ? oneIn(20, allPlants) : allPlants.filter(({ name }) => asked.includes(name));
const baseFiles = baseFilesOf(plants);

const oracle = fileURLToPath(new URL('./realBitsProgram.ts', import.meta.url));

/** The runs of experiments, in a process without the review's. */
async function runs(folder: string, all: readonly Plant[] = plants): Promise<Map<string, RealBits>> {
  const found = new Map<string, RealBits>();
  const together = all.filter(({ isApart }) => isApart === undefined);
  for (const group of [together, ...all.filter(({ isApart }) => isApart).map((each) => [each])]) {
    const child = new Child<Question, RealBits>(pathToFileURL(oracle), { cwd: folder });
    try {
      for (const { name } of group) {
        child.send({ ask: 'run', name: `${name}.Planted` });
        found.set(name, await child.receive(600_000));
      }
    } finally {
      await child.kill();
    }
  }
  return found;
}

const texts = plantedFilesOf(plants);
const kept = Object.entries(texts).filter((each): each is [string, string] => each[1] !== null);
const gone = Object.keys(texts).filter((file) => texts[file] === null);

/** What a review tells of all plants at once. */
async function reviewed() {
  const { folder, write } = repositoryOf({ ...baseFiles, '.gitignore': 'node_modules\n' });
  write(Object.fromEntries(kept));
  for (const file of gone) rmSync(join(folder, file));
  const limits = { seconds: 120, gigabytes: 4 };
  const asked = { project: folder, base: 'main', exact: false, name: undefined, changes: [] };
  return compareVersions({ ...asked, limits });
}

test(title('planted changes are told as they are'), async () => {
  const report = await reviewed();
  const told = new Map(report.experiments.map((each) => [each.name, each]));
  const text = (each?: ExperimentReport): string =>
    textOf({ ...report, experiments: each === undefined ? [] : [each] }, plain);
  const found = plants.map(({ name, status: expected, says = '' }) => {
    const each = told.get(`${name}.Planted`);
    const status = each?.status ?? 'unchanged';
    const said = text(each);
    return { name, status, says: status === expected && said.includes(says) ? 'as expected' : said };
  });
  expect(found).toEqual(plants.map(({ name, status }) => ({ name, status, says: 'as expected' })));
});

test(title('runs show what the plants are said to change'), async () => {
  const folder = scratchProject(baseFiles);
  const before = await runs(folder);
  const again = await runs(
    folder,
    plants.filter(({ truth }) => truth === 'varies'),
  );
  const files = { ...baseFiles, ...Object.fromEntries(kept) };
  for (const file of gone) delete files[file];
  const after = await runs(scratchProject(files));
  const found = plants.map(({ name }) => {
    const [old, now] = [before.get(name)!, after.get(name)!];
    if (old.error !== undefined) return { name, truth: old.error };
    const isSame = (one: RealBits, other: RealBits): boolean => JSON.stringify(one) === JSON.stringify(other);
    if (again.has(name) && !isSame(old, again.get(name)!)) return { name, truth: 'varies' };
    return { name, truth: now.error !== undefined ? 'fails' : isSame(old, now) ? 'same' : 'differs' };
  });
  expect(found).toEqual(plants.map(({ name, truth }) => ({ name, truth })));
});
