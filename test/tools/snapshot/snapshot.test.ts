/** @file `luthier snapshot`: committed dumps, checked and refreshed. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { oneProcess, runLuthier } from '../../command.js';
import { longTest } from '../../longTest.js';
import { scratchProject, writeFiles } from '../scratch.js';

function family(learningRate: string, more = ''): string {
  return `\
import { z } from 'zod';
import { Adam, Experiment, gpt2Lm, LanguageModel, Learner, SingleTask, TextInput, Train } from 'luthier';

abstract class Base extends Experiment.with({
  learningRate: z.number().positive().default(${learningRate}),
  steps: z.int().positive().default(10),
}) {
  override task() {
    const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 32 });
    const learner = Learner.config({ optimizer: Adam.config({ learningRate: this.learningRate }) });
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner, numTrainSteps: this.steps }),
    });
  }

  override datasets() {
    return [TextInput.config({ name: 'text', files: [\`\${process.cwd()}/a.txt\`] })];
  }
}

export class Short extends Base {}
export class Long extends Base {
  override steps = 20;
  ${more}
}
`;
}

const folder = 'experiments/__snapshots__';

/** `luthier snapshot` in a project, in a process that lasts while the project's experiments stay as they are. */
function snapshots(cwd: string): (...args: string[]) => ReturnType<ReturnType<typeof oneProcess>> {
  const luthier = oneProcess('src/tools/commandLine.ts', cwd);
  return (...args) => luthier(['snapshot', ...args]);
}

it('an edit in a base class shows as a diff of what experiments are', async () => {
  const cwd = scratchProject({ 'experiments/toy.ts': family('0.1') });
  let luthier = snapshots(cwd);
  const snapshotOf = (name: string) => readFileSync(join(cwd, folder, `${name}.txt`), 'utf8');

  // None yet, which is no fault.
  expect(await luthier('--check')).toMatchObject({
    code: 0,
    stdout: 'There are no snapshots. npx luthier snapshot EXP makes the first, to be committed.\n',
  });

  // Experiments opt in one by one.
  expect(await luthier('Short', 'toy.Long')).toMatchObject({
    code: 0,
    stdout: 'toy.Short was made\n\ntoy.Long was made\n\n2 snapshots: 2 were made.\n',
  });
  expect(readdirSync(join(cwd, folder))).toEqual(['toy.Long.txt', 'toy.Short.txt']);
  const short = snapshotOf('toy.Short');
  expect(short).toMatch(
    /^What toy\.Short is\. Written by: npx luthier snapshot toy\.Short\n\nConstants\nBase:\n {2}learningRate: 0\.1\n {2}steps: 10\n\nConfigs\n<root> : Configs\n/,
  );
  // No other machine has the project in the same place.
  expect(short).toContain("\ndatasets[0].files : ['./a.txt']\n");
  expect(short).not.toContain(cwd);
  expect(await luthier('--check')).toMatchObject({ code: 0, stdout: '2 snapshots: 2 are current.\n' });

  // Lines that move change nothing; what a base class sets changes all that extend it.
  writeFiles(cwd, { 'experiments/toy.ts': `// A comment.\n\n${family('0.2')}` });
  luthier = snapshots(cwd);
  const stale = await luthier('--check');
  expect(stale).toMatchObject({ code: 1, stderr: '' });
  expect(stale.stdout).toContain(`\
toy.Short is stale
@@ -3 +3 @@
 Constants
 Base:
-  learningRate: 0.1
+  learningRate: 0.2
   steps: 10
`);
  expect(stale.stdout).toContain(`
-task.train.learner.optimizer.learningRate : 0.1
+task.train.learner.optimizer.learningRate : 0.2
`);
  expect(stale.stdout).toMatch(
    /\n2 snapshots: 2 are stale\.\n\nTo mend:\n {2}npx luthier snapshot toy\.Long toy\.Short\n$/,
  );
  expect(snapshotOf('toy.Short')).toBe(short);

  // The command that mends it, and the form for scripts.
  expect((await luthier()).stdout).toMatch(/\n2 snapshots: 2 were updated\.\n$/);
  expect(JSON.parse((await luthier('--check', '--format=json')).stdout)).toEqual({
    ok: true,
    snapshots: ['toy.Long', 'toy.Short'].map((experiment) => ({
      experiment,
      file: `${folder}/${experiment}.txt`,
      state: 'current',
    })),
    commands: [],
  });
});

longTest(
  'tells which experiments are gone, which cannot be evaluated, and which have no snapshot',
  async () => {
    const cwd = scratchProject({ 'experiments/toy.ts': family('0.1') });
    await runLuthier(['snapshot', 'Short', 'Long'], cwd);
    const broken = family('0.1', 'override stepz = 3;').replace('class Short', 'class Renamed');
    writeFiles(cwd, { 'experiments/toy.ts': broken.replace('override stepz', 'stepz') });
    const luthier = snapshots(cwd);

    const checked = await luthier('--check');
    expect(checked.code).toBe(1);
    expect(checked.stdout).toMatch(
      /^toy\.Long cannot be made\nLong has no constant 'stepz'\. Did you mean 'steps'\? .*\n\ntoy\.Short has no experiment\nCould not find experiment 'toy\.Short': .*\n\n2 snapshots: 1 cannot be made, 1 has no experiment\.\n\nTo mend:\n {2}npx luthier snapshot --remove toy\.Short\n$/,
    );

    // A refresh leaves both as they are, and fails.
    const refreshed = await luthier();
    expect(refreshed).toMatchObject({ code: 1, stdout: checked.stdout });

    expect(await luthier('--remove', 'Short')).toMatchObject({
      code: 0,
      stdout: 'toy.Short was removed\n\n1 snapshot: 1 was removed.\n',
    });
    const missing = await luthier('--check', 'Renamed');
    expect(missing).toMatchObject({
      code: 1,
      stdout:
        'toy.Renamed is missing\n\n1 snapshot: 1 is missing.\n\nTo mend:\n  npx luthier snapshot toy.Renamed\n',
    });
    await luthier('--remove', 'toy.Long');
    expect(existsSync(join(cwd, folder))).toBe(false);
  },
);

longTest('refuses names that are none, and places that are no project', async () => {
  const cwd = scratchProject({ 'experiments/toy.ts': family('0.1') });
  const luthier = oneProcess('src/tools/commandLine.ts', cwd);
  const [unknown, bare, none] = await Promise.all([
    luthier(['snapshot', 'toy.Shrt']),
    luthier(['snapshot', '--remove']),
    luthier(['snapshot', '--remove', '../toy']),
  ]);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toMatch(/^Could not find experiment 'toy\.Shrt'.* Did you mean 'toy\.Short'\?/);
  expect(bare).toMatchObject({ code: 2, stderr: '--remove: expected the names of experiments.\n' });
  expect(none).toMatchObject({ code: 2, stderr: "'../toy' has no snapshot. There are none.\n" });
  rmSync(join(cwd, 'experiments'), { recursive: true });
  expect(await luthier(['snapshot', 'lm.Small'])).toMatchObject({
    code: 2,
    stderr: `${cwd} has no directory experiments: snapshots are made at a project's root.\n`,
  });
});

longTest('links are refused, whatever they lead to', async () => {
  const cwd = scratchProject({
    'experiments/toy.ts': family('0.1'),
    'outside.txt': 'private',
    'other/a.txt': 'a',
  });
  const luthier = snapshots(cwd);
  const refused = (path: string) =>
    `${path} is a symbolic link. Snapshots are files of the project: remove the link.\n`;
  mkdirSync(join(cwd, folder));
  const file = `${folder}/toy.Short.txt`;
  symlinkSync(join(cwd, 'outside.txt'), join(cwd, file));
  for (const args of [['Short'], ['--check'], ['--remove', 'Short']])
    expect(await luthier(...args)).toMatchObject({ code: 2, stdout: '', stderr: refused(file) });
  expect(readFileSync(join(cwd, 'outside.txt'), 'utf8')).toBe('private');
  rmSync(join(cwd, folder), { recursive: true });
  symlinkSync(join(cwd, 'other'), join(cwd, folder));
  expect(await luthier('--remove', 'a')).toMatchObject({ code: 2, stdout: '', stderr: refused(folder) });
  expect(readdirSync(join(cwd, 'other'))).toEqual(['a.txt']);
});
