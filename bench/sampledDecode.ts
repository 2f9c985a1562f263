/** @file CPU time of drawing tokens within the decoding step, beside the host's from logits: `npx tsx bench/sampledDecode.ts`. */
import { parseArgs } from 'node:util';
import { prngKey } from '../src/compiler/index.js';
import {
  type BaseDecoder,
  GreedyDecoder,
  type Int32Tensor,
  SampleDecoder,
  Stepper,
} from '../src/decoding/index.js';
import { build, type Config } from '../src/hparams/index.js';
import { compileOptions } from '../src/runs/options.js';
import { readMeasured } from './flags.js';
import { gptModel, initialParams } from './gptJob.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'baby' },
    batch: { type: 'string', default: '1' },
    engine: { type: 'string', default: 'native' },
    precision: { type: 'string', default: 'f32' },
    threads: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '5' },
  },
});
const { shape, engine, precision } = readMeasured(flags);
const [batch, numThreads, rounds] = [flags.batch, flags.threads, flags.rounds].map(Number) as [
  number,
  number,
  number,
];
const given = { seqlen: shape.context, eosId: [] };
const decoders: Record<string, Config<BaseDecoder>> = {
  likeliest: GreedyDecoder.config(given),
  'of the 40 likeliest': SampleDecoder.config({ ...given, k: 40 }),
  'of all': SampleDecoder.config({ ...given, k: 0 }),
  'of a nucleus of 40': SampleDecoder.config({ ...given, k: 40, p: 0.9 }),
  'of a nucleus of all': SampleDecoder.config({ ...given, k: 0, p: 0.9 }),
};

const model = build(gptModel(shape, precision));
const params = initialParams(model);
const ones: Int32Tensor = { shape: [batch], dtype: 'int32', data: new Int32Array(batch).fill(1) };
const prompts = { prefixIds: { ...ones, shape: [batch, 1] }, prefixLengths: ones };

/** Decodes whole sequences. @returns milliseconds of CPU time per token of all rows */
async function decoding(config: Config<BaseDecoder>, inProgram: boolean): Promise<() => Promise<number>> {
  const decoder = build(config) as BaseDecoder;
  const stepper = await Stepper.create({
    model,
    params,
    rows: batch,
    seqlen: shape.context,
    rule: inProgram ? decoder.rule : null,
    compileOptions: (name) => compileOptions({ engine, numThreads }, name),
  });
  const { extendStep, extendDrawing } = stepper;
  const drawing = inProgram ? { extendGreedily: extendDrawing, extendSampling: extendDrawing } : {};
  return async () => {
    const before = process.cpuUsage();
    await decoder.decode({ ...prompts, extendStep, ...drawing, key: prngKey(0) });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / (shape.context - 1);
  };
}

const ways = [];
for (const [name, config] of Object.entries(decoders)) {
  for (const inProgram of [true, false]) {
    ways.push({ name, inProgram, run: await decoding(config, inProgram), least: Number.POSITIVE_INFINITY });
  }
}
// In turn, so that other work on the machine meets all alike; the first round is not counted.
for (let round = 0; round <= rounds; round++) {
  for (const way of ways) {
    const milliseconds = await way.run();
    if (round > 0) way.least = Math.min(way.least, milliseconds);
  }
}
for (const { name, inProgram, least } of ways) {
  process.stdout.write(
    `${flags.shape}, batch ${batch}, ${name}, ${inProgram ? 'in the program' : 'from logits'}: ${least.toFixed(3)} ms\n`,
  );
}
process.exit();
