/**
 * @file The prediction of a ladder of three sizes, beside the training of the fourth. `npx tsx bench/ladder.ts`
 * takes three minutes.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NEXT = ['--set', 'modelDims=80', '--set', 'numTrainSteps=4800'];
const cwd = fileURLToPath(new URL('../test/fixtures/ladder', import.meta.url));
const luthier = fileURLToPath(new URL('../src/tools/luthier.js', import.meta.url));

const run = (...args: string[]): string =>
  execFileSync(process.execPath, [luthier, ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** The loss that the ladder predicts for the next size, and that of its training. */
export function ladderPrediction(): { predicted: number; measured: number; text: string } {
  const out = mkdtempSync(join(tmpdir(), 'luthier-ladder-'));
  try {
    const training = ['train', '--exp=rungs.Rungs', '--mode=train_and_eval'];
    run(...training, '--study=rungs', `--job_log_dir=${out}`);
    run(...training, `--job_log_dir=${join(out, 'next')}`, ...NEXT);
    const { parameters, tokensPerStep, numTrainSteps } = JSON.parse(
      run('analyze', 'rungs.Rungs', '--peak_tflops=1', '--format=json', ...NEXT),
    );
    const asked = ['ladder', join(out, 'rungs'), `--at=${parameters},${tokensPerStep * numTrainSteps}`];
    const [{ loss }] = JSON.parse(run(...asked, '--format=json')).predicted;
    const lines = readFileSync(join(out, 'next/metrics.jsonl'), 'utf8').trim().split('\n');
    const evaluated = lines
      .map((line) => JSON.parse(line))
      .filter((each) => each.program === 'eval_test_held_out');
    return { predicted: loss, measured: evaluated.at(-1)['Metrics/total_loss'], text: run(...asked) };
  } finally {
    rmSync(out, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { predicted, measured, text } = ladderPrediction();
  console.log(text);
  console.log(
    `Trained: ${measured.toPrecision(4)}; the prediction is off by ${(100 * (predicted / measured - 1)).toFixed(2)} %.`,
  );
}
