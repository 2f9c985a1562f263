/**
 * @file `npm run bench:startup`: time from the command, in both documented forms, to the first training step; with `--resume` to
 * the first one after a checkpoint of 19 million parameters, which AdamW's slots make 230 MB.
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { hasPeers, peersPython } from './programs.js';
import { median } from './results.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const timeoutSeconds = 120;

/** Whether metrics.jsonl tells of a training step that is finished, after those `before`. */
function hasTrained(metrics: string, before: number): boolean {
  const isLater = ({ program, step }: { program: string; step: number }) =>
    program === 'train' && step > before;
  try {
    // With a summary after every step, the first line of training is written as the first step ends.
    return readFileSync(metrics, 'utf8')
      .split('\n')
      .some((line) => line.endsWith('}') && isLater(JSON.parse(line)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** What a person types, less the flags. */
const forms: readonly (readonly string[])[] = [
  ['npx', 'luthier', 'train'],
  ['npx', 'tsx', 'src/main.ts'],
];

const setting = (...values: readonly string[]): string[] => values.flatMap((value) => ['--set', value]);

const EACH_STEP = setting('task.train.summaryIntervalSteps=1');
/** Flags of a run whose state is large. */
const LARGE = [...setting('numLayers=6', 'numHeads=8', 'modelDims=512', 'seqLen=256'), '--engine=native'];

/** The directory of a run that has saved its first step. */
function savedRun(experiment: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-startup-saved-'));
  const args = ['luthier', 'train', `--exp=${experiment}`, `--job_log_dir=${directory}`];
  execFileSync('npx', [...args, ...LARGE, ...EACH_STEP, ...setting('numTrainSteps=1')], {
    cwd: root,
    stdio: 'ignore',
  });
  return directory;
}

/** Starts the command in an empty directory, or in a copy of `saved`; gives the seconds until the first step is finished, and stops it. */
async function measure(
  [launcher, ...words]: readonly string[],
  experiment: string,
  saved: string | undefined,
): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-startup-'));
  if (saved !== undefined) cpSync(saved, directory, { recursive: true });
  const args = [...words, `--exp=${experiment}`, `--job_log_dir=${directory}`];
  const started = performance.now();
  // A group of its own: npx starts the command, which may start another, and all of them have to go.
  const child = spawn(launcher!, [...args, ...EACH_STEP, ...(saved === undefined ? [] : LARGE)], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (text) => (stderr += text));
  const closed = new Promise((resolve) => child.on('close', resolve));
  try {
    for (;;) {
      const seconds = (performance.now() - started) / 1000;
      if (hasTrained(join(directory, 'metrics.jsonl'), saved === undefined ? 0 : 1)) return seconds;
      if (child.exitCode !== null)
        throw new Error(`${experiment} ended before its first step: ${stderr.trim()}`);
      if (seconds > timeoutSeconds) throw new Error(`no step in ${timeoutSeconds} s`);
      await sleep(2);
    }
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    await closed;
    rmSync(directory, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    exp: { type: 'string', default: 'lm.Small' },
    resume: { type: 'boolean', default: false },
  },
});
const runs = Number(values.runs);
if (!(Number.isInteger(runs) && runs > 0))
  throw new Error(`--runs: expected a positive integer; got '${values.runs}'`);
const saved = values.resume ? savedRun(values.exp) : undefined;
const seconds = forms.map((): number[] => []);
// The forms in turn: a slow minute of the machine hits both alike.
for (let run = 1; run <= runs; run++) {
  for (const [i, form] of forms.entries()) {
    const taken = await measure(form, values.exp, saved);
    seconds[i]!.push(taken);
    process.stdout.write(`run ${run}, ${form.join(' ')}: ${taken.toFixed(2)} s\n`);
  }
}
process.stdout.write(`From the command to the first finished step of ${values.exp}, medians:\n`);
for (const [i, form] of forms.entries())
  process.stdout.write(`  ${form.join(' ')}: ${median(seconds[i]!).toFixed(2)} s\n`);
if (saved !== undefined) {
  if (hasPeers) {
    const script = fileURLToPath(new URL('peers/torch_restart.py', import.meta.url));
    const file = join(saved, 'checkpoints/checkpoint_00000001/state.safetensors');
    process.stdout.write(execFileSync(peersPython, [script, file, String(runs)]));
  }
  rmSync(saved, { recursive: true });
}
