/**
 * @file Memory of a training step: its plan compared with the growth of the process's resident memory; one line of JSON
 * per shape.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { analyze } from '../src/tools/analysis/analyze.js';
import { jobOptions, openProgram } from './gptJob.js';
import type { Precision } from './results.js';
import type { Shape } from './shapes.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Resident bytes outside of JavaScript's heap. */
function resident(): number {
  for (let i = 0; i < 3; i++) collect();
  const { rss, heapTotal } = process.memoryUsage();
  return rss - heapTotal;
}

async function grown(shape: Shape, precision: Precision): Promise<number> {
  const before = resident();
  const program = await openProgram(jobOptions(shape, 'native', undefined, precision));
  let most = 0;
  for (let i = 0; i < 3; i++) {
    await program.run();
    // The system may reclaim pages that were not used for a while.
    most = Math.max(most, resident());
  }
  await program.executable.dispose();
  return most - before;
}

const [text, precision = 'f32'] = process.argv.slice(2) as [string, Precision?];
const shape = JSON.parse(text) as Shape;
// One-time loading and compiling does not belong to the shape.
await grown({ layers: 1, heads: 2, width: 32, context: 16, batch: 4, vocabulary: 65, steps: 1 }, precision);
const options = jobOptions(shape, 'native', undefined, precision);
const said = analyze({ ...options, name: 'memory' } as never).memory;
const bytes = await grown(shape, precision);
process.stdout.write(
  `${JSON.stringify({ shape, precision, said, grown: bytes, ratio: said.total / bytes })}\n`,
);
process.exit();
