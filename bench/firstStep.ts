/** @file `npm run bench:first-step`: time to the first training step, with a cached and a new program. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openToolchain } from '../src/compiler/native/toolchain/index.js';
import { readMeasured } from './flags.js';
import type { FirstStepResult } from './luthierFirstStep.js';
import { luthierFirstStep, measure } from './programs.js';
import { median, type Precision } from './results.js';

/** Medians over processes that start with the same cache. */
async function medians(runs: number, once: () => Promise<FirstStepResult>): Promise<FirstStepResult> {
  const results: FirstStepResult[] = [];
  for (let run = 0; run < runs; run++) results.push(await once());
  const of = (key: keyof FirstStepResult): number => median(results.map((result) => result[key]));
  return {
    firstMs: of('firstMs'),
    openMs: of('openMs'),
    stepMs: of('stepMs'),
    cpuMs: of('cpuMs'),
    loss: of('loss'),
  };
}

/** Measures a cached program, and one that must be compiled; `kernels` is a cache with only the runtime. */
async function measureShape(shape: string, precision: Precision, kernels: string, runs: number) {
  const inCopy = async <T>(act: (cache: string) => Promise<T>): Promise<T> => {
    const cache = mkdtempSync(join(tmpdir(), 'luthier-first-'));
    try {
      cpSync(kernels, cache, { recursive: true });
      return await act(cache);
    } finally {
      rmSync(cache, { recursive: true, force: true });
    }
  };
  const once = (cache: string) => measure<FirstStepResult>(luthierFirstStep(shape, precision, cache));
  const fresh = await medians(runs, () => inCopy(once));
  const cached = await inCopy(async (cache) => {
    await once(cache);
    return medians(runs, () => once(cache));
  });
  return { cached, fresh };
}

function row(shape: string, what: string, { firstMs, openMs, stepMs, cpuMs }: FirstStepResult): string {
  const cells = [firstMs, openMs, stepMs, firstMs - stepMs, cpuMs].map((ms) => ms.toFixed(0).padStart(10));
  return `${shape.padEnd(6)}  ${what.padEnd(6)}${cells.join('')}`;
}

const { values: flags } = parseArgs({
  options: {
    shapes: { type: 'string', default: 'nano,baby,small' },
    precision: { type: 'string', default: 'bf16' },
    runs: { type: 'string', default: '5' },
  },
});
const runs = Number(flags.runs);
if (!(Number.isInteger(runs) && runs > 0))
  throw new Error(`--runs: expected a positive integer; got '${flags.runs}'`);
const kernels = mkdtempSync(join(tmpdir(), 'luthier-kernels-'));
try {
  const toolchain = await openToolchain({ ...process.env, XDG_CACHE_HOME: kernels });
  if ('reason' in toolchain) throw new Error(toolchain.reason);
  const heads = ['first', 'of it open', 'later', 'once', 'CPU'].map((head) => head.padStart(10));
  process.stdout.write(
    `Milliseconds, ${flags.precision}: to the end of the first step; to an open program; a later step; what is\n` +
      `done once (first - later); on all cores to the end of the first step, compiler left out. Medians of ${runs} processes.\n\n` +
      `shape   program${heads.join('').slice(1)}\n`,
  );
  for (const shape of flags.shapes.split(',')) {
    const { precision } = readMeasured({ shape, engine: 'native', precision: flags.precision });
    const { cached, fresh } = await measureShape(shape, precision, kernels, runs);
    process.stdout.write(`${row(shape, 'cached', cached)}\n${row(shape, 'new', fresh)}\n`);
  }
} finally {
  rmSync(kernels, { recursive: true, force: true });
}
process.exit();
