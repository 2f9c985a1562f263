/** @file Peak FLOP/s of this machine, as MFU uses it; prints one line of JSON. */
import { findPeak } from '../src/programs/mfu.js';
import { jobOptions } from './gptJob.js';
import type { PeakResult } from './results.js';
import { shapes } from './shapes.js';

const precision = process.argv[2] === 'bf16' ? 'bfloat16' : 'float32';
const { flops, source } = await findPeak(jobOptions(shapes.nano!), precision);
const result: PeakResult = { gflops: flops / 1e9, how: `Luthier's ${source}` };
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit();
