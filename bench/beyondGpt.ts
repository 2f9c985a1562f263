/**
 * @file `npm run bench:beyond-gpt`: loss and gradients of convolutions, a perceptron and an LSTM beside PyTorch's, in one
 * run.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { models } from './beyondModels.js';
import { startNeighbours } from './neighbours.js';
import { beyondCandidates, type Candidate, measure } from './programs.js';
import type { Precision } from './results.js';

/** The line of JSON of one process. */
interface Result {
  readonly minMs: number;
  readonly medianMs: number;
  /** CPU time of all threads, of the step that took least. */
  readonly minCpuMs: number;
}

/** The shortest step of a candidate over all rounds. */
interface Best {
  readonly candidate: Candidate;
  ms: number;
}

const { values: flags } = parseArgs({
  options: {
    models: { type: 'string', default: Object.keys(models).join(',') },
    precisions: { type: 'string', default: 'f32,bf16' },
    threads: { type: 'string', default: String(availableParallelism()) },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '2' },
    /** CPU time in place of the clock's: on one thread, it is hardly longer beside other programs. */
    cpu: { type: 'boolean', default: false },
    /** Cores that other processes keep busy; times are medians then. */
    neighbours: { type: 'string', default: '0' },
  },
});

const statistic = flags.cpu ? 'minCpuMs' : flags.neighbours === '0' ? 'minMs' : 'medianMs';

async function bests(model: string, precision: Precision): Promise<Best[]> {
  const limits = { threads: Number(flags.threads), seconds: Number(flags.seconds) };
  const found = beyondCandidates(model, precision, limits).map(
    (candidate): Best => ({ candidate, ms: Infinity }),
  );
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const best of found) {
      const { name, how } = best.candidate;
      try {
        const result = await measure<Result>(best.candidate);
        best.ms = Math.min(best.ms, result[statistic]);
        process.stderr.write(`${model} ${precision}: ${name}, ${how}: ${best.ms.toFixed(1)} ms\n`);
      } catch (error) {
        process.stderr.write(`${model} ${precision}: ${name}, ${how}: ${(error as Error).message}\n`);
      }
    }
  }
  return found;
}

const rows: string[][] = [];
process.stdout.write(`Load before: ${loadavg()[0]!.toFixed(1)}\n`);
startNeighbours(Number(flags.neighbours));
for (const model of flags.models.split(',')) {
  for (const precision of flags.precisions.split(',') as Precision[]) {
    const [native, onnx, ...peers] = await bests(model, precision);
    const peer = peers.sort((a, b) => a.ms - b.ms)[0];
    rows.push([
      model,
      precision,
      native!.ms.toFixed(1),
      onnx!.ms.toFixed(1),
      peer?.ms.toFixed(1) ?? '',
      peer?.candidate.how ?? '',
      peer === undefined ? '' : (peer.ms / native!.ms).toFixed(2),
    ]);
  }
}
const heads = ['model', 'precision', 'native, ms', 'onnx, ms', 'PyTorch, ms', 'its mode', 'PyTorch / native'];
process.stdout.write(`Load after: ${loadavg()[0]!.toFixed(1)}\n\n${markdownTable(rows, heads)}\n`);
process.exit();
