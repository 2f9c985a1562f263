/**
 * @file What experiments do when they run, to the bit: their configs, or a job that is stopped, resumed, evaluated and decoded
 * with the data and the learning rates that it would get. Knows nothing of fingerprints; `luthier diff` is judged by it.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { globSync } from 'tinyglobby';
import { type ConfiguredExperiment, configure, jsonDocument } from '../../src/cli/index.js';
import { build, Configurable, classOf, copyWith, iterate } from '../../src/hparams/index.js';
import * as inputs from '../../src/inputs/index.js';
import { arraysOf, type BaseInput, nextBatch } from '../../src/inputs/index.js';
import * as layers from '../../src/layers/index.js';
import * as learners from '../../src/learners/index.js';
import { runJob } from '../../src/programs/index.js';
import { resolveExperiment } from '../../src/registry/index.js';
import { registerLibrary } from '../../src/rooms.js';

/**
 * What is asked of an experiment: its configs, what it does when it runs, that and the blocks of `Blocks.instrument` that run, or
 * what classes it is made of.
 */
export interface Question {
  readonly ask: 'configs' | 'run' | 'blocks' | 'classes';
  readonly name: string;
}

/** What was found, by what it is of. */
export type RealBits = Readonly<Record<string, string>>;

/** Steps until a job stops, and until it stops again. */
const STOPS = [3, 5];
/** Batches of an input without end. */
const MOST_BATCHES = 60;
/** Steps whose learning rates are compared, all of them. */
const MOST_STEPS = 50_000;

const digest = (...parts: readonly (string | NodeJS.ArrayBufferView)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64url');
};

/** A file of tensors as lines by name: their order in the file is that of the variables. */
function tensorsOf(bytes: Buffer): string {
  const start = 8 + Number(bytes.readBigUInt64LE());
  const { __metadata__, ...tensors } = JSON.parse(bytes.toString('utf8', 8, start));
  const found = Object.entries<{ data_offsets: [number, number] }>(tensors).map(
    ([
      name,
      {
        data_offsets: [from, to],
        ...tensor
      },
    ]) => JSON.stringify([name, tensor, digest(bytes.subarray(start + from, start + to))]),
  );
  return [JSON.stringify(__metadata__), ...found.sort()].join('\n');
}

/** Metrics that no two runs have alike: times, speeds, and the saves that have ended by then. */
const unsettled = /sec|wait|mfu|peak|flops|^checkpoints\//i;

/** Lines of metrics without these, by name. @throws the error of an evaluation or a decode, after which jobs go on */
function metricsOf(text: string): string {
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const failed = lines.find(({ error }) => error !== undefined);
  if (failed) throw new Error(`${failed.program}: ${failed.error}`);
  const kept = lines.map((line) =>
    Object.entries(line)
      .filter(([name]) => !unsettled.test(name))
      .sort(),
  );
  return JSON.stringify(kept);
}

/** A file without what no two runs have alike. */
function settled(path: string): string {
  const bytes = readFileSync(path);
  if (path.endsWith('.safetensors')) return tensorsOf(bytes);
  if (path.endsWith('metrics.jsonl')) return metricsOf(bytes.toString());
  return bytes.toString().replaceAll(process.cwd(), '');
}

/** Files that a job leaves behind. */
async function jobBits(configured: ConfiguredExperiment, file: string): Promise<RealBits> {
  const jobLogDir = mkdtempSync(join(tmpdir(), 'luthier-bits-'));
  const { task } = configured;
  try {
    for (const numTrainSteps of STOPS) {
      const job = copyWith(task, { train: copyWith(task.train, { numTrainSteps }) });
      const settings = { jobLogDir, mode: 'train_and_decode', engine: 'eager', numThreads: 1 } as const;
      const moduleUrl = pathToFileURL(file).href;
      await runJob({ ...configured, ...settings, moduleUrl, task: job, overrides: [], classVars: '' });
    }
    const written = ['**/*.safetensors', '**/train_input.json', 'decoder_out/**', 'data/**', 'metrics.jsonl'];
    const files = globSync(written, { cwd: jobLogDir }).sort();
    return Object.fromEntries(files.map((file) => [file, digest(settled(join(jobLogDir, file)))]));
  } finally {
    rmSync(jobLogDir, { recursive: true });
  }
}

/** Batches of each host up to the end, or many. */
async function inputBits(config: ConfiguredExperiment['datasets'][number]): Promise<string> {
  const found: string[] = [];
  for (let infeedHostIndex = 0; infeedHostIndex < config.numInfeedHosts; infeedHostIndex++) {
    const input: BaseInput = build(copyWith(config, { infeedHostIndex }));
    for (let i = 0; i < MOST_BATCHES; i++) {
      const batch = await nextBatch(input);
      if (batch === undefined) break;
      for (const [path, { shape, dtype, data }] of arraysOf(batch))
        found.push(digest(JSON.stringify([path, shape, dtype]), data));
    }
    found.push(JSON.stringify(input.getState()));
    await input.close();
  }
  return digest(found.join());
}

/** What the host tells the update of each step. */
function rateBits({ task }: ConfiguredExperiment): string {
  const { optimizer } = build(task).hp.train.hp.learner.hp;
  const numbers: number[] = [];
  for (let step = 0; step < MOST_STEPS; step++)
    for (const decays of [true, false]) numbers.push(...Object.values(optimizer.hostScalars(step, decays)));
  return digest(Float64Array.from(numbers));
}

/** The classes of the rooms that experiments are made of. */
const known = [layers, learners, inputs].flatMap((room) => Object.entries(room)) as [string, unknown][];

/** Names of the classes that the experiment's configs and layers are of. */
function classesOf({ configs, task }: ConfiguredExperiment): RealBits {
  const { model } = build(task);
  const used = new Set<unknown>([
    ...iterate(configs, { defaults: true }).map(({ config }) => classOf(config)),
    ...layers.listLayers(model).map((layer) => layer.constructor),
    ...layers.listVariables(model).map(({ init }) => init.constructor),
  ]);
  const isConcrete = (cls: unknown): boolean =>
    typeof cls === 'function' && cls.prototype instanceof Configurable && !Object.hasOwn(cls, 'isAbstract');
  const told = known.filter(([, cls]) => isConcrete(cls)).map(([name, cls]) => [name, String(used.has(cls))]);
  return Object.fromEntries(told);
}

/** Blocks that have run, where files were written so that they tell. */
const ran = new Set<number>();
Object.assign(globalThis, { ran: (block: number) => ran.add(block) });

async function answer({ ask, name }: Question): Promise<RealBits> {
  ran.clear();
  const resolved = await resolveExperiment(name);
  registerLibrary();
  const configured = configure(resolved, []);
  if (ask === 'configs') return { configs: JSON.stringify(jsonDocument(configured)) };
  if (ask === 'classes') return classesOf(configured);
  const read = await Promise.all([...configured.datasets, ...configured.decodeDatasets].map(inputBits));
  const bits = await jobBits(configured, resolved.file);
  const rates = rateBits(configured);
  return { ...bits, inputs: read.join(), rates, ...(ask === 'blocks' && { blocks: [...ran].join() }) };
}

let last = Promise.resolve();
process.on('message', (question: Question) => {
  last = last.then(async () => {
    const found = await answer(question).catch((error: Error) => ({
      error: `${error.name}: ${error.message}`,
    }));
    process.send!(found);
  });
});
process.on('disconnect', () => process.exit());
