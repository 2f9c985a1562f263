/** @file `npm run bench:review`: duration of the commands that a reviewer waits for, process start included. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
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

/** The repository's own experiments as they were committed last, and a file with a line more. */
function ownWith(file: string, line: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-review-'));
  execFileSync('git', ['clone', '--quiet', '--shared', repository, directory]);
  // What git ignores as a folder is a link here.
  appendFileSync(join(directory, '.git/info/exclude'), 'node_modules\n');
  symlinkSync(join(repository, 'node_modules'), join(directory, 'node_modules'));
  appendFileSync(join(directory, file), line);
  return directory;
}

/** What a run of a command takes: seconds of the clock, and of all processors, the processes that it starts included. */
interface Taken {
  readonly seconds: number;
  readonly cpu: number;
}

/** A command that is timed. */
interface Timed {
  readonly what: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** A file that gets another line before each run, the first of which is made once more before: its answers are kept. */
  readonly edited?: string;
}

const timed = 'TIMEFORMAT="%U %S"; { time "$@" >/dev/null 2>&1; } 2>&1';

/** Answers of reviews are kept here, so that a bench begins without any and leaves none. */
const caches = mkdtempSync(join(tmpdir(), 'luthier-review-'));
const env = { ...process.env, XDG_CACHE_HOME: caches };

function time({ args, cwd, edited }: Timed, runs: number): Taken[] {
  if (edited !== undefined) execFileSync(process.execPath, [luthier, ...args], { cwd, env, stdio: 'ignore' });
  return Array.from({ length: runs }, (_, i) => {
    if (edited !== undefined) appendFileSync(join(cwd, edited), `// Edit ${i}.\n`);
    const start = performance.now();
    const command = ['-c', timed, 'luthier', process.execPath, luthier, ...args];
    const told = execFileSync('bash', command, { cwd, env, encoding: 'utf8' });
    const seconds = (performance.now() - start) / 1000;
    return { seconds, cpu: told.split(/\s+/).reduce((sum, each) => sum + Number(each), 0) };
  });
}

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '5' }, only: { type: 'string', default: '' } },
});
const runs = Number(values.runs);
if (!(Number.isInteger(runs) && runs > 0))
  throw new Error(`--runs: expected a positive integer; got '${values.runs}'`);

const [small, large, sixty] = [30, 200, 60].map((count) => projectOf(experiments(count))) as [
  string,
  string,
  string,
];
// All of them change: what they inherit has other heads.
for (const project of [small, sixty]) writeFileSync(join(project, 'experiments/family.ts'), family(8));
const code = ownWith('src/layers/attention/projections.ts', '\n// Reaches all.\n');
const page = ownWith('docs/architecture.md', '\nReaches none.\n');
try {
  const again = ['diff', '--base=HEAD', '--format=markdown'];
  const first = [...again, '--fresh'];
  const layers = 'src/layers/attention/projections.ts';
  const guide = 'docs/architecture.md';
  const commands: Timed[] = [
    { what: 'list, 200 experiments', args: ['list'], cwd: large },
    { what: 'diff --base, the own experiments, all reached, none changed', args: first, cwd: code },
    { what: 'the same, the base known from an earlier review', args: again, cwd: code, edited: layers },
    { what: 'diff --base, the own experiments, none reached', args: first, cwd: page },
    { what: 'none reached, the base known from an earlier review', args: again, cwd: page, edited: guide },
    { what: 'diff --base, 60 small experiments, all changed', args: first, cwd: sixty },
    { what: 'diff --base, 30 small experiments, all changed', args: first, cwd: small },
    { what: 'validate, 30 experiments, level trace', args: ['validate'], cwd: small },
    {
      what: 'analyze, GPT-3 175B',
      args: ['analyze', 'c4.C4SpmdGpt3AdamOrgHP', '--peak_tflops=1'],
      cwd: repository,
    },
    {
      what: 'analyze, 1024B',
      args: ['analyze', 'lmCloud.LmCloudSpmd1024B', '--peak_tflops=1'],
      cwd: repository,
    },
    { what: 'dump lm.Small', args: ['dump', 'lm.Small'], cwd: repository },
    { what: 'snapshot --check, 5 experiments', args: ['snapshot', '--check'], cwd: repository },
  ];
  const rows = commands
    .filter(({ what }) => what.includes(values.only))
    .map((command) => {
      const { what } = command;
      const taken = time(command, runs);
      const seconds = taken.map((each) => each.seconds);
      const cpu = median(taken.map((each) => each.cpu));
      const row = [what, median(seconds).toFixed(2), Math.max(...seconds).toFixed(2), cpu.toFixed(1)];
      process.stderr.write(`${row.join('  ')}\n`);
      return row;
    });
  process.stdout.write(`${markdownTable(rows, ['luthier', 'seconds', 'longest', 'CPU seconds'])}\n`);
} finally {
  for (const directory of [small, large, sixty, code, page, caches])
    rmSync(directory, { recursive: true, force: true });
}
