/** @file `npm run bench:review`: duration of the commands that a reviewer waits for, process start included. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/tools/reportFormat.js';
import { median } from './results.js';

const repository = fileURLToPath(new URL('..', import.meta.url));
const luthier = join(repository, 'src/tools/luthier.js');

/** A family of experiments whose head count the base class decides. */
const family = (numHeads: number) => `import { z } from 'zod';
import { AdamW, Experiment, gpt2Lm, LanguageModel, Learner, SingleTask, SyntheticLmInput, Train } from 'luthier';

export abstract class Family extends Experiment.with({
  modelDims: z.int().positive().default(64).describe('Depth.'),
  numLayers: z.int().positive().default(2).describe('Blocks.'),
}) {
  override task() {
    const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: this.modelDims, numLayers: this.numLayers, numHeads: ${numHeads}, maxSeqLength: 32 });
    const learner = Learner.config({ optimizer: AdamW.config({ learningRate: 1e-3 }) });
    return SingleTask.config({ model: LanguageModel.config({ lmTpl }), train: Train.config({ learner, numTrainSteps: 5 }) });
  }

  override datasets() {
    return [SyntheticLmInput.config({ name: 'train', isTraining: true, vocabSize: 256, batchSize: 2, seqLen: 32 })];
  }
}
`;

/** `count` experiments, ten in a file, each of its own depth. */
function experiments(count: number): Record<string, string> {
  const files: Record<string, string> = { 'family.ts': family(4) };
  for (let i = 0; i < count; i += 10) {
    const classes = Array.from(
      { length: Math.min(10, count - i) },
      (_, j) =>
        `/** Number ${i + j}. */\nexport class E${i + j} extends Family.preset({ numLayers: ${1 + ((i + j) % 12)} }) {}\n`,
    );
    files[`group${i / 10}.ts`] = `import { Family } from './family.js';\n\n${classes.join('\n')}`;
  }
  return files;
}

/** A project that finds the library by its name, in a git repository with everything committed. */
function projectOf(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-review-'));
  mkdirSync(join(directory, 'experiments'));
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(repository, join(directory, 'node_modules/luthier'));
  symlinkSync(join(repository, 'node_modules/zod'), join(directory, 'node_modules/zod'));
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }\n');
  writeFileSync(join(directory, '.gitignore'), 'node_modules\n');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, 'experiments', name), text);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@example.org', ...args], {
      cwd: directory,
    });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '.');
  git('commit', '--quiet', '--message=base');
  return directory;
}

/** Seconds of each of `runs` runs of the command. */
function time(args: readonly string[], cwd: string, runs: number): number[] {
  return Array.from({ length: runs }, () => {
    const start = performance.now();
    execFileSync(process.execPath, [luthier, ...args], { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
    return (performance.now() - start) / 1000;
  });
}

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' } } });
const runs = Number(values.runs);
if (!(Number.isInteger(runs) && runs > 0))
  throw new Error(`--runs: expected a positive integer; got '${values.runs}'`);

const [small, large] = [projectOf(experiments(30)), projectOf(experiments(200))];
// All thirty change: what they inherit has other heads.
writeFileSync(join(small, 'experiments/family.ts'), family(8));
try {
  const commands: [string, readonly string[], string][] = [
    ['list, 200 experiments', ['list'], large],
    ['diff --base=main, 30 experiments, all changed', ['diff', '--base=main', '--format=markdown'], small],
    ['validate, 30 experiments, level trace', ['validate'], small],
    ['analyze, GPT-3 175B', ['analyze', 'c4.C4SpmdGpt3AdamOrgHP', '--peak_tflops=1'], repository],
    ['analyze, 1024B', ['analyze', 'lmCloud.LmCloudSpmd1024B', '--peak_tflops=1'], repository],
    ['dump lm.Small', ['dump', 'lm.Small'], repository],
    ['snapshot --check, 5 experiments', ['snapshot', '--check'], repository],
  ];
  const rows = commands.map(([what, args, cwd]) => {
    const seconds = time(args, cwd, runs);
    const row = [what, median(seconds).toFixed(2), Math.max(...seconds).toFixed(2)];
    process.stderr.write(`${row.join('  ')}\n`);
    return row;
  });
  process.stdout.write(`${markdownTable(rows, ['luthier', 'seconds', 'longest'])}\n`);
} finally {
  for (const directory of [small, large]) rmSync(directory, { recursive: true, force: true });
}
