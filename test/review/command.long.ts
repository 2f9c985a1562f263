/** @file luthier diff as people run it: its forms, exit codes and errors, and what it leaves behind. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseReport } from '../../src/review/reports/parseReport.js';
import { oneProcess, runLuthier, startCommand, temporaryDirectory } from '../command.js';
import { isShort } from '../faults/campaign.js';
import { experimentsFile, family, repositoryOf } from './repository.js';

const files = {
  'experiments/family.ts': family,
  'experiments/small.ts': experimentsFile(
    'export class One extends Family {}',
    'export class Two extends Family {\n  override steps = 6;\n}',
  ),
};
const repository = repositoryOf(files);
const { folder } = repository;
// It reads experiments in processes of its own.
const luthier = oneProcess('src/tools/commandLine.ts', folder);

/** Paths of the worktrees beside the user's own. */
function worktrees(): string[] {
  const listed = repository.git('worktree', 'list', '--porcelain').matchAll(/^worktree (.*)$/gm);
  return [...listed].slice(1).map(([, path]) => path!);
}

/** Waits until a command has made its worktree; git refuses to list one that is half made. */
async function madeWorktree(): Promise<string> {
  for (;;) {
    try {
      const [made] = worktrees();
      if (made !== undefined) return made;
    } catch {
      // Half made.
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('two experiments, in each form', async () => {
  const { code, stdout, stderr } = await luthier(['diff', 'One', 'small.Two']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatchInlineSnapshot(`
    "1 costs more
    small.One → small.Two

    small.Two
      Constants
        steps : 5 → 6  (set by Two at experiments/small.ts:5; was set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 6  (experiments/family.ts:16)

    Consequences                          before       after
    small.Two     Tokens of training          80          96  +16, +20%
                  FLOPs of training   3.92 MFLOP  4.71 MFLOP  +784 kFLOP, +20%

    Runs go on with the same bits: small.Two
    "
  `);
  const json = await luthier([
    ...['diff', 'One', 'Two', '--format=json', '--set', 'numLayers=1', '--exit_code'],
  ]);
  expect([json.code, json.stderr]).toEqual([1, '']);
  const report = parseReport(json.stdout);
  expect(report).toMatchObject({
    format: 'luthier-config-diff',
    version: 1,
    old: { label: 'small.One' },
    new: { label: 'small.Two' },
    experiments: [
      {
        name: 'small.Two',
        status: 'changed',
        constants: [{ name: 'steps', old: { text: '5', setBy: 'Family' }, new: { text: '6', setBy: 'Two' } }],
        fields: [
          { what: 'changed', path: 'task.train.numTrainSteps', old: { text: '5' }, new: { text: '6' } },
        ],
        checkpoints: { goesOn: 'same', changes: [], appeared: [], vanished: [], reshaped: [] },
      },
    ],
    declarations: [],
    unchanged: 0,
    untouched: 0,
    notes: [],
  });
});

test('an experiment that the change breaks ends it with 1; worktrees of killed processes are taken away', async () => {
  const left = join(tmpdir(), `luthier-diff-${2 ** 22 + 1}-left`);
  repository.git('worktree', 'add', '--quiet', '--detach', left);
  repository.write({
    'experiments/small.ts': files['experiments/small.ts'].replace('steps = 6', 'steps = 0'),
  });
  const state = repository.git('status', '--porcelain=v2');
  const { code, stdout, stderr } = await runLuthier(['diff', '--base', 'main'], folder);
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout.replace(/\([0-9a-f]{7}\)/, '')).toBe(`Fails: 1 breaks, 1 the same
main  → working tree

small.Two: broken
  Two.steps: expected a positive integer, got 0
  at experiments/small.ts:5

Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.
`);
  expect(repository.git('status', '--porcelain=v2')).toBe(state);
  expect(worktrees()).toEqual([]);
  repository.git('checkout', '--', '.');
});

/** Waits for ever, and leaves the processor to others. */
const hangs = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';

test('experiments that hang or take all memory fail by themselves', async () => {
  const grows = 'const all = [];\n    for (;;) all.push(Buffer.alloc(1e8, 1));';
  repository.write({
    'experiments/grows.ts': experimentsFile(
      `export class Grows extends Family {\n  override task(): any {\n    ${grows}\n  }\n}`,
    ),
    'experiments/hangs.ts': experimentsFile(
      `export class Hangs extends Family {\n  override task(): any {\n    ${hangs}\n  }\n}`,
    ),
    'experiments/small.ts': files['experiments/small.ts'].replace('steps = 6', 'steps = 7'),
  });
  const args = ['diff', '--base=main', '--timeout=12', '--memory=1'];
  const { code, stdout, stderr } = await runLuthier(args, folder);
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout.replace(/\([0-9a-f]{7}\)/, '')).toMatchInlineSnapshot(`
    "Fails: 2 break, 1 costs more, 1 the same
    main  → working tree

    grows.Grows: broken
      The process ran out of memory. It said:
      It took more than 1 GB of memory; luthier diff --memory=GIGABYTES gives it more.

    hangs.Hangs: broken
      It took longer than 12 s; luthier diff --timeout=SECONDS gives it more.

    small.Two
      Constants
        steps : 6 → 7  (set by Two at experiments/small.ts:5)
      Fields
        task.train.numTrainSteps : 6 → 7  (experiments/family.ts:16)

    Consequences                          before       after
    small.Two     Tokens of training          96         112  +16, +17%
                  FLOPs of training   4.71 MFLOP  5.49 MFLOP  +784 kFLOP, +17%

    Runs go on with the same bits: small.Two

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.
    "
  `);
  repository.git('checkout', '--', '.');
  repository.git('clean', '--quiet', '--force');
});

// The test before has one that hangs, too.
test.skipIf(isShort)('an experiment that hangs, beside another one', async () => {
  repository.write({
    'experiments/hangs.ts': experimentsFile(
      `export class Hangs extends Family {\n  override task(): any {\n    ${hangs}\n  }\n}`,
    ),
  });
  const { code, stdout, stderr } = await runLuthier(
    ['diff', 'small.Two', 'hangs.Hangs', '--timeout=8'],
    folder,
  );
  expect([code, stdout, stderr]).toEqual([
    2,
    '',
    'hangs.Hangs: It took longer than 8 s; luthier diff --timeout=SECONDS gives it more.\n',
  ]);
  repository.git('clean', '--quiet', '--force', 'experiments');
});

test('a signal takes the worktree and the processes along', async () => {
  repository.write({
    'experiments/small.ts': `await new Promise((resolve) => setTimeout(resolve, 1e6));\n${files['experiments/small.ts']}`,
  });
  const { child, finished } = startCommand(['diff', '--base=main'], folder, 'src/tools/commandLine.ts');
  const worktree = await madeWorktree();
  child.kill('SIGTERM');
  expect(await finished).toMatchObject({ code: null, signal: 'SIGTERM', stdout: '' });
  expect([worktrees(), existsSync(worktree)]).toEqual([[], false]);
  repository.git('checkout', '--', '.');
});

const usage: [string, string[], string][] = [
  [
    'one experiment and no revision',
    ['One'],
    "luthier diff takes two experiments (A B), a run's directory, or --base=REF with an experiment or none. luthier diff --help explains more.",
  ],
  [
    'two experiments and a revision',
    ['One', 'Two', '--base=main'],
    "--base compares one experiment, or all; got 'One' 'Two'.",
  ],
  [
    'an experiment that cannot be made',
    ['One', 'Two', '--set', 'steps=0'],
    "small.One: One.steps: expected a positive integer, got '0' (at --set steps=0)\n",
  ],
  ['an unknown experiment', ['Onne', '--base=main'], "Could not find experiment 'Onne' in either version."],
  [
    'an unknown revision',
    ['--base=mian'],
    '--base=mian: git knows no such revision here. Fetch it: `git fetch origin mian`; then it is FETCH_HEAD, or origin/mian.\n',
  ],
  [
    'a revision that looks like an option',
    ['--base=--all'],
    '--base=--all: git knows no such revision here.',
  ],
];

test.each(usage)('%s', async (_, args, message) => {
  const { code, stdout, stderr } = await luthier(['diff', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr.slice(0, message.length)).toBe(message);
});

test('a folder without git, a shallow clone, and a history of its own', async () => {
  const bare = await luthier(['diff', '--base=main'], temporaryDirectory());
  expect([bare.code, bare.stderr]).toEqual([
    2,
    expect.stringContaining('is no working tree of git: fatal: not a git repository'),
  ]);
  repository.git('commit', '--quiet', '--allow-empty', '--message=second');
  const clone = join(temporaryDirectory(), 'clone');
  execFileSync('git', ['clone', '--quiet', '--depth=1', '--branch=change', `file://${folder}`, clone]);
  const shallow = await luthier(['diff', '--base=origin/main'], clone);
  expect(shallow.stderr).toBe(
    '--base=origin/main: git knows no such revision here. Fetch it: `git fetch origin main` ' +
      '(this clone is shallow: `git fetch --unshallow` gets the whole history); then it is FETCH_HEAD, or origin/main.\n',
  );
  execFileSync('git', ['fetch', '--quiet', '--depth=1', 'origin', 'main'], { cwd: clone });
  const apart = await luthier(['diff', '--base=FETCH_HEAD'], clone);
  expect(apart.stderr).toBe(
    '--base=FETCH_HEAD: it has no commit in common with HEAD in this shallow clone. ' +
      'Fetch the history (`git fetch --unshallow`), or compare with the revision itself: --exact.\n',
  );
  const exact = await luthier(['diff', '--base=FETCH_HEAD', '--exact'], clone);
  expect(exact.stdout).toMatch(
    /^2 that the change does not reach\nFETCH_HEAD \([0-9a-f]{7}\) → working tree\n$/,
  );
});
