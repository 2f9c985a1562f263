/** @file Runs random programs, others each time, on every engine and on the oracle: `npm run fuzz:compiler`. */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    programs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    engine: { type: 'string', default: '' },
  },
});
if (!['', 'onnx', 'native'].includes(values.engine)) {
  console.error(`--engine: expected onnx or native, got '${values.engine}'.`);
  process.exit(2);
}
for (const name of ['programs', 'seed'] as const) {
  if (!/^\d+$/.test(values[name])) {
    console.error(`--${name}: expected a whole number, got '${values[name]}'.`);
    process.exit(2);
  }
}
console.log(`${values.programs} random programs; --seed=${values.seed} runs them again.`);
const { status } = spawnSync(
  'npx',
  [
    'vitest',
    'run',
    '--config',
    'vitest.long.config.ts',
    'test/faults/programs.long.ts',
    '-t',
    `${values.engine} agrees`,
  ],
  { stdio: 'inherit', env: { ...process.env, PROGRAMS: values.programs, SEED: values.seed } },
);
process.exitCode = status ?? 1;
