/** @file A project in a git repository of its own, for tests of `luthier diff`. */
import { execFileSync } from 'node:child_process';
import { scratchProject, writeFiles } from '../tools/scratch.js';

/** A repository with one commit, `main`, and `change` checked out. */
export interface TestRepository {
  readonly folder: string;
  git(...args: readonly string[]): string;
  /** Writes files, by their paths. */
  write(files: Readonly<Record<string, string>>): void;
  /** All that git can tell of what a user would see changed. */
  state(): string;
}

/** Makes a repository of these files. */
export function repositoryOf(files: Readonly<Record<string, string>>): TestRepository {
  const folder = scratchProject({ '.gitignore': 'node_modules\ndata\n', ...files });
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.org', ...args], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '.');
  git('commit', '--quiet', '--message=base');
  git('checkout', '--quiet', '-b', 'change');
  return {
    folder,
    git,
    write: (changed) => writeFiles(folder, changed),
    state: () =>
      [
        git('status', '--porcelain=v2', '--branch'),
        git('for-each-ref'),
        git('worktree', 'list'),
        git('stash', 'list'),
        git('diff', '--cached'),
        git('ls-files', '--stage', '--debug'),
      ].join('\n'),
  };
}

/** What the experiments have in common: a family whose head count a class may change. */
export const family = `import { z } from 'zod';
import { AdamW, Experiment, gpt2Lm, LanguageModel, Learner, SingleTask, SyntheticLmInput, Train } from 'luthier';

/** Small models on synthetic tokens. */
export abstract class Family extends Experiment.with({
  modelDims: z.int().positive().default(16).describe('Depth.'),
  numHeads: z.int().positive().default(2).describe('Heads.'),
  numLayers: z.int().positive().default(2).describe('Blocks.'),
  steps: z.int().positive().default(5).describe('Steps.'),
}) {
  override task() {
    const { modelDims, numHeads, numLayers } = this;
    const lmTpl = gpt2Lm({ vocabSize: 32, modelDims, numLayers, numHeads, maxSeqLength: 8 });
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer: AdamW.config({ learningRate: 1e-3 }) }), numTrainSteps: this.steps }),
    });
  }

  override datasets() {
    return [SyntheticLmInput.config({ name: 'train', isTraining: true, vocabSize: 32, batchSize: 2, seqLen: 8 })];
  }
}
`;

/** A file of experiments of the family. */
export function experimentsFile(...classes: readonly string[]): string {
  return [`import { Family } from './family.js';\n`, ...classes].join('\n');
}
