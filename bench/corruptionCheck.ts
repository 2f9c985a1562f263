/** @file Cost of the check for silent corruption: steps that are taken twice beside plain ones, in turns. */
import { parseArgs } from 'node:util';
import { readMeasured } from './flags.js';
import { jobOptions, openProgram } from './gptJob.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'small' },
    engine: { type: 'string', default: 'auto' },
    precision: { type: 'string', default: 'f32' },
    steps: { type: 'string', default: '12' },
  },
});
const { shape, engine, precision } = readMeasured(flags);

/** A program of which every step is taken twice, or none is. */
async function programOf(corruptionCheckIntervalSteps: number | null) {
  const options = jobOptions(shape, engine, undefined, precision);
  options.task.train.corruptionCheckIntervalSteps = corruptionCheckIntervalSteps;
  const program = await openProgram(options);
  await program.run();
  return program;
}

const programs = { plain: await programOf(null), checked: await programOf(1) };
const milliseconds: Record<keyof typeof programs, number[]> = { plain: [], checked: [] };
for (let step = 0; step < Number(flags.steps); step++) {
  for (const [name, program] of Object.entries(programs)) {
    const began = performance.now();
    await program.run();
    milliseconds[name as keyof typeof programs].push(performance.now() - began);
  }
}
const { params, slots } = programs.plain.state;
const bytes = [params, ...Object.values(slots)].reduce((sum, { byteLength }) => sum + byteLength, 0);
const [plain, checked] = [median(milliseconds.plain), median(milliseconds.checked)];
console.log(
  `${flags.shape}, ${precision}, state of ${(bytes / 2 ** 20).toFixed(0)} MiB: a step ${plain.toFixed(1)} ms, taken twice ` +
    `${checked.toFixed(1)} ms, ${(checked / plain).toFixed(2)} times; every 100 steps ${((checked - plain) / plain).toFixed(2)} %`,
);
process.exit();
