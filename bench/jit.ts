/**
 * @file `npm run bench:jit`: training of models of tfjs-layers by compileModel's fit, beside the models' own on tfjs's cpu
 * backend. Rounds alternate in one process. Takes `--rounds`, `--models` and `--threads`.
 */
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { loadBackend, nativeTools, type Tensor, tf } from '../src/compiler/index.js';
import { compileModel } from '../src/jit/index.js';
import { markdownTable } from '../src/review/text/reportFormat.js';

// As the compiler does: one copy of the engine.
const { layers, sequential } = createRequire(import.meta.url)('@tensorflow/tfjs-layers');

/** A model, and how much of it a round trains. Steps of tfjs take up to seconds. */
interface Case {
  readonly make: () => any;
  readonly input: readonly number[];
  readonly batchSize: number;
  /** Batches in tfjs's epoch, and in the compiled one. */
  readonly batches: readonly [number, number];
}

const classes = 10;
const activated = { activation: 'relu' };
const classifier = (): unknown => layers.dense({ units: classes, activation: 'softmax' });

const cases: Readonly<Record<string, Case>> = {
  'MLP 784-512-512-10, batch 128': {
    input: [784],
    batchSize: 128,
    batches: [3, 100],
    make: () =>
      sequential({
        layers: [
          layers.dense({ inputShape: [784], units: 512, ...activated }),
          layers.dense({ units: 512, ...activated }),
          classifier(),
        ],
      }),
  },
  'convnet 28 × 28, batch 32': {
    input: [28, 28, 1],
    batchSize: 32,
    batches: [1, 100],
    make: () =>
      sequential({
        layers: [
          layers.conv2d({ inputShape: [28, 28, 1], filters: 32, kernelSize: 3, ...activated }),
          layers.maxPooling2d({ poolSize: 2 }),
          layers.conv2d({ filters: 64, kernelSize: 3, ...activated }),
          layers.maxPooling2d({ poolSize: 2 }),
          layers.flatten(),
          layers.dense({ units: 128, ...activated }),
          classifier(),
        ],
      }),
  },
};

/** Milliseconds of a batch in one call of fit. */
async function timeFit(train: any, [x, y]: readonly [Tensor, Tensor], batchSize: number): Promise<number> {
  const before = performance.now();
  await train(x, y, { batchSize, epochs: 1, verbose: 0, yieldEvery: 'never' });
  return ((performance.now() - before) * batchSize) / x.shape[0]!;
}

function data({ input, batchSize }: Case, batches: number): readonly [Tensor, Tensor] {
  const count = batches * batchSize;
  const ids = tf.tensor1d(
    Array.from({ length: count }, (_, i) => i % classes),
    'int32',
  );
  return [tf.randomUniform([count, ...input], 0, 1), tf.oneHot(ids, classes, 1, 0, 'float32')];
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

async function measure(name: string, rounds: number, numThreads: number | undefined): Promise<string[]> {
  const each = cases[name]!;
  const compileAs = { optimizer: 'adam', loss: 'categoricalCrossentropy', metrics: ['accuracy'] };
  const [plain, model] = [each.make(), each.make()];
  for (const one of [plain, model]) one.compile(compileAs);
  const compiled = compileModel(model, numThreads === undefined ? {} : { numThreads });
  const sets = each.batches.map((batches) => data(each, batches));
  const fits = [plain.fit.bind(plain), compiled.fit];
  const times: number[][] = [[], []];
  const firstSet = data(each, 1);
  const before = performance.now();
  await timeFit(compiled.fit, firstSet, each.batchSize);
  const first = performance.now() - before;
  await timeFit(fits[0], firstSet, each.batchSize);
  for (let round = 0; round < rounds; round++)
    for (const [i, fit] of fits.entries()) times[i]!.push(await timeFit(fit, sets[i]!, each.batchSize));
  await compiled.dispose();
  const [slow, fast] = times.map((list) => Math.min(...list)) as [number, number];
  const [slowMedian, fastMedian] = times.map(median) as [number, number];
  return [
    name,
    `${slowMedian.toFixed(0)} (${slow.toFixed(0)})`,
    `${fastMedian.toFixed(1)} (${fast.toFixed(1)})`,
    `${(slowMedian / fastMedian).toFixed(0)} (${(slow / fast).toFixed(0)})`,
    `${(first / 1000).toFixed(1)} s`,
  ];
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    models: { type: 'string', default: Object.keys(cases).join(';') },
    threads: { type: 'string' },
  },
});
tf.enableProdMode();
await tf.setBackend(await loadBackend('cpu'));
// The kernels' library, which a machine compiles once, is no part of a first batch.
await nativeTools();
const rows: string[][] = [];
for (const name of values.models.split(';')) {
  rows.push(await measure(name, Number(values.rounds), values.threads ? Number(values.threads) : undefined));
  process.stderr.write(`${rows.at(-1)!.join('  ')}\n`);
}
const header = [
  '',
  'tfjs cpu, ms a batch',
  'compiled, ms a batch',
  'times as fast',
  'first batch, compiling',
];
process.stdout.write(`Medians, shortest in brackets.\n\n${markdownTable(rows, header)}\n`);
process.exit();
