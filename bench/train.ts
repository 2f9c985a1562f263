/** @file `npm run bench:train`: Luthier's training step beside PyTorch's, on three GPT shapes, in one run. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import {
  type Candidate,
  hasPeers,
  jax,
  luthier,
  luthierPeak,
  measure,
  type Program,
  peersPython,
  pytorch,
  torchPeak,
} from './programs.js';
import { ALONE, type Peaks, peakReport, rounds, shapeReport } from './report.js';
import { groupBy, type PeakResult, type Precision, type Row, type StepResult, toRow } from './results.js';
import { shapes, usualShapes } from './shapes.js';
import { whenStopped } from './stopping.js';

/** After the first round only so many of the fastest settings of a peer run on. */
const finalists = 3;
const resultsFile = 'out/bench_train.json';
/** Of `--quick`: for all, for one program, and for the steps of one of Luthier's. */
const quickSeconds = { all: 225, program: 45, steps: 12 };

interface Options {
  readonly shapes: readonly string[];
  readonly precisions: readonly Precision[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly jax: boolean;
  /** Luthier's step by ONNX Runtime as well. */
  readonly onnx: boolean;
  /** Luthier's step on one thread as well. */
  readonly scaling: boolean;
  /** The results of an earlier run: of the settings of a peer only those run that it kept to its end. */
  readonly finalists: string | undefined;
  readonly threads: number;
}

/** A candidate with what it has measured so far. */
interface Entry {
  readonly shape: string;
  readonly candidate: Candidate;
  readonly results: StepResult[];
  /** Why it could not run. */
  failure?: string;
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name}: expected a positive integer; got '${text}'`);
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      shapes: { type: 'string', default: usualShapes.join(',') },
      precisions: { type: 'string', default: 'f32,bf16' },
      rounds: { type: 'string' },
      threads: { type: 'string', default: String(availableParallelism()) },
      quick: { type: 'boolean', default: false },
      jax: { type: 'boolean', default: false },
      onnx: { type: 'boolean', default: false },
      scaling: { type: 'boolean', default: false },
      finalists: { type: 'string' },
    },
  });
  const names = values.shapes.split(',');
  const unknown = names.find((name) => !Object.hasOwn(shapes, name));
  if (unknown !== undefined) {
    throw new Error(`--shapes: expected some of ${Object.keys(shapes).join(',')}; got '${unknown}'`);
  }
  const precisions = values.precisions.split(',');
  const other = precisions.find((name) => name !== 'f32' && name !== 'bf16');
  if (other !== undefined) throw new Error(`--precisions: expected some of f32,bf16; got '${other}'`);
  if (values.finalists !== undefined && !existsSync(values.finalists)) {
    throw new Error(
      `--finalists: expected the results of an earlier run, such as ${resultsFile}; there is no '${values.finalists}'`,
    );
  }
  return {
    shapes: names,
    precisions: precisions as Precision[],
    rounds: positive('rounds', values.rounds ?? (values.quick ? '1' : '3')),
    quick: values.quick,
    jax: values.jax,
    onnx: values.onnx,
    scaling: values.scaling,
    finalists: values.finalists,
    threads: positive('threads', values.threads),
  };
}

/** Under a name of its own: it is not in the race. */
const alone = (candidate: Candidate): Candidate => ({ ...candidate, name: candidate.name + ALONE });

/** All that is measured, in the order of a round. */
function allEntries(options: Options): Entry[] {
  const { threads, quick, precisions } = options;
  const entries = options.shapes.flatMap((shape) => {
    const { steps } = shapes[shape]!;
    const task = quick
      ? { shape, steps: Math.max(2, steps >> 2), seconds: quickSeconds.steps }
      : { shape, steps };
    const torch = (precision: Precision) => {
      const candidates = pytorch(task, precision, threads);
      // One allocator and one number of threads are enough for a look.
      return quick
        ? candidates.filter(({ how }) => / tuned .*, /.test(how) && how.includes(`, ${threads} `))
        : candidates;
    };
    const candidates = precisions.map((precision) => luthier(task, precision, threads));
    if (options.onnx) candidates.push(luthier(task, 'f32', threads, 'onnx'));
    if (options.scaling && threads > 1)
      candidates.push(...precisions.map((precision) => alone(luthier(task, precision, 1))));
    if (hasPeers) candidates.push(...precisions.flatMap(torch));
    if (hasPeers && options.jax) candidates.push(...precisions.map((precision) => jax(task, precision)));
    return candidates.map((candidate): Entry => ({ shape, candidate, results: [] }));
  });
  return quick ? entries.toSorted((a, b) => turn(a) - turn(b)) : entries;
}

/** Order of a quick run. Where time runs out, peers are left out, those first that a CPU may have no instructions for. */
function turn({ candidate: { name } }: Entry): number {
  if (name.startsWith('Luthier')) return 0;
  return name.includes('bfloat16') ? 2 : 1;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Seconds that a program may take; those of a quick run end together. */
function secondsLeft({ quick }: Options): number | undefined {
  return quick ? Math.min(quickSeconds.program, quickSeconds.all - performance.now() / 1000) : undefined;
}

async function runEntry(entry: Entry, options: Options, label: string): Promise<void> {
  const { shape, candidate, results } = entry;
  const what = `${label} ${shape}: ${candidate.name}, ${candidate.how}`;
  const seconds = secondsLeft(options);
  if (seconds !== undefined && seconds < 5) {
    entry.failure = `skipped: --quick ends after ${quickSeconds.all} s`;
    say(`${what}: ${entry.failure}`);
    return;
  }
  try {
    const result = await measure<StepResult>(candidate, seconds);
    results.push(result);
    const { medianMs, minCpuMs, peakRssMb } = result;
    say(
      `${what}: ${medianMs.toFixed(1)} ms/step, ${minCpuMs.toFixed(1)} ms of CPU, ${peakRssMb.toFixed(0)} MB`,
    );
  } catch (error) {
    entry.failure = (error as Error).message;
    say(`${what}: failed: ${entry.failure}`);
  }
}

/** Entries that go on: of each name on each shape the fastest few that did not fail. */
function selectFinalists(entries: readonly Entry[]): Entry[] {
  const groups = groupBy(
    entries.filter((entry) => entry.failure === undefined),
    ({ shape, candidate }) => `${shape} ${candidate.name}`,
  );
  const kept = new Set(
    [...groups.values()].flatMap((group) =>
      group.sort((a, b) => a.results[0]!.medianMs - b.results[0]!.medianMs).slice(0, finalists),
    ),
  );
  return entries.filter((entry) => kept.has(entry));
}

/** Entries without the settings that the run whose results are in `file` gave up, or did not measure. */
function keepFinalists(entries: readonly Entry[], file: string): Entry[] {
  const earlier = JSON.parse(readFileSync(file, 'utf8')) as { options: Options; entries: Entry[] };
  const id = ({ shape, candidate }: Entry): string => [shape, candidate.name, candidate.how].join(', ');
  const kept = new Set(
    earlier.entries.filter(({ results }) => results.length === earlier.options.rounds).map(id),
  );
  return entries.filter((entry) => !entry.candidate.name.startsWith('PyTorch') || kept.has(id(entry)));
}

/** Looks for higher peaks. */
async function raisePeaks(peaks: Partial<Record<Precision, PeakResult>>, options: Options): Promise<void> {
  const programs: [Precision, Program][] = [
    ['f32', luthierPeak('f32')],
    ['bf16', luthierPeak('bf16')],
  ];
  if (hasPeers && !options.quick) programs.push(['f32', torchPeak('f32')], ['bf16', torchPeak('bf16')]);
  for (const [precision, program] of programs) {
    try {
      const found = await measure<PeakResult>(program, secondsLeft(options));
      say(`${precision} peak: ${found.gflops.toFixed(0)} GFLOP/s, ${found.how}`);
      if (found.gflops > (peaks[precision]?.gflops ?? 0)) peaks[precision] = found;
    } catch (error) {
      say(`A program that looks for the ${precision} peak failed: ${(error as Error).message}`);
    }
  }
}

/** A round runs every program once, one at a time; every other round runs backwards. `keep` is called after each. */
async function runRounds(
  options: Options,
  entries: readonly Entry[],
  peaks: Partial<Record<Precision, PeakResult>>,
  keep: () => void,
): Promise<void> {
  let running: readonly Entry[] = entries;
  for (let round = 1; round <= options.rounds; round++) {
    await raisePeaks(peaks, options);
    const order = round % 2 === 1 ? running : running.toReversed();
    for (const entry of order) {
      await runEntry(entry, options, `[round ${round}/${options.rounds}]`);
      keep();
    }
    if (round === 1 && options.finalists === undefined) running = selectFinalists(running);
  }
}

/** Different numbers of parameters would be different models. */
function checkEqualModels(entries: readonly Entry[]): void {
  for (const [shape, group] of groupBy(entries, (entry) => entry.shape)) {
    const counts = new Set(group.flatMap(({ results }) => results.map((r) => r.parameters)));
    if (counts.size > 1)
      throw new Error(`${shape}: the programs train ${[...counts].join(' and ')} parameters`);
  }
}

function rowsOf(entries: readonly Entry[], shape: string): Row[] {
  return entries
    .filter((entry) => entry.shape === shape && entry.results.length > 0)
    .map(({ candidate, results }) => toRow(candidate.name, candidate.how, results));
}

function fullReport(options: Options, entries: readonly Entry[], peaks: Peaks): string {
  const versions = new Set(entries.flatMap(({ results }) => results.map((r) => r.version)));
  const failures = entries
    .filter((entry) => entry.failure !== undefined)
    .map(({ shape, candidate, failure }) => `- ${shape}, ${candidate.name}, ${candidate.how}: ${failure}`);
  return [
    `${[...versions, `Node ${process.versions.node}`].join(', ')}; ${cpus()[0]?.model ?? 'unknown CPU'}, ` +
      `${options.threads} threads; medians of ${rounds(options.rounds)}.`,
    ...options.shapes.map((name) => shapeReport(name, shapes[name]!, rowsOf(entries, name), peaks)),
    peakReport(peaks),
    ...(failures.length > 0 ? [`Could not run:\n${failures.join('\n')}`] : []),
    ...(hasPeers ? [] : [absence]),
  ].join('\n\n');
}

const absence = `PyTorch is absent (no ${peersPython}), so Luthier stands alone here. bench/peers/setup.sh installs it.`;

let options: Options;
try {
  options = readOptions();
} catch (error) {
  say((error as Error).message);
  process.exit(2);
}
if (!hasPeers) say(absence);
const entries =
  options.finalists === undefined
    ? allEntries(options)
    : keepFinalists(allEntries(options), options.finalists);
const peaks: Partial<Record<Precision, PeakResult>> = {};
const show = (): void => {
  process.stdout.write(
    `\n${fullReport(options, entries, peaks)}\n\nEvery measurement is in ${resultsFile}.\n`,
  );
};
mkdirSync('out', { recursive: true });
whenStopped(show);
await runRounds(options, entries, peaks, () => {
  writeFileSync(resultsFile, `${JSON.stringify({ options, peaks, entries }, null, 1)}\n`);
});
checkEqualModels(entries);
show();
// Without a figure of our own there is no benchmark.
if (entries.some((entry) => turn(entry) === 0 && entry.results.length === 0)) process.exitCode = 1;
