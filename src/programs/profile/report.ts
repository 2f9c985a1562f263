/** @file A profile as tables: phases of the job, kinds of work, layers. */
import {
  type Bfloat16Products,
  boundText,
  type KernelTable,
  type Part,
  type Profiler,
  type ProgramProfile,
  readScope,
} from '../../compiler/index.js';

/** Peak rates of a machine, in FLOP/s and bytes per second; null if unknown. */
export interface Limits {
  readonly flops: number | null;
  /** How `flops` was found. */
  readonly flopsSource: string;
  readonly bytes: number | null;
  /** How fast its kernels are, and the products of bfloat16 in use; absent without machine code. */
  readonly kernels?: { readonly table: KernelTable; readonly products: Bfloat16Products } | undefined;
}

/** Time and work per run of one line of a table. */
export interface Work {
  /** Milliseconds, summed over all threads and divided by their number. */
  forward: number;
  backward: number;
  flops: number;
  bytes: number;
}

const none = (): Work => ({ forward: 0, backward: 0, flops: 0, bytes: 0 });

const timeOf = ({ forward, backward }: Work): number => forward + backward;

/** Sums work by key: each share of a part counts under every key that `keys` returns. */
function collect(
  { times, runs, threads }: ProgramProfile,
  keys: (part: Part, layer: string) => readonly string[],
): Map<string, Work> {
  const rows = new Map<string, Work>();
  for (const { part, seconds, count } of times) {
    for (const { scope, share } of part.shares) {
      const { layer, isGradient } = readScope(scope);
      const milliseconds = (share * seconds * 1000) / (threads * runs);
      for (const key of keys(part, layer)) {
        const row = rows.get(key) ?? none();
        rows.set(key, row);
        row[isGradient ? 'backward' : 'forward'] += milliseconds;
        row.flops += (share * part.flops * count) / runs;
        row.bytes += (share * part.bytes * count) / runs;
      }
    }
  }
  return rows;
}

/** Work by kind of part. */
export const workByKind = (profile: ProgramProfile): Map<string, Work> =>
  collect(profile, ({ kind }) => [kind]);

/** The paths of a layer and its enclosing layers: `lm`, `lm/softmax`. */
const pathsOf = (layer: string): string[] =>
  layer === '' ? [''] : layer.split('/').map((_, i, names) => names.slice(0, i + 1).join('/'));

/** Work by layer, including nested layers. Work outside of layers is under ''. */
export const workByLayer = (profile: ProgramProfile): Map<string, Work> =>
  collect(profile, (_, layer) => pathsOf(layer));

type Row = readonly string[];

/** Lines of a table, the first column left-aligned, others right-aligned. */
function table(header: Row, rows: readonly Row[]): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, i) => Math.max(...all.map((row) => row[i]!.length)));
  const line = (row: Row): string =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  ');
  return all.map((row) => line(row).trimEnd());
}

const ms = (value: number): string => (value === 0 ? '' : value.toFixed(3));
const percent = (value: number): string => (Number.isFinite(value) ? (100 * value).toFixed(1) : '');

/** Rates of a row, with their share of the machine's limits. */
function rates(work: Work, { flops, bytes }: Limits): Row {
  const seconds = timeOf(work) / 1000;
  if (seconds === 0) return ['', '', '', ''];
  const rate = (amount: number, limit: number | null): Row =>
    amount === 0
      ? ['', '']
      : [(amount / seconds / 1e9).toFixed(1), limit === null ? '' : percent(amount / seconds / limit)];
  return [...rate(work.flops, flops), ...rate(work.bytes, bytes)];
}

const RATES = ['GFLOP/s', '% of peak', 'GB/s', '% of memory'];

/** A row: milliseconds per run, and the work done if known. */
interface TimedRow {
  readonly name: string;
  readonly time: number;
  readonly work?: Work;
}

const workRow = ([name, work]: readonly [string, Work]): TimedRow => ({ name, time: timeOf(work), work });

function workTable(first: string, rows: readonly TimedRow[], run: number, limits: Limits): string[] {
  return table(
    [first, 'ms', '% of run', 'forward', 'backward', ...RATES],
    rows.map(({ name, time, work = none() }) => [
      name,
      time.toFixed(3),
      percent(time / run),
      ms(work.forward),
      ms(work.backward),
      ...rates(work, limits),
    ]),
  );
}

const NAMES: Readonly<Record<Part['kind'], string>> = {
  product: 'matrix products',
  attention: 'attention',
  collective: 'collectives',
  loop: 'fused loops',
  packing: 'packing of operands',
  other: 'other',
};

/** Times of one run in milliseconds; those of threads are means. */
function runTimes({ runs, seconds, insideSeconds, waitingSeconds, threads }: ProgramProfile) {
  const each = 1000 / runs;
  return {
    run: seconds * each,
    waiting: (waitingSeconds * each) / threads,
    around: (seconds - insideSeconds) * each,
  };
}

function kindLines(profile: ProgramProfile, limits: Limits): string[] {
  const { run, waiting, around } = runTimes(profile);
  const kinds = [...workByKind(profile)].map(([kind, work]) => workRow([NAMES[kind as Part['kind']], work]));
  const rows = [
    ...kinds.sort((a, b) => b.time - a.time),
    { name: 'waiting for other threads', time: waiting },
    { name: 'calling and returning', time: around },
  ];
  return workTable('work', rows, run, limits);
}

/** Layers by name, nested ones indented; only the `most` slowest. */
function layerLines(profile: ProgramProfile, limits: Limits, most: number): string[] {
  const { run } = runTimes(profile);
  const layers = [...workByLayer(profile)];
  const kept = new Set(
    [...layers]
      .sort(([, a], [, b]) => timeOf(b) - timeOf(a))
      .slice(0, most)
      .map(([layer]) => layer),
  );
  const rows = layers
    .filter(([layer]) => kept.has(layer))
    .sort(([a], [b]) => (a === b ? 0 : comparePaths(a, b)))
    .map(([layer, work]) => workRow([indented(layer, kept), work]));
  const left = layers.length - rows.length;
  return [
    ...workTable('layer', rows, run, limits),
    ...(left > 0 ? [`… and ${left} more in profile.txt`] : []),
  ];
}

/** Orders paths by name, with numbers in numeric order. */
const comparePaths = (a: string, b: string): number => {
  const [left, right] = [a.split('/'), b.split('/')];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = left[i]!.localeCompare(right[i]!, 'en', { numeric: true });
    if (order !== 0) return order;
  }
  return left.length - right.length;
};

/** A path relative to its displayed enclosing layers, indented. */
function indented(layer: string, shown: ReadonlySet<string>): string {
  if (layer === '') return '(no layer)';
  const around = pathsOf(layer)
    .slice(0, -1)
    .filter((path) => shown.has(path));
  const last = around.at(-1);
  return `${'  '.repeat(around.length)}${last === undefined ? layer : layer.slice(last.length + 1)}`;
}

function programLines(profile: ProgramProfile, limits: Limits, most: number): string[] {
  const { name, runner, precision, runs, seconds, threads } = profile;
  const on = threads === 0 ? '' : `, ${threads} thread${threads === 1 ? '' : 's'}`;
  const head = `${name}: ${runs} runs of ${((seconds * 1000) / runs).toFixed(3)} ms, on ${runner}, ${precision}${on}`;
  if (threads === 0) return [head];
  return [head, '', ...kindLines(profile, limits), '', ...layerLines(profile, limits, most)];
}

function phaseLines({ phases }: Profiler, total: number, steps: number): string[] {
  const named = [...phases.values()].reduce((sum, seconds) => sum + seconds, 0);
  const byTime = [...phases].sort(([, a], [, b]) => b - a);
  const rows = [...byTime, ['the rest', Math.max(0, total - named)] as const].map(([name, seconds]) => [
    name,
    seconds.toFixed(3),
    steps > 0 ? ((seconds * 1000) / steps).toFixed(3) : '',
    percent(seconds / total),
  ]);
  return phases.size === 0 ? [] : [...table(['phase', 'seconds', 'ms a step', '%'], rows), ''];
}

function limitLines({ flops, flopsSource, bytes }: Limits): string[] {
  const parts = [
    ...(flops === null ? [] : [`peak ${(flops / 1e9).toFixed(0)} GFLOP/s (${flopsSource})`]),
    ...(bytes === null ? [] : [`memory ${(bytes / 1e9).toFixed(1)} GB/s (read by all threads)`]),
  ];
  return parts.length === 0 ? [] : [parts.join(', '), ''];
}

/** Names of ways to multiply. */
const WAYS: Readonly<Record<KernelTable['rates'][number]['way'], string>> = {
  float32: 'float32',
  bfloat16: 'bfloat16, bf16 instructions',
  rounded: 'bfloat16, float32 instructions',
  kept: 'the same, kept operands',
};

/** The table of kernels: GFLOP/s of each way to multiply, by what bounds the products and by the number of threads. */
function kernelLines({ kernels }: Limits): string[] {
  if (kernels === undefined) return [];
  const { table: measured, products } = kernels;
  const columns = [...new Set(measured.rates.map(boundText))];
  const rows = Object.entries(WAYS).map(([way, name]) => [
    name,
    ...columns.map((column) => {
      const rate = measured.rates.find((rate) => rate.way === way && boundText(rate) === column);
      return rate === undefined ? '' : (rate.flops / 1e9).toFixed(1);
    }),
  ]);
  return [...table(['GFLOP/s of products, bound by', ...columns], rows), `bfloat16 by ${products}`, ''];
}

/** Extent of the profiled part of a job. */
export interface Course {
  /** Training steps; 0 without training. */
  readonly steps: number;
  /** Seconds from start to end. */
  readonly seconds: number;
}

/**
 * The tables of a profile as text.
 *
 * @param most layers shown of each program.
 */
export function profileText(
  profiler: Profiler,
  { steps, seconds }: Course,
  limits: Limits,
  most = Number.POSITIVE_INFINITY,
): string {
  const ran = profiler.programs.filter(({ runs }) => runs > 0);
  const programs = ran.map((profile) => programLines(profile, limits, most).join('\n'));
  return `${[...limitLines(limits), ...kernelLines(limits), ...phaseLines(profiler, seconds, steps)].join('\n')}\n${programs.join('\n\n')}\n`;
}
