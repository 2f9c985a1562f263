/** @file `npm run bench:lora`: time and memory of a step of LoRA beside PEFT's, one process each. */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { loraCandidates, measure, precisionNames } from './programs.js';
import type { LoraResult, Precision } from './results.js';

const { values: flags } = parseArgs({
  options: {
    precisions: { type: 'string', default: 'f32,bf16' },
    steps: { type: 'string', default: '5' },
    threads: { type: 'string', default: String(availableParallelism()) },
    /** Only these settings, as the table names them: 'native;eager, glibc'. */
    modes: { type: 'string', default: '' },
  },
});
const rows: string[][] = [];
process.stdout.write(`Load before: ${loadavg()[0]!.toFixed(1)}\n`);
for (const precision of flags.precisions.split(',') as Precision[]) {
  for (const candidate of loraCandidates(precision, Number(flags.steps), Number(flags.threads))) {
    const { name, how } = candidate;
    if (flags.modes && !flags.modes.split(';').includes(how)) continue;
    const found = await measure<LoraResult>(candidate);
    const figures = [found.medianMs, found.minMs, found.minCpuMs, found.peakRssMb].map((figure) =>
      figure.toFixed(0),
    );
    const millions = [found.parameters, found.trained].map((count) => (count / 1e6).toFixed(1));
    rows.push([precisionNames[precision], name, how, ...millions, ...figures]);
  }
}
const head = [
  'precision',
  'library',
  'how',
  'parameters, M',
  'trained, M',
  'median ms',
  'shortest',
  'CPU ms',
  'peak MiB',
];
process.stdout.write(`Load after: ${loadavg()[0]!.toFixed(1)}\n\n${markdownTable(rows, head)}\n`);
process.exit();
