/** @file luthier diff --install: upgrades of a package, each version with those of its own lockfile, without a network. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Evaluator } from '../../src/review/versions/evaluators.js';
import { installPackages, withOwnPackages } from '../../src/review/versions/ownPackages.js';
import { UsageError } from '../../src/system/text/usageError.js';
import { temporaryDirectory } from '../command.js';
import { isShort, seed } from '../faults/campaign.js';
import { withCommandEnvironment } from '../loader.js';
import { writeFiles } from '../tools/scratch.js';
import { experimentsFile, family } from './repository.js';
import { ScratchReview } from './scratchReview.js';

const home = temporaryDirectory();
const ran = join(home, 'ran');
const path = process.env.PATH;

beforeAll(() => {
  vi.stubEnv('npm_config_cache', join(home, 'npm'));
  vi.stubEnv('npm_config_offline', 'true');
  vi.stubEnv('XDG_CACHE_HOME', join(home, 'cache'));
  mkdirSync(join(home, 'cache/luthier'), { recursive: true, mode: 0o700 });
});
afterAll(() => {
  vi.unstubAllEnvs();
});
withCommandEnvironment();

const npm = (folder: string, ...args: readonly string[]): string =>
  execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** A package as npm packs it, whose install script would leave a trace. */
function packed(version: string, steps: number): Buffer {
  const folder = temporaryDirectory();
  const scripts = { preinstall: `touch ${ran}`, postinstall: `touch ${ran}` };
  const manifest = { name: 'own-steps', version, type: 'module', exports: './index.js', scripts };
  writeFiles(folder, {
    'package.json': JSON.stringify(manifest),
    'index.js': `export const steps = ${steps};\n`,
  });
  npm(folder, 'pack', '--silent');
  return readFileSync(join(folder, `own-steps-${version}.tgz`));
}

/** Installs as a user does who allows no scripts, with a lockfile. */
function install(folder: string): void {
  rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
  rmSync(join(folder, 'package-lock.json'), { force: true });
  npm(folder, 'install', '--ignore-scripts', '--no-audit', '--no-fund');
}

const own = { 'own-steps': 'file:vendor/own-steps.tgz' };
const manifest = (dependencies: object): string => JSON.stringify({ type: 'module', dependencies });

/** A base whose Luthier does not answer: its packages are removed again, and those of now linked. */
async function leavesThemToAnotherLuthier(root: string): Promise<void> {
  const done: string[] = [];
  const [start, end] = [
    () => Promise.reject(new UsageError('another protocol')),
    async () => void done.push('end'),
  ];
  const begin = () => ({ evaluator: { start, end } as unknown as Evaluator });
  const linkPackages = (): void => {
    done.push(`link, packages there: ${existsSync(join(root, 'node_modules'))}`);
  };
  const worktree = { root, remove: () => {}, lacking: [], linkPackages };
  const { packages } = await withOwnPackages({ folder: '' }, worktree, 'main', begin);
  expect(packages).toEqual({ because: 'the Luthier of the base does not answer this one' });
  expect(done).toEqual(['end', 'link, packages there: false']);
}

test('packages are installed without their scripts, and kept by their lockfile', async () => {
  const folder = temporaryDirectory();
  writeFiles(folder, { 'package.json': manifest(own), 'vendor/own-steps.tgz': packed('1.0.0', 7) });
  install(folder);
  const installed = join(folder, 'node_modules/own-steps/index.js');
  rmSync(join(folder, 'node_modules'), { recursive: true });
  await installPackages(folder, 'main');
  expect(readFileSync(installed, 'utf8')).toBe('export const steps = 7;\n');
  expect(existsSync(ran)).toBe(false);
  expect(readdirSync(join(home, 'cache/luthier/packages'))).toHaveLength(1);
  // From there, without npm.
  rmSync(join(folder, 'node_modules'), { recursive: true });
  vi.stubEnv('PATH', join(home, 'nothing'));
  await installPackages(folder, 'main');
  expect(readFileSync(installed, 'utf8')).toBe('export const steps = 7;\n');
  await leavesThemToAnotherLuthier(folder);
  writeFiles(folder, { 'package.json': manifest({ ...own, other: '1.0.0' }) });
  await expect(installPackages(folder, 'main')).rejects.toThrow(
    '--install: the packages of main: npm is not installed here.',
  );
  vi.stubEnv('PATH', path);
  await expect(installPackages(folder, 'main (abc1234)')).rejects.toThrow(
    /^--install: the packages of main \(abc1234\): npm ci fails: code ENOTCACHED; request to \S+ failed/,
  );
});

test.skipIf(isShort && seed % 3 !== 0)(
  'each version has its own packages where the lockfile alone changed',
  async () => {
    const repository = fileURLToPath(new URL('../..', import.meta.url));
    const links = { luthier: `file:${repository}`, zod: `file:${join(repository, 'node_modules/zod')}` };
    const review = new ScratchReview({
      'package.json': manifest({ ...links, ...own }),
      'experiments/family.ts': family,
      'experiments/pkg.ts': `import { steps } from 'own-steps';\n${experimentsFile(
        'export class Pkg extends Family {\n  override steps = steps;\n}\n',
      )}`,
      'experiments/rest.ts': experimentsFile('export class Rest extends Family {}\n'),
    });
    const { folder, git } = review.repository;
    const upgrade = (version: string, steps: number) => () => {
      writeFiles(folder, { 'vendor/own-steps.tgz': packed(version, steps) });
      install(folder);
    };
    upgrade('1.0.0', 7)();
    review.commit();
    // The manifest stays: the lockfile alone tells.
    const told = await review.told({}, { installs: true }, upgrade('1.1.0', 9));
    expect(told).toMatchInlineSnapshot(`
      "1 costs more, 1 the same

      pkg.Pkg
        Constants
          steps : 7 → 9  (set by Pkg at experiments/pkg.ts:5)
        Fields
          task.train.numTrainSteps : 7 → 9  (experiments/family.ts:16)

      Consequences                          before       after
      pkg.Pkg       Tokens of training         112         144  +32, +29%
                    FLOPs of training   5.49 MFLOP  7.06 MFLOP  +1.57 MFLOP, +29%

      Runs go on with the same bits: pkg.Pkg

      Note: package-lock.json changed (own-steps 1.0.0 → 1.1.0): each version was evaluated with the packages of its own lockfile; code in them is compared by what it computes alone.

      Note: Where a config changed, both codes were compared by the config of now."
    `);
    expect(readFileSync(join(folder, 'node_modules/own-steps/index.js'), 'utf8')).toContain('= 9');
    expect(git('worktree', 'list').trim().split('\n')).toHaveLength(1);
    expect(existsSync(ran)).toBe(false);
  },
);
