/**
 * @file `npm run bench:products`: products with a long sum over few rows and columns, as gradients of weights are, beside
 * PyTorch's. --neighbours=N keeps so many cores busy; the times are medians then.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { startNeighbours } from './neighbours.js';
import { measure, productCandidates } from './programs.js';
import type { Precision } from './results.js';

/** Milliseconds of each shape. */
type Result = Readonly<Record<string, { readonly min: number; readonly median: number }>>;

const { values: flags } = parseArgs({
  options: {
    shapes: {
      type: 'string',
      default: '24x65536x24,24x65536x3,27x65536x24,64x8192x10,64x8192x64,576x32768x64',
    },
    precisions: { type: 'string', default: 'f32,bf16' },
    threads: { type: 'string', default: `1,${availableParallelism()}` },
    seconds: { type: 'string', default: '0.5' },
    rounds: { type: 'string', default: '2' },
    neighbours: { type: 'string', default: '0' },
  },
});
const shapes = flags.shapes.split(',');
const statistic = flags.neighbours === '0' ? 'min' : 'median';

process.stdout.write(`Load before: ${loadavg()[0]!.toFixed(1)}\n`);
startNeighbours(Number(flags.neighbours));
const rows: string[][] = [];
for (const precision of flags.precisions.split(',') as Precision[]) {
  /** The shortest time of each shape, by threads and library. */
  const columns: Record<string, number>[] = [];
  for (const threads of flags.threads.split(',').map(Number)) {
    const limits = { shapes, threads, seconds: Number(flags.seconds) };
    const found = productCandidates(precision, limits).map((candidate) => ({
      candidate,
      ms: {} as Record<string, number>,
    }));
    for (let round = 0; round < Number(flags.rounds); round++) {
      for (const { candidate, ms } of found) {
        const result = await measure<Result>(candidate);
        for (const shape of shapes) ms[shape] = Math.min(ms[shape] ?? Infinity, result[shape]![statistic]);
      }
    }
    columns.push(found[0]!.ms, found[1]?.ms ?? {});
  }
  for (const shape of shapes)
    rows.push([shape, precision, ...columns.map((column) => column[shape]?.toFixed(3) ?? '')]);
}
const heads = flags.threads.split(',').flatMap((threads) => [`Luthier, ${threads}`, `PyTorch, ${threads}`]);
process.stdout.write(
  `${statistic} ms by threads\n\n${markdownTable(rows, ['m x k x n', 'precision', ...heads])}\n`,
);
process.exit();
