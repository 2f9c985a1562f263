/**
 * @file One measurement of inputs per process: reading, resuming, random order, waiting of a training step; prints one line
 * of JSON. The arguments are its name, the corpus (JSON Lines of texts), a tokenizer.json, and seconds.
 */
import { readFileSync } from 'node:fs';
import { prngKey } from '../src/compiler/random/prng.js';
import { build, type Config } from '../src/hparams/index.js';
import {
  type BaseInput,
  type BaseTokenizer,
  ByteTokenizer,
  Feature,
  type InputSource,
  JsonLinesSource,
  LanguageModelFeatures,
  type LmBatch,
  openInput,
  PretrainedTokenizer,
  Rekey,
  SeqioInput,
  SplitTokens,
  Task,
  Tokenize,
} from '../src/inputs/index.js';
import { KeyedPermutation } from '../src/inputs/random.js';
import { beginToInitialize, trainStateOf } from '../src/programs/taskState.js';
import { TrainProgram } from '../src/programs/trainProgram.js';
import { jobOptions } from './gptJob.js';
import { shapes } from './shapes.js';

const [name = '', corpus = '', tokenizerFile = '', seconds = '4'] = process.argv.slice(2);
const SEQ_LEN = 1024;
const BATCH_SIZE = 32;
/** Batches of all lanes, twice: groups are made in turn. */
const WINDOW = 32;

const rssMb = (): number => process.memoryUsage.rss() / 2 ** 20;

/** Texts of the corpus: packed into rows, or each one a row. */
function inputOf(
  tokenizer: Config<BaseTokenizer>,
  { pack = true, numWorkers = 0, seqLen = SEQ_LEN, batchSize = BATCH_SIZE } = {},
): Config<BaseInput> {
  return SeqioInput.config({
    mixtureOrTask: Task.config({
      source: JsonLinesSource.config({ files: [corpus] }),
      preprocessors: [
        Rekey.config({ keyMap: { targets: 'text' } }),
        Tokenize.config(),
        ...(pack ? [SplitTokens.config()] : []),
      ],
      features: { targets: Feature.config({ tokenizer, addEos: false }) },
    }),
    splitName: 'all',
    taskFeatureLengths: { targets: seqLen },
    featureConverter: LanguageModelFeatures.config({ pack }),
    isTraining: true,
    batchSize,
    ...(numWorkers === 0 ? { prefetchBatches: 0 } : { numWorkers, prefetchBatches: 4 }),
  });
}

const bytes = () => ByteTokenizer.config();
const bpe = () => PretrainedTokenizer.config({ file: tokenizerFile });

/** Batches a second, of this process's wall and CPU time, and the share of positions that hold a token. */
export interface ReadingRate {
  readonly perSec: number;
  readonly perCpuSec: number;
  readonly filled: number;
  /** Rows and positions of a batch. */
  readonly batchSize: number;
  readonly seqLen: number;
}

async function read(config: Config<BaseInput>): Promise<ReadingRate> {
  const input = openInput(config);
  const { numWorkers } = config as unknown as { numWorkers: number | null };
  const isReady = (): boolean =>
    numWorkers === null || (input as { readers?: number }).readers === numWorkers;
  for (let i = 0; i < 2 * WINDOW || !isReady(); i++) await input.getNext();
  const [begun, cpu] = [performance.now(), process.cpuUsage()];
  let [count, padding] = [0, 0];
  while (performance.now() - begun < 1000 * Number(seconds)) {
    for (let i = 0; i < WINDOW; i++, count++) {
      const { paddings } = (await input.getNext()) as LmBatch;
      if (i === 0) for (const value of paddings.data) padding += value;
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  const wall = (performance.now() - begun) / 1000;
  await input.close();
  return {
    perSec: count / wall,
    perCpuSec: (1e6 * count) / (user + system),
    filled: 1 - padding / ((count / WINDOW) * BATCH_SIZE * SEQ_LEN),
    batchSize: BATCH_SIZE,
    seqLen: SEQ_LEN,
  };
}

/** Seconds to the first batch after a million steps, and megabytes resident. */
export interface Resumption {
  readonly seconds: number;
  readonly before: number;
  readonly after: number;
  readonly later: number;
}

/** Opens an input as after `steps` steps, and reads on. */
async function resume(config: Config<BaseInput>, steps: number): Promise<Resumption> {
  const before = rssMb();
  const begun = performance.now();
  const input = build(config);
  input.setState(stateAt(input.getState(), steps));
  await input.getNext();
  const taken = (performance.now() - begun) / 1000;
  const after = rssMb();
  for (let i = 0; i < 500; i++) await input.getNext();
  const later = rssMb();
  await input.close();
  return { seconds: taken, before, after, later };
}

/** The state of an input that has read for `steps`: lanes have drawn two texts a row. */
function stateAt(state: ReturnType<InputSource['getState']>, steps: number): typeof state {
  const { lanes } = state as { lanes?: number[][] };
  if (lanes === undefined) return { ...state, position: steps * BATCH_SIZE };
  const drawn = Math.floor((2 * steps * BATCH_SIZE) / lanes.length);
  return { ...state, batches: steps, lanes: lanes.map(() => [17, 3 * drawn, drawn]) };
}

/** Indices of a billion records in random order: a second, and megabytes that they take. */
function order(): { readonly perSec: number; readonly perCpuSec: number; readonly grown: number } {
  const before = rssMb();
  const permutation = new KeyedPermutation(prngKey(1), 1e9);
  let sum = 0;
  for (let i = 0; i < 1e6; i++) sum += permutation.at(i);
  const [begun, cpu] = [performance.now(), process.cpuUsage()];
  const count = 2e7;
  for (let i = 0; i < count; i++) sum += permutation.at(1e9 - 1 - i * 49);
  const { user, system } = process.cpuUsage(cpu);
  const wall = (performance.now() - begun) / 1000;
  if (!(sum > 0)) throw new Error('no indices');
  return { perSec: count / wall, perCpuSec: (1e6 * count) / (user + system), grown: rssMb() - before };
}

/** Milliseconds of nano's steps, and the share of them that they wait for a batch. */
async function nano(): Promise<{ readonly stepMs: number; readonly waited: number }> {
  const shape = { ...shapes.nano!, vocabulary: 256 };
  const config = inputOf(bytes(), { seqLen: shape.context, batchSize: shape.batch });
  const { prefetchBatches: _, ...values } = config as unknown as Record<string, unknown>;
  const options = jobOptions(shape);
  const task = build(options.task);
  const state = trainStateOf(task);
  const initialized = await beginToInitialize(options, task, state);
  const input = openInput(SeqioInput.config(values as never));
  let waited = 0;
  const next = input.getNext.bind(input);
  const getNext = async () => {
    const begun = performance.now();
    const batch = await next();
    waited += performance.now() - begun;
    return batch;
  };
  const program = TrainProgram.create(options, task, state, Object.assign(input, { getNext }));
  const [running] = await Promise.all([program, initialized.done]);
  const atOnce = 10;
  for (let i = 0; i < 5; i++) await running.runSteps(atOnce);
  waited = 0;
  const begun = performance.now();
  let [steps, taken] = [0, 0];
  for (; taken < 2000 * Number(seconds); taken = performance.now() - begun) {
    await running.runSteps(atOnce);
    steps += atOnce;
  }
  return { stepMs: taken / steps, waited: waited / taken };
}

/** Bytes of text to a token of byte-pair encoding. */
function bytesPerToken(): number {
  const texts = readFileSync(corpus, 'utf8').trimEnd().split('\n').slice(0, 2000);
  const tokenizer = build(bpe());
  const encoded = texts.map((line) => (JSON.parse(line) as { text: string }).text);
  const size = encoded.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return size / encoded.reduce((sum, text) => sum + tokenizer.encode(text).length, 0);
}

const measurements: Readonly<Record<string, () => unknown>> = {
  bytes: () => read(inputOf(bytes())),
  bytesOneWorker: () => read(inputOf(bytes(), { numWorkers: 1 })),
  bytesTwoWorkers: () => read(inputOf(bytes(), { numWorkers: 2 })),
  bpe: () => read(inputOf(bpe())),
  records: () => read(inputOf(bytes(), { pack: false })),
  recordsTwoWorkers: () => read(inputOf(bytes(), { pack: false, numWorkers: 2 })),
  open: () => resume(inputOf(bytes()), 0),
  resumePacked: () => resume(inputOf(bytes()), 1e6),
  resumeRows: () => resume(inputOf(bytes(), { pack: false }), 1e6),
  bytesPerToken,
  order,
  nano,
};
process.stdout.write(`${JSON.stringify(await measurements[name]!())}\n`);
process.exit();
