/**
 * @file TPE beside Optuna's on six problems, 100 trials of each seed, and the time that a study takes of a trial.
 * `npx tsx bench/search.ts [SEEDS]` needs the peers of bench/peers/setup.sh; default 100 seeds.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from '../src/hparams/index.js';
import { RandomSearch, Tpe, type Trial } from '../src/search/index.js';
import { Study } from '../src/search/studies/index.js';
import { problems } from './searchProblems.js';

const TRIALS = 100;
const seeds = Number(process.argv[2] ?? 100);
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const python = join(process.env.LUTHIER_PEERS ?? join(cache, 'luthier/peers'), 'venv/bin/python');

/** The lowest loss of a search. */
function bestLoss(
  algorithm: Tpe | RandomSearch,
  { space, loss }: (typeof problems)[string],
  seed: number,
): number {
  const trials: Trial[] = [];
  for (let number = 0; number < TRIALS; number++) {
    const proposal = algorithm.propose({ space, number, trials, seed });
    if (typeof proposal === 'string') throw new Error(proposal);
    trials.push({ ...proposal, number, state: 'done', rewards: [-loss(proposal.values)] });
  }
  return Math.min(...trials.map(({ rewards }) => -rewards![0]!));
}

/**
 * Mann and Whitney's test, by the normal approximation.
 *
 * @returns the deviate of our ranks: above 2.33, ours are worse at 1 %.
 */
function rankDeviate(ours: readonly number[], others: readonly number[]): number {
  const [n, m] = [ours.length, others.length];
  const wins = ours.reduce(
    (sum, a) => sum + others.reduce((count, b) => count + (a > b ? 1 : a === b ? 0.5 : 0), 0),
    0,
  );
  return (wins - (n * m) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12);
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** Milliseconds of a study for each trial of 100: proposal, claim, records. */
async function studyTime(algorithm: Tpe | RandomSearch): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-search-'));
  const { space, loss } = problems.mixed!;
  const study = await Study.open({
    directory,
    name: 'mixed',
    space,
    algorithm,
    seed: 0,
    maxNumTrials: TRIALS,
  });
  const started = performance.now();
  for (let trial = await study.ask(); typeof trial !== 'string'; trial = await study.ask())
    study.tell(trial, { state: 'done', rewards: [-loss(trial.values)] });
  const time = (performance.now() - started) / TRIALS;
  study.close();
  rmSync(directory, { recursive: true });
  return time;
}

for (const [name, algorithm] of [
  ['RandomSearch', build(RandomSearch.config())],
  ['Tpe', build(Tpe.config())],
] as const)
  console.log(`study, ${name}: ${(await studyTime(algorithm)).toFixed(2)} ms a trial`);

if (seeds > 0) {
  const script = fileURLToPath(new URL('peers/optuna_search.py', import.meta.url));
  const output = execFileSync(python, [script, '0', String(seeds)], { encoding: 'utf8' });
  const { optuna, best } = JSON.parse(output) as { optuna: string; best: Record<string, number[]> };
  console.log(`problem, median of ${seeds} seeds: random, TPE, Optuna ${optuna}, deviate of ranks`);
  for (const [name, problem] of Object.entries(problems)) {
    const [random, ours] = [build(RandomSearch.config()), build(Tpe.config())].map((algorithm) =>
      Array.from({ length: seeds }, (_, seed) => bestLoss(algorithm, problem, seed)),
    );
    const shown = [random!, ours!, best[name]!].map((values) => median(values).toPrecision(4));
    console.log(`${name}: ${shown.join(', ')}, ${rankDeviate(ours!, best[name]!).toFixed(2)}`);
  }
}
