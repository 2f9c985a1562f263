/** @file `npm run bench:beyond-gpt`: loss and gradients of models other than GPT beside PyTorch's, in one run. */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { COMPARISON_HEAD, compare, comparisonRows, settingFlags } from './beyondComparison.js';
import { models } from './beyondModels.js';
import { startNeighbours } from './neighbours.js';

const { values: flags } = parseArgs({
  options: { models: { type: 'string', default: Object.keys(models).join(',') }, ...settingFlags },
});

const rows: string[][] = [];
process.stdout.write(`Load before: ${loadavg()[0]!.toFixed(1)}\n`);
startNeighbours(Number(flags.neighbours));
for (const model of flags.models.split(','))
  rows.push(...comparisonRows(model, await compare(model, models[model]!, flags)));
process.stdout.write(`Load after: ${loadavg()[0]!.toFixed(1)}\n\n${markdownTable(rows, COMPARISON_HEAD)}\n`);
process.exit();
