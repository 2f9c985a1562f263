/** @file `npm run bench:quantised`: greedy cached decoding and prompts by weights in float32, bfloat16, 8 and 4 bits, beside llama.cpp. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { flatLayout, heldViews, memoryBandwidth, prngKey } from '../src/compiler/index.js';
import { GREEDY, GreedyDecoder, type Int32Tensor, Stepper } from '../src/decoding/index.js';
import { build, type Config } from '../src/hparams/index.js';
import {
  ActQuantization,
  listVariables,
  Quantization,
  type TransformerLm,
  WeightQuantization,
} from '../src/layers/index.js';
import { gpt2Lm, LanguageModel, llamaLm } from '../src/models/index.js';
import { compileOptions } from '../src/runs/options.js';
import { median } from './results.js';

const CONTEXT = 512;

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

/** Bits and groups by type, if weights are codes, whether rows are rounded to 8 bits, and llama.cpp's name of the type. */
const types: Readonly<
  Record<string, { codes?: readonly [8 | 4, number]; roundsRows?: boolean; peer: string }>
> = {
  float32: { peer: 'f32' },
  bfloat16: { peer: 'bf16' },
  int8: { codes: [8, 0], peer: 'q8_0' },
  int4: { codes: [4, 32], peer: 'q4_0' },
  // By activations of 8 bits.
  int8a8: { codes: [8, 0], roundsRows: true, peer: 'q8_0' },
  int4a8: { codes: [4, 32], roundsRows: true, peer: 'q4_0' },
};

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'gpt2' },
    types: { type: 'string', default: Object.keys(types).join(',') },
    batch: { type: 'string', default: '1' },
    tokens: { type: 'string', default: '24' },
    // Tokens of a prompt, taken in the place of decoding.
    prompt: { type: 'string', default: '0' },
    rounds: { type: 'string', default: '1' },
    repetitions: { type: 'string', default: '5' },
    // Folder that keeps llama.cpp's models; without it, it does not run.
    peer: { type: 'string' },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});
const [rows, tokens, numThreads] = [Number(flags.batch), Number(flags.tokens), Number(flags.threads)];
const prompt = Number(flags.prompt);

/** Milliseconds, and those of all threads' CPU time, which other work on the machine lengthens less. */
interface Times {
  readonly ms: number;
  readonly cpu: number;
}

/** Median times of a step or of the prompt, and the bytes of all variables but a table that is only looked up. */
async function measured(type: string): Promise<Times & { fastest: number; bytes: number }> {
  const config = LanguageModel.config({
    fpropDtype: type === 'bfloat16' ? 'bfloat16' : 'float32',
    lmTpl: networks[flags.shape]!(),
  });
  const { codes, roundsRows } = types[type]!;
  if (codes) {
    const [precision, blockSize] = codes;
    config.quantization = Quantization.config({
      mode: 'inference',
      weightParams: WeightQuantization.config({ precision, blockSize }),
      ...(roundsRows && { actParams: ActQuantization.config() }),
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
  const promptIds = new Int32Array(rows * prompt).fill(1);
  const decode = async (): Promise<Times> => {
    const [before, cpuBefore] = [performance.now(), process.cpuUsage()];
    if (prompt > 0) await stepper.prefill(promptIds, prompt);
    else await decoder.decode({ ...prompts, extendStep, extendGreedily, key: prngKey(0) });
    const { user, system } = process.cpuUsage(cpuBefore);
    const count = prompt > 0 ? 1 : tokens;
    return { ms: (performance.now() - before) / count, cpu: (user + system) / 1000 / count };
  };
  await decode();
  const times: Times[] = [];
  for (let i = 0; i < Number(flags.repetitions); i++) times.push(await decode());
  await stepper.dispose();
  const held = layout.entries.reduce((sum, { name }) => {
    const isRead = !/(position_emb|embedding_lookup).*emb_var$/.test(name);
    return sum + (isRead ? views[name]!.byteLength : 0);
  }, 0);
  const [ms, cpu] = [median(times.map((each) => each.ms)), median(times.map((each) => each.cpu))];
  const fastest = Math.min(...times.map((each) => each.ms));
  return { ms, fastest, cpu, bytes: type === 'bfloat16' ? held / 2 : held };
}

/** Shows llama.cpp's milliseconds. */
function showPeer(type: string, folder: string): void {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const python = join(process.env.LUTHIER_PEERS ?? join(cache, 'luthier', 'peers'), 'venv', 'bin', 'python');
  const script = join(import.meta.dirname, 'peers', 'llamacpp_decode.py');
  const counts = [tokens, rows, prompt, numThreads, flags.repetitions].map(String);
  spawnSync(python, [script, flags.shape, types[type]!.peer, ...counts, folder], { stdio: 'inherit' });
}

for (let round = 0; round < Number(flags.rounds); round++) {
  for (const type of flags.types.split(',')) {
    const before = await memoryBandwidth(numThreads);
    const { ms, fastest, cpu, bytes } = await measured(type);
    const bandwidth = Math.max(before ?? 0, (await memoryBandwidth(numThreads)) ?? 0);
    // Other work on the machine only slows repetitions down.
    const rate = bytes / fastest / 1e6;
    const share =
      bandwidth === 0
        ? ''
        : `, ${((100e9 * rate) / bandwidth).toFixed(0)} % of ${(bandwidth / 1e9).toFixed(1)}`;
    const what = prompt > 0 ? `a prompt of ${prompt}` : `batch ${rows}`;
    const perSecond = ((1000 * rows) / ms) * Math.max(1, prompt);
    process.stdout.write(
      `${flags.shape}, ${what}, ${type}: ${ms.toFixed(2)} ms, fastest ${fastest.toFixed(2)}, ${cpu.toFixed(2)} of CPU, ${perSecond.toFixed(0)} tokens/s, ` +
        `weights ${(bytes / 1e6).toFixed(0)} MB at ${rate.toFixed(1)} GB/s${share}\n`,
    );
    if (flags.peer !== undefined) showPeer(type, flags.peer);
  }
}
process.exit();
