/**
 * @file Caches of 8 bits beside float32: a step at the end of a long context; and with `--run` and `--text`, how far the next-token
 * distributions of a run on a text are from those with its own caches.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Stepper } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { FullCache } from '../src/layers/index.js';
import { compileOptions } from '../src/runs/options.js';
import { loadRun } from '../src/trained/index.js';
import { gptModel, initialParams } from './gptJob.js';
import { shapes } from './shapes.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'small' },
    contexts: { type: 'string', default: '512,2048,8192' },
    batches: { type: 'string', default: '1,8' },
    threads: { type: 'string', default: '2' },
    repetitions: { type: 'string', default: '40' },
    run: { type: 'string' },
    text: { type: 'string' },
  },
});
const engine = (name: string) =>
  compileOptions({ engine: 'native', numThreads: Number(flags.threads) }, name);
const BITS = [undefined, 8] as const;

/** The fastest step at the end of a context, ms, and the bytes of the state. */
async function step(
  context: number,
  rows: number,
  bits: 8 | undefined,
): Promise<{ ms: number; bytes: number }> {
  const config = gptModel({ ...shapes[flags.shape]!, context }, 'f32');
  const attention = config.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
  if (bits) attention.cacheTpl = FullCache.config({ precision: bits });
  const model = build(config);
  const params = initialParams(model);
  const stepper = await Stepper.create({
    model,
    params,
    rows,
    seqlen: context,
    rule: null,
    compileOptions: engine,
  });
  const ids = new Int32Array(rows).fill(1);
  let ms = Number.POSITIVE_INFINITY;
  for (let i = 0; i < Number(flags.repetitions); i++) {
    const began = performance.now();
    await stepper.extendStep(ids, context - 1);
    ms = Math.min(ms, performance.now() - began);
  }
  const bytes = stepper.stateBytes;
  await stepper.dispose();
  return { ms, bytes };
}

/** Natural logarithms of the softmax of a row. */
function logSoftmax(row: Float32Array): Float64Array {
  const max = row.reduce((a, b) => Math.max(a, b));
  const logSum = Math.log(row.reduce((sum, x) => sum + Math.exp(x - max), 0));
  return Float64Array.from(row, (x) => x - max - logSum);
}

/** Means over the tokens of a text, rows of it side by side. */
async function quality(directory: string, text: string): Promise<void> {
  const rows = 8;
  const logits: Float32Array[][] = [];
  let ids: Int32Array[] = [];
  for (const cacheBits of BITS) {
    const run = await loadRun(directory, { cacheBits });
    const all = run.tokenizer.encode(text);
    const size = Math.min(run.maxTokens, Math.floor(all.length / rows));
    ids = Array.from({ length: rows }, (_, row) => all.slice(row * size, (row + 1) * size));
    const { task, params } = run;
    const model = task.model as unknown as Parameters<typeof Stepper.create>[0]['model'];
    const stepper = await Stepper.create({
      model,
      params,
      rows,
      seqlen: size,
      rule: null,
      compileOptions: engine,
    });
    const own: Float32Array[] = [];
    for (let at = 0; at < size; at++)
      own.push(
        (
          await stepper.extendStep(
            Int32Array.from(ids, (row) => row[at]!),
            at,
          )
        ).slice(),
      );
    logits.push(own);
    await stepper.dispose();
    await run.dispose();
  }
  const sums = { divergence: 0, same: 0, before: 0, after: 0 };
  const size = ids[0]!.length;
  for (let at = 0; at < size - 1; at++) {
    for (const [row, own] of ids.entries()) {
      const [p, q] = logits.map((each) => {
        const width = each[at]!.length / rows;
        return logSoftmax(each[at]!.subarray(row * width, (row + 1) * width));
      }) as [Float64Array, Float64Array];
      sums.divergence += p.reduce((sum, x, i) => sum + Math.exp(x) * (x - q[i]!), 0);
      sums.same += Number(p.indexOf(Math.max(...p)) === q.indexOf(Math.max(...q)));
      sums.before -= p[own[at + 1]!]!;
      sums.after -= q[own[at + 1]!]!;
    }
  }
  const count = rows * (size - 1);
  const [before, after] = [Math.exp(sums.before / count), Math.exp(sums.after / count)];
  console.log(
    `${count} tokens: KL divergence ${(sums.divergence / count).toExponential(2)}, the same likeliest token ` +
      `${((100 * sums.same) / count).toFixed(2)} %, perplexity ${before.toFixed(4)} → ${after.toFixed(4)}`,
  );
}

if (flags.run !== undefined) await quality(flags.run, readFileSync(flags.text!, 'utf8'));
else
  for (const context of flags.contexts.split(',').map(Number))
    for (const rows of flags.batches.split(',').map(Number)) {
      const [own, held] = [await step(context, rows, undefined), await step(context, rows, 8)];
      const mega = (bytes: number) => (bytes / 1e6).toFixed(1);
      console.log(
        `${flags.shape}, context ${context}, batch ${rows}: ${own.ms.toFixed(2)} ms with ${mega(own.bytes)} MB of float32, ` +
          `${held.ms.toFixed(2)} ms with ${mega(held.bytes)} MB of 8 bits: ${(own.ms / held.ms).toFixed(2)} times`,
      );
    }
process.exit();
