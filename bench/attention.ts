/**
 * @file Attention by itself, in the shapes of GPT: the shortest forward and backward pass on one thread of the native
 * engine, the part of the registers' peak that each reaches, and the memory of the program. --window=KEYS bounds what a query
 * sees, --documents=N packs rows of so many, --prefix=KEYS are leading keys that all queries see, --context=TOKENS makes rows
 * longer, and --dropout=P drops weights.
 */
import { parseArgs } from 'node:util';
import { compile, ops, Profiler, tf, valueAndGrad, withPrecision } from '../src/compiler/index.js';
import { programMemory } from '../src/compiler/native/programMemory.js';
import { optimize } from '../src/compiler/passes/index.js';
import { traceProgram } from '../src/compiler/trace/tracedProgram.js';
import { findPeak } from '../src/programs/mfu.js';
import { jobOptions } from './gptJob.js';
import { shapes, usualShapes } from './shapes.js';

const { values: flags } = parseArgs({
  options: {
    shapes: { type: 'string' },
    precision: { type: 'string' },
    seconds: { type: 'string' },
    context: { type: 'string' },
    window: { type: 'string' },
    documents: { type: 'string' },
    prefix: { type: 'string' },
    dropout: { type: 'string' },
  },
});
const names = flags.shapes?.split(',') ?? usualShapes;
const precision = flags.precision === 'bf16' ? 'bfloat16' : 'float32';
const seconds = Number(flags.seconds ?? 3);
const window = flags.window === undefined ? {} : { before: Number(flags.window) - 1 };
const documents = Number(flags.documents ?? 1);
const prefixes = flags.prefix === undefined ? undefined : Number(flags.prefix);
const keepProb = 1 - Number(flags.dropout ?? 0);

const { flops: peak } = await findPeak({ ...jobOptions(shapes.nano!), numThreads: 1 }, precision);
process.stdout.write(`${precision}, one thread; peak ${(peak / 1e9).toFixed(1)} GFLOP/s\n`);
for (const name of names) {
  const shape = shapes[name];
  if (!shape) throw new Error(`--shapes: expected some of ${Object.keys(shapes).join(', ')}; got '${name}'`);
  const { batch, heads, width } = shape;
  const context = Number(flags.context ?? shape.context);
  const head = { shape: [batch, context, heads, width / heads], dtype: 'float32' } as const;
  const profiler = new Profiler();
  const f = ({
    weights,
    ids,
    prefix,
    key,
    ...params
  }: Record<'q' | 'k' | 'v' | 'weights' | 'ids' | 'prefix' | 'key', tf.Tensor>) =>
    withPrecision(precision, () => {
      const loss = ({ q, k, v }: typeof params) => {
        const segments = documents > 1 ? { segments: { queries: ids, keys: ids } } : {};
        const dropout = keepProb < 1 ? { dropout: { key, keepProb } } : {};
        const leading = prefixes === undefined ? {} : { prefix };
        const out = ops.attention(q, k, v, { causal: true, window, ...segments, ...leading, ...dropout });
        return { value: tf.sum(tf.mul(out, weights)) as tf.Tensor, aux: {} };
      };
      const { value, grads } = valueAndGrad(loss, params);
      return { value, grads: { ...grads } };
    });
  const int32 = (...shape: number[]) => ({ shape, dtype: 'int32' }) as const;
  const ints = { ids: int32(batch, context), prefix: int32(batch), key: int32(2) };
  const specs = { q: head, k: head, v: head, weights: head, ...ints };
  const executable = await compile(f, specs, {
    engine: 'native',
    name: 'attention',
    numThreads: 1,
    profiler,
  });
  const { arena } = programMemory(optimize(traceProgram(f, specs).graph));
  const filled = () => Float32Array.from({ length: batch * context * width }, () => 2 * Math.random() - 1);
  const ids = Int32Array.from({ length: batch * context }, (_, i) =>
    Math.floor(((i % context) * documents) / context),
  );
  const key = Int32Array.of(1, 2);
  const prefix = new Int32Array(batch).fill(prefixes ?? 0);
  const call = executable.bind({
    inputs: { q: filled(), k: filled(), v: filled(), weights: filled(), ids, prefix, key },
  });
  process.stdout.write(`${name}: ${(arena / 2 ** 20).toFixed(1)} MiB beside inputs and results\n`);
  const [profile] = profiler.programs;
  const shortest = new Map<string, { seconds: number; flops: number }>();
  for (const end = performance.now() + 1000 * seconds; performance.now() < end; ) {
    profile!.restart();
    await call.run();
    for (const { part, seconds } of profile!.times) {
      if (part.kind !== 'attention') continue;
      const pass = part.label.startsWith('attentionGrad') ? 'backward' : 'forward';
      const known = shortest.get(pass)?.seconds ?? Number.POSITIVE_INFINITY;
      shortest.set(pass, { seconds: Math.min(known, seconds), flops: part.flops });
    }
  }
  for (const [pass, { seconds, flops }] of shortest) {
    const part = ((100 * flops) / seconds / peak).toFixed(1);
    process.stdout.write(`${name} ${pass}: ${(1e3 * seconds).toFixed(3)} ms, ${part} % of the peak\n`);
  }
  await executable.dispose();
}
process.exit();
