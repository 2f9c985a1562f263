/** @file From --exp to a class: full names, suffixes, and what goes wrong. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ExperimentLoadError, resolveExperiment } from '../../src/registry/index.js';

const directory = fileURLToPath(new URL('../fixtures/project/experiments', import.meta.url));
const resolve = (name: string) => resolveExperiment(name, [directory]);
const known =
  'fiddled.Fiddled, hanging.Hanging, misspelt.Misspelt, nested.toy.Toy, pictures.Pictures, tiny.Tiny, toy.Other, toy.Toy';

test('a full name consists of a file and an export', async () => {
  const found = await resolve('toy.Toy');
  expect([found.name, found.file, found.cls.name]).toEqual(['toy.Toy', join(directory, 'toy.ts'), 'Toy']);
  expect((await resolve('nested.toy.Toy')).file).toBe(join(directory, 'nested/toy.ts'));
});

test('a unique suffix will do', async () => {
  expect((await resolve('Other')).name).toBe('toy.Other');
});

const published = fileURLToPath(new URL('../../experiments', import.meta.url));

test.each([
  ['tasks.lm.params.lm_cloud.LmCloudSpmd2BLimitSteps', 'lmCloud.LmCloudSpmd2BLimitSteps'],
  ['tasks.lm.params.lm_cloud.LmCloudTransformerAdamLimitSteps', 'lmCloud.LmCloudTransformerAdamLimitSteps'],
  ['tasks.lm.params.c4.C4Spmd1BAdam4Replicas', 'c4.C4Spmd1BAdam4Replicas'],
  ['tasks.lm.params.c4.C4Spmd16BAdam32Replicas', 'c4.C4Spmd16BAdam32Replicas'],
  ['tasks.lm.params.c4.C4SpmdPipelineGpt3SmallAdam64Replicas', 'c4.C4SpmdPipelineGpt3SmallAdam64Replicas'],
  ['tasks.lm.params.c4_multislice.C4Spmd22BAdam2xv4_128', 'c4Multislice.C4Spmd22BAdam2xv4_128'],
  ['paxml.tasks.lm.params.c4.C4Spmd1BAdam4Replicas', 'c4.C4Spmd1BAdam4Replicas'],
  ['lm_cloud.SmallMlp', 'lmCloud.SmallMlp'],
])('%s, as Pax names it, is %s', async (name, ours) => {
  expect((await resolveExperiment(name, [published])).name).toBe(ours);
});

test("a name that is nearly one of Pax's gets ours as a suggestion", async () => {
  await expect(resolveExperiment('tasks.lm.params.c4.C4Spmd1BAdam4Replica', [published])).rejects.toThrow(
    "Could not find experiment 'tasks.lm.params.c4.C4Spmd1BAdam4Replica' (searched experiments). " +
      "Did you mean 'c4.C4Spmd1BAdam4Replicas'?\n",
  );
});

test('a suffix of an export that only its value tells is resolved by loading its file', async () => {
  const project = mkdtempSync(join(tmpdir(), 'luthier-'));
  writeFileSync(
    join(project, 'mixed.mjs'),
    `import { Toy } from '${join(directory, 'toy.ts')}';
const withName = (Base) => class extends Base {};
export class Mixed extends withName(Toy) {}
export const table = withName(Toy).name;
`,
  );
  const { name, file, cls } = await resolveExperiment('Mixed', [project]);
  expect([name, file, cls.name]).toEqual(['mixed.Mixed', join(project, 'mixed.mjs'), 'Mixed']);
  await expect(resolveExperiment('table', [project])).rejects.toThrow(
    /^Could not find experiment 'table': .*mixed\.mjs 'table' is no Experiment class/,
  );
  rmSync(project, { recursive: true });
});

test('a suffix of several is an error that lists them', async () => {
  await expect(resolve('Toy')).rejects.toThrow(
    "'Toy' does not uniquely identify an experiment. Possible matches: nested.toy.Toy, toy.Toy.",
  );
});

test('an unknown name gets a suggestion and the list', async () => {
  await expect(resolve('toy.Othr')).rejects.toThrow(
    "Could not find experiment 'toy.Othr': test/fixtures/project/experiments/toy.ts exports no class 'Othr'. " +
      `Did you mean 'toy.Other'?\nExperiments: ${known}.`,
  );
  await expect(resolve('Othr')).rejects.toThrow(
    "Could not find experiment 'Othr' (searched test/fixtures/project/experiments). " +
      `Did you mean 'toy.Other'?\nExperiments: ${known}.`,
  );
  await expect(resolve('toy.helper')).rejects.toThrow("'helper' is no Experiment class");
});

test('a name that no other is near may be a former one: what keeps it is told', async () => {
  await expect(resolve('failing.Renamed')).rejects.toThrow('failing.ts failed to load.');
  await expect(resolve('toy.Renamed')).rejects.toThrow(
    "toy.ts exports no class 'Renamed'. If it was renamed, `export { NEW_NAME as Renamed };` there keeps the old name.\n",
  );
});

test('of many experiments, those of the file that was named are listed, others counted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-'));
  const classes = (count: number) =>
    Array.from({ length: count }, (_, i) => `export class E${i} extends Experiment {}`).join('\n');
  for (const [file, count] of [
    ['many', 16],
    ['five', 5],
    ['two', 2],
  ] as const) {
    writeFileSync(
      join(directory, `${file}.ts`),
      `import { Experiment } from 'luthier';\n${classes(count)}\n`,
    );
  }
  await expect(resolveExperiment('five.more.E9', [directory])).rejects.toThrow(
    /\nExperiments: five\.E0, five\.E1, five\.E2, five\.E3, five\.E4, 16 in many\.\*, two\.E0, two\.E1 \(npx luthier list shows them all\)\.$/,
  );
  rmSync(directory, { recursive: true });
});

test('an error inside the module is reported as such', async () => {
  const error = await resolve('failing.Anything').catch((e) => e);
  expect(error).toBeInstanceOf(ExperimentLoadError);
  expect(error.message).toBe(
    "Experiment 'failing.Anything': test/fixtures/project/experiments/failing.ts failed to load.",
  );
  expect(error.cause.message).toBe('this module fails while it loads');
});
