/** @file `npm run bench:quantised`: greedy cached decoding by weights in float32, bfloat16, 8 and 4 bits, one type a process. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { flatLayout, heldViews, memoryBandwidth, prngKey } from '../src/compiler/index.js';
import { GREEDY, GreedyDecoder, type Int32Tensor, Stepper } from '../src/decoding/index.js';
import { build, type Config } from '../src/hparams/index.js';
import { listVariables, Quantization, type TransformerLm, WeightQuantization } from '../src/layers/index.js';
import { gpt2Lm, LanguageModel, llamaLm } from '../src/models/index.js';
import { compileOptions } from '../src/runs/options.js';
import { median } from './results.js';

const CONTEXT = 256;

/** Networks of these sizes; the Llama is Qwen2.5-0.5B's. */
const networks: Readonly<Record<string, () => Config<TransformerLm>>> = {
  gpt2: () =>
    gpt2Lm({ vocabSize: 50257, modelDims: 768, numLayers: 12, numHeads: 12, maxSeqLength: CONTEXT }),
  llama: () =>
    llamaLm({
      ...{ vocabSize: 151936, modelDims: 896, numLayers: 24, numHeads: 14, numKvHeads: 2 },
      ...{ hiddenDims: 4864, tiedEmbeddings: true },
    }),
};

/** Bits and groups by type; null for weights that are no codes. */
const types: Readonly<Record<string, readonly [8 | 4, number] | null>> = {
  float32: null,
  bfloat16: null,
  int8: [8, 0],
  int4: [4, 32],
};

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'gpt2' },
    types: { type: 'string', default: Object.keys(types).join(',') },
    batch: { type: 'string', default: '1' },
    tokens: { type: 'string', default: '24' },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});
const [rows, tokens, numThreads] = [Number(flags.batch), Number(flags.tokens), Number(flags.threads)];

/** Median milliseconds of a step, and the bytes of all variables but a table that is only looked up. */
async function measured(type: string): Promise<{ ms: number; bytes: number }> {
  const config = LanguageModel.config({
    fpropDtype: type === 'bfloat16' ? 'bfloat16' : 'float32',
    lmTpl: networks[flags.shape]!(),
  });
  const codes = types[type]!;
  if (codes !== null) {
    const [precision, blockSize] = codes;
    config.quantization = Quantization.config({
      mode: 'inference',
      weightParams: WeightQuantization.config({ precision, blockSize }),
    });
  }
  const model = build(config);
  const variables = listVariables(model);
  const layout = flatLayout(
    variables.map(({ path, shape, storage }) => ({
      ...{ name: path, shape, group: 'all' },
      ...(storage && { storage }),
    })),
  );
  const views = heldViews(layout, new Float32Array(layout.size));
  for (const { path, storage } of variables) {
    const view = views[path]!;
    // 0x3a80 is 2^-10 as bfloat16.
    if (storage === 'bfloat16') view.fill(0x3a80);
    else for (let i = 0; i < view.length; i++) view[i] = storage ? (i * 37) % 251 : 1e-3 * ((i % 7) - 3);
  }
  const stepper = await Stepper.create({
    ...{ model, params: { layout, views }, rows, seqlen: CONTEXT, rule: GREEDY },
    compileOptions: (name) => compileOptions({ engine: 'native', numThreads }, name),
  });
  const decoder = build(GreedyDecoder.config({ seqlen: tokens + 1, eosId: [] }));
  const ones: Int32Tensor = { shape: [rows], dtype: 'int32', data: new Int32Array(rows).fill(1) };
  const prompts = { prefixIds: { ...ones, shape: [rows, 1] }, prefixLengths: ones };
  const { extendStep, extendDrawing: extendGreedily } = stepper;
  const decode = async (): Promise<number> => {
    const before = performance.now();
    await decoder.decode({ ...prompts, extendStep, extendGreedily, key: prngKey(0) });
    return (performance.now() - before) / tokens;
  };
  await decode();
  const milliseconds: number[] = [];
  for (let i = 0; i < 5; i++) milliseconds.push(await decode());
  const held = layout.entries.reduce((sum, { name }) => {
    const isRead = !/(position_emb|embedding_lookup).*emb_var$/.test(name);
    return sum + (isRead ? views[name]!.byteLength : 0);
  }, 0);
  return { ms: median(milliseconds), bytes: type === 'bfloat16' ? held / 2 : held };
}

for (const type of flags.types.split(',')) {
  const before = await memoryBandwidth(numThreads);
  const { ms, bytes } = await measured(type);
  const bandwidth = Math.max(before ?? 0, (await memoryBandwidth(numThreads)) ?? 0);
  const rate = bytes / ms / 1e6;
  const share =
    bandwidth === 0
      ? ''
      : `, ${((100e9 * rate) / bandwidth).toFixed(0)} % of ${(bandwidth / 1e9).toFixed(1)}`;
  process.stdout.write(
    `${flags.shape}, batch ${rows}, ${type}: ${ms.toFixed(2)} ms a step, ${((1000 * rows) / ms).toFixed(0)} tokens/s, ` +
      `weights ${(bytes / 1e6).toFixed(0)} MB at ${rate.toFixed(1)} GB/s${share}\n`,
  );
}
process.exit();
