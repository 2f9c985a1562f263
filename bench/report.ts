/** @file Report of bench:train: a table for each shape, ratios and peaks. */
import { markdownTable } from '../src/review/text/reportFormat.js';
import { fastest, groupBy, type PeakResult, type Precision, type Row } from './results.js';
import { modelFlopsPerToken, type Shape } from './shapes.js';

/** The machine's peaks by precision, as far as measured. */
export type Peaks = Readonly<Partial<Record<Precision, PeakResult>>>;

const precisionOf = (row: Row): Precision => (row.name.includes('bfloat16') ? 'bf16' : 'f32');

/** Suffix of single-threaded rows, which do not compete. */
export const ALONE = ', 1 thread';

function milliseconds(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}

function cells(shape: Shape, peaks: Peaks, row: Row): string[] {
  const tokensPerSec = (shape.batch * shape.context * 1000) / row.medianMs;
  const gflops = (tokensPerSec * modelFlopsPerToken(shape)) / 1e9;
  const peak = peaks[precisionOf(row)];
  return [
    row.name,
    milliseconds(row.medianMs),
    milliseconds(row.minMs),
    milliseconds(row.minCpuMs),
    tokensPerSec.toFixed(0),
    gflops.toFixed(0),
    peak ? `${((100 * gflops) / peak.gflops).toFixed(1)} %` : '–',
    row.peakRssMb.toFixed(0),
    row.loadedRssMb.toFixed(0),
    row.how,
  ];
}

/** The fastest row of each name, in order of first appearance. */
export function bestRows(rows: readonly Row[]): Row[] {
  return [...groupBy(rows, (row) => row.name).values()].map((group) => fastest(group)!);
}

/** 'Luthier float32 is 1.90 times as fast on 2 threads as on one.' */
function scaling(best: readonly Row[]): string[] {
  return best.flatMap((row) => {
    const alone = best.find(({ name }) => name === row.name + ALONE);
    if (alone === undefined) return [];
    return `${row.name} is ${(alone.medianMs / row.medianMs).toFixed(2)} times as fast on ${row.how} as on one.`;
  });
}

/** 'Luthier float32 is 1.40 times as fast as PyTorch float32 and takes 1.10 times its peak memory.' */
function ratios(best: readonly Row[]): string[] {
  const own = best.filter(({ name }) => name.startsWith('Luthier') && !name.endsWith(ALONE));
  const peers = best.filter((row) => !row.name.startsWith('Luthier'));
  return own.flatMap((row) =>
    peers.map((peer) => {
      const speed = (peer.medianMs / row.medianMs).toFixed(2);
      const memory = (row.peakRssMb / peer.peakRssMb).toFixed(2);
      return `${row.name} is ${speed} times as fast as ${peer.name} and takes ${memory} times its peak memory.`;
    }),
  );
}

/** The part of the report that is about one shape. */
export function shapeReport(name: string, shape: Shape, rows: readonly Row[], peaks: Peaks): string {
  const { layers, heads, width, context, batch, vocabulary } = shape;
  const best = bestRows(rows);
  const header = [
    '',
    'ms/step',
    'shortest',
    'CPU ms',
    'tokens/s',
    'GFLOP/s',
    'MFU',
    'peak MB',
    'of it libraries',
    'how',
  ];
  const tried = rows
    .filter((row) => !row.name.startsWith('Luthier'))
    .map((row) => `- ${row.name}, ${row.how}: ${milliseconds(row.medianMs)} ms (${rounds(row.rounds)})`);
  return [
    `### ${name}: ${layers} layers, ${heads} heads, width ${width}, context ${context}, batch ${batch}, vocabulary ${vocabulary}`,
    markdownTable(
      best.map((row) => cells(shape, peaks, row)),
      header,
    ),
    ...(best.length > 1 ? [[...ratios(best), ...scaling(best)].join('\n')] : []),
    ...(tried.length > 0 ? [`All that was tried of the peers:\n${tried.join('\n')}`] : []),
  ].join('\n\n');
}

/** '1 round', '3 rounds'. */
export function rounds(count: number): string {
  return count === 1 ? '1 round' : `${count} rounds`;
}

/** How the peaks were found. */
export function peakReport(peaks: Peaks): string {
  const words = { f32: 'float32', bf16: 'bfloat16' };
  const lines = Object.entries(peaks).map(
    ([precision, { gflops, how }]) =>
      `- ${words[precision as Precision]}: ${gflops.toFixed(0)} GFLOP/s, ${how}`,
  );
  if (lines.length === 0) return 'No peak was found, so there is no MFU.';
  return `MFU is measured against the most that a matrix product reached in this run:\n${lines.join('\n')}`;
}
