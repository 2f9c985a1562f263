/**
 * @file `npm run bench:random-architectures`: loss and gradients of architectures drawn from a seed beside PyTorch's, and the
 * distribution of the ratios.
 */
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
import {
  COMPARISON_HEAD,
  type Comparison,
  compare,
  comparisonRows,
  settingFlags,
} from './beyondComparison.js';
import { drawArchitecture, textOf } from './drawnArchitectures.js';
import { startNeighbours } from './neighbours.js';
import { precisionNames } from './programs.js';
import { groupBy } from './results.js';

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
    count: { type: 'string', default: '10' },
    /** The first of them: a part of a run. */
    first: { type: 'string', default: '0' },
    ...settingFlags,
  },
});

/** The value below which this part of the sorted values lies, interpolated. */
function quantile(sorted: readonly number[], part: number): number {
  const at = part * (sorted.length - 1);
  const below = sorted[Math.floor(at)]!;
  return below + (at % 1) * (sorted[Math.ceil(at)]! - below);
}

const rows: string[][] = [];
const comparisons: Comparison[] = [];
const first = Number(flags.first);
startNeighbours(Number(flags.neighbours));
for (let i = first; i < first + Number(flags.count); i++) {
  const architecture = drawArchitecture(Number(flags.seed), i);
  process.stdout.write(`${i}. ${textOf(architecture)}\n`);
  const found = await compare(String(i), architecture, flags);
  rows.push(...comparisonRows(String(i), found));
  comparisons.push(...found);
}
const distribution = [...groupBy(comparisons, ({ precision }) => precisionNames[precision])].map(
  ([name, group]) => {
    const ratios = group.map(({ own, peer }) => peer / own).sort((a, b) => a - b);
    return [name, ...[0, 0.25, 0.5, 0.75, 1].map((part) => quantile(ratios, part).toFixed(2))];
  },
);
process.stdout.write(
  [
    `\nSeed ${flags.seed}.`,
    markdownTable(rows, COMPARISON_HEAD),
    'PyTorch / Luthier:',
    markdownTable(distribution, ['precision', 'least', 'quartile', 'median', 'quartile', 'most']),
    '',
  ].join('\n\n'),
);
process.exit();
