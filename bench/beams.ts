/** @file Time of a beam search, a token of all beams: `npx tsx bench/beams.ts`; its peer is bench/peers/transformers_beams.py. */
import { parseArgs } from 'node:util';
import { prngKey } from '../src/compiler/index.js';
import { BeamSearchDecoder, type Int32Tensor, Stepper } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { compileOptions } from '../src/runs/options.js';
import { readMeasured } from './flags.js';
import { gptModel, initialParams } from './gptJob.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'small' },
    batch: { type: 'string', default: '1' },
    beams: { type: 'string', default: '4' },
    engine: { type: 'string', default: 'native' },
    precision: { type: 'string', default: 'f32' },
    threads: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
  },
});
const { shape, engine, precision } = readMeasured(flags);
const [batch, beamSize, numThreads] = [flags.batch, flags.beams, flags.threads].map(Number) as [
  number,
  number,
  number,
];
const seqlen = shape.context;
const decoder = build(
  BeamSearchDecoder.config({ seqlen, beamSize, maxDecodeSteps: seqlen - 1, eosId: [] }),
) as BeamSearchDecoder;
const model = build(gptModel(shape, precision));
const stepper = await Stepper.create({
  ...{ model, params: initialParams(model), seqlen, rule: null, candidates: decoder.candidates },
  rows: decoder.numRows(batch),
  compileOptions: (name) => compileOptions({ engine, numThreads }, name),
});
const ones: Int32Tensor = { shape: [batch], dtype: 'int32', data: new Int32Array(batch).fill(1) };
const prompts = { prefixIds: { ...ones, shape: [batch, 1] }, prefixLengths: ones };

const milliseconds: number[] = [];
for (let round = 0; round <= Number(flags.rounds); round++) {
  const before = performance.now();
  await decoder.decode({ ...prompts, ...stepper.calls, key: prngKey(0) });
  // The first round compiles.
  if (round > 0) milliseconds.push((performance.now() - before) / (seqlen - 1));
}
process.stdout.write(
  `${flags.shape}, ${batch} prompts, ${beamSize} beams, ${precision}: ${median(milliseconds).toFixed(3)} ms a token\n`,
);
process.exit();
