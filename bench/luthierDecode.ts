/** @file Timing of Luthier's greedy decoding of a GPT shape, one measurement per process; prints one line of JSON. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { prngKey } from '../src/compiler/index.js';
import { GREEDY, GreedyDecoder, type Int32Tensor, Stepper } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { compileOptions } from '../src/runs/options.js';
import { readMeasured } from './flags.js';
import { gptModel, initialParams } from './gptJob.js';
import { type DecodeResult, median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'baby' },
    batch: { type: 'string', default: '1' },
    engine: { type: 'string', default: 'auto' },
    precision: { type: 'string', default: 'f32' },
    threads: { type: 'string' },
    repetitions: { type: 'string', default: '5' },
  },
});
const { shape, engine, precision } = readMeasured(flags);
const batch = Number(flags.batch);
const numThreads = flags.threads === undefined ? undefined : Number(flags.threads);

const model = build(gptModel(shape, precision));
const started = performance.now();
const stepper = await Stepper.create({
  model,
  params: initialParams(model),
  rows: batch,
  seqlen: shape.context,
  rule: GREEDY,
  compileOptions: (name) => compileOptions({ engine, numThreads }, name),
});
const decoder = build(GreedyDecoder.config({ seqlen: shape.context, eosId: [] }));
const ones: Int32Tensor = { shape: [batch], dtype: 'int32', data: new Int32Array(batch).fill(1) };
const prompts = { prefixIds: { ...ones, shape: [batch, 1] }, prefixLengths: ones };
const { extendStep, extendDrawing: extendGreedily } = stepper;

/** Milliseconds per token of all rows. */
async function decode(): Promise<number> {
  const before = performance.now();
  await decoder.decode({ ...prompts, extendStep, extendGreedily, key: prngKey(0) });
  return (performance.now() - before) / (shape.context - 1);
}

await decode();
const firstSeconds = (performance.now() - started) / 1000;
const milliseconds: number[] = [];
for (let i = 0; i < Number(flags.repetitions); i++) milliseconds.push(await decode());
const medianMs = median(milliseconds);
const result: DecodeResult = {
  shape: flags.shape,
  batch,
  precision,
  mode: engine,
  threads: numThreads ?? availableParallelism(),
  medianMs,
  minMs: Math.min(...milliseconds),
  firstSeconds,
  tokensPerSec: (batch * 1000) / medianMs,
  peakRssMb: process.resourceUsage().maxRSS / 1024,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit();
