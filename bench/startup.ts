/** @file `npm run bench:startup`: time from the command, in both documented forms, to the first training step. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from './results.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const timeoutSeconds = 120;

/** Whether metrics.jsonl tells of a finished training step. */
function hasTrained(metrics: string): boolean {
  try {
    // With a summary after every step, the first line of training is written as the first step ends.
    return readFileSync(metrics, 'utf8')
      .split('\n')
      .some((line) => line.endsWith('}') && JSON.parse(line).program === 'train');
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

/** Starts the command in an empty directory; gives the seconds until the first step is finished, and stops it. */
async function measure([launcher, ...words]: readonly string[], experiment: string): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-startup-'));
  const args = [...words, `--exp=${experiment}`, `--job_log_dir=${directory}`];
  const started = performance.now();
  // A group of its own: npx starts the command, which may start another, and all of them have to go.
  const child = spawn(launcher!, [...args, '--set', 'task.train.summaryIntervalSteps=1'], {
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
      if (hasTrained(join(directory, 'metrics.jsonl'))) return seconds;
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
  options: { runs: { type: 'string', default: '5' }, exp: { type: 'string', default: 'lm.Small' } },
});
const runs = Number(values.runs);
if (!(Number.isInteger(runs) && runs > 0))
  throw new Error(`--runs: expected a positive integer; got '${values.runs}'`);
const seconds = forms.map((): number[] => []);
// The forms in turn: a slow minute of the machine hits both alike.
for (let run = 1; run <= runs; run++) {
  for (const [i, form] of forms.entries()) {
    const taken = await measure(form, values.exp);
    seconds[i]!.push(taken);
    process.stdout.write(`run ${run}, ${form.join(' ')}: ${taken.toFixed(2)} s\n`);
  }
}
process.stdout.write(`From the command to the first finished step of ${values.exp}, medians:\n`);
for (const [i, form] of forms.entries())
  process.stdout.write(`  ${form.join(' ')}: ${median(seconds[i]!).toFixed(2)} s\n`);
