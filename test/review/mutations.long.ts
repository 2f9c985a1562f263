/** @file luthier diff on random mutations: what it calls unchanged computes the same, to the bit, when it is run. */
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { tableFromArrays, tableToIPC } from '@uwdata/flechette';
import fc from 'fast-check';
import { encode } from 'fast-png';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { globSync } from 'tinyglobby';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Analysable, analyseModels } from '../../src/review/changes/analyseModels.js';
import { compareExperiment, isSameConfig } from '../../src/review/changes/compare.js';
import { Evaluator } from '../../src/review/versions/evaluators.js';
import {
  type AnalysisDocument,
  type ExperimentDocument,
  type FingerprintDocument,
  made,
} from '../../src/review/versions/protocol.js';
import { Sources } from '../../src/review/versions/sources.js';
import { treeAt } from '../../src/review/versions/versionTree.js';
import { Child, ChildError } from '../../src/system/child.js';
import { UsageError } from '../../src/system/text/usageError.js';
import { temporaryDirectory } from '../command.js';
import { draw, isShort, oneIn, title, tries } from '../faults/campaign.js';
import { wavOf } from '../inputs/audio/sounds.js';
import { writeFiles } from '../tools/scratch.js';
import { Blocks } from './instrumented.js';
import { type Mutation, mutated, mutationsOf, shown } from './mutants.js';
import type { Question, RealBits } from './realBitsProgram.js';

const mutants = Number(process.env.MUTANTS ?? tries(100, 1));
const repository = fileURLToPath(new URL('../..', import.meta.url));
const EXPERIMENTS = join(repository, 'test/fixtures/mutations/experiments');
const oracle = 'test/review/realBitsProgram.ts';

/** An IDX file of bytes. */
const idx = (shape: readonly number[], data: readonly number[]): Uint8Array =>
  Uint8Array.from([0, 0, 8, shape.length, ...shape.flatMap((size) => [0, 0, 0, size]), ...data]);
const bytes = (length: number, by: number): number[] => Array.from({ length }, (_, i) => (i * by) % 251);
const png = (by: number): Uint8Array =>
  encode({ width: 4, height: 3, channels: 3, data: Uint8Array.from(bytes(36, by)) });

const sentence = 'The quick brown fox, jumps: over (the) lazy dog; and runs!\n';
const columns: [string, (number | string)[]][] = [
  ['width', [0, 1, 2, 3]],
  ['height', [1, 5, 2, 4]],
  ['price', [0.5, 1.5, -2.5, 0.25]],
  ['kind', ['b', 'c', 'a', 'b']],
];
const files = {
  'corpus/a.txt': sentence.repeat(3),
  'corpus/b.txt': [...sentence].reverse().join('').repeat(2),
  'corpus/c.txt': `${sentence.toLowerCase()}\n`.repeat(4),
  'corpus/d.txt': 'Seven.\n',
  'tables/a.csv': `width;height;price;kind\n${[...'abcabcabca'].map((kind, i) => `${i};${i * i};${3 - i};${kind}\n`).join('')}`,
  'tables/c.txt': '0\n2\n1\n0\n',
  'tables/d.parquet': new Uint8Array(
    parquetWriteBuffer({ columnData: columns.map(([name, data]) => ({ name, data })), rowGroupSize: 2 }),
  ),
  'tables/e.arrow': tableToIPC(tableFromArrays(columns), { format: 'stream' })!,
  'tables/b.jsonl': [...'cba']
    .map((kind, i) => `{"width":${i},"height":true,"price":"0.5","kind":"${kind}"}\n`)
    .join(''),
  // Two of TensorFlow's examples: { sizes: [1, 2], price: 3.5, kind: 'a' } and { sizes: [2, 1], price: 2.25, kind: 'b' }.
  'tables/d.tfrecord': Buffer.from(
    'OwAAAAAAAAAaI6xcCjkKFQoFc2l6ZXMSDBIKCggAAIA/AAAAQAoRCgVwcmljZRIIEgYKBAAAYEAKDQoEa2luZBIFCgMKAWFdhwQA' +
      'OwAAAAAAAAAaI6xcCjkKFQoFc2l6ZXMSDBIKCggAAABAAACAPwoRCgVwcmljZRIIEgYKBAAAEEAKDQoEa2luZBIFCgMKAWLZMqQ8',
    'base64',
  ),
  ...Object.fromEntries([3, 5, 7, 11, 13].map((by) => [`images/folders/${by % 4}/${by}.png`, png(by)])),
  'images/digits.idx3': idx([3, 4, 2], bytes(24, 17)),
  'images/digits.idx1': idx([3], [2, 0, 1]),
  'images/cifar.bin': Uint8Array.from([...bytes(3073, 3), ...bytes(3073, 5)]),
  ...Object.fromEntries(
    [3, 5, 7, 11].map((by) => [
      `sounds/${by % 4}/${by}.wav`,
      wavOf(bytes(200, by), { bits: 8, sampleRate: by === 5 ? 6000 : 8000 }),
    ]),
  ),
  'experiments/shakespeare.ts': `import { ShakespeareChar } from './lm.js';
export class Shakespeare extends ShakespeareChar.preset({ dataPath: 'corpus/a.txt' }) {}
`,
};

/** A copy of the library and its experiments, with one that uses all of it. */
function copyOfRepository(): string {
  const folder = temporaryDirectory();
  for (const part of ['src', 'experiments', 'package.json', oracle])
    cpSync(join(repository, part), join(folder, part), { recursive: true });
  cpSync(EXPERIMENTS, join(folder, 'experiments'), { recursive: true });
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
  writeFiles(folder, files);
  return folder;
}

const limits = { seconds: 120, gigabytes: 4 };

function evaluatorAt(folder: string): Evaluator {
  const tree = treeAt(folder, { root: folder, project: folder });
  return new Evaluator(tree, 'it', tree, limits);
}

type Ask<D> = (names: readonly string[]) => Promise<Map<string, D>>;

/** The same answers, asked for once. */
async function remembered<D>(ask: Ask<D>, all: readonly string[]): Promise<Ask<D>> {
  const known = await ask(all);
  return async (names) => new Map(names.map((name) => [name, known.get(name)!]));
}

/** The same answer, once it is asked for. */
function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => (answer ??= ask());
}

/** What experiments do, by asking a process that runs them. */
async function realBits(
  folder: string,
  ask: Question['ask'],
  names: readonly string[],
): Promise<Record<string, RealBits>> {
  const child = new Child<Question, RealBits>(pathToFileURL(join(folder, oracle)), { cwd: folder });
  const found: Record<string, RealBits> = {};
  try {
    for (const name of names) {
      child.send({ ask, name });
      found[name] = await child.receive(120_000);
    }
  } catch (error) {
    if (!(error instanceof ChildError)) throw error;
    found.process = { error: `${error.message}\n${error.output}` };
  } finally {
    await child.kill();
  }
  return found;
}

/** What two runs do not have alike. */
const differing = (a: Record<string, RealBits>, b: Record<string, RealBits>): string[] =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name) => {
    const [before, after] = [a[name] ?? {}, b[name] ?? {}];
    const parts = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    const other = parts.filter((part) => before[part] !== after[part]);
    return other.map(
      (part) => `${name}: ${part}${part === 'error' ? ` ${before[part]} → ${after[part]}` : ''}`,
    );
  });

const rooms = ['src/layers', 'src/learners', 'src/inputs', 'experiments'];

/** Fields of the experiments of test/fixtures/mutations, before and after: a change of one hides no changed code. */
const fields = [
  ['numTrainSteps: 3', 'numTrainSteps: 4'],
  ['summaryIntervalSteps: 1', 'summaryIntervalSteps: 2'],
  ['evalIntervalSteps: 2', 'evalIntervalSteps: 1'],
  ['seqlen: 20', 'seqlen: 21'],
  ['prefixLength: 3', 'prefixLength: 2'],
  ['inputRandomSeed: 3', 'inputRandomSeed: 4'],
] as const;
type Field = (typeof fields)[number];
const fieldFile = 'experiments/tiny.ts';

/** A mutation of a file of the repository, and the field that is changed beside it; of experiments, it is a field itself. */
interface Mutant {
  readonly file: string;
  readonly mutation: Mutation;
  readonly field?: Field;
}

const everyMutant = new Map(
  rooms.map((room) => {
    const byKind = new Map<string, Mutant[]>();
    for (const name of globSync(`${room}/**/*.ts`, { cwd: repository }).sort()) {
      for (const mutation of mutationsOf(readFileSync(join(repository, name), 'utf8'))) {
        const known = byKind.get(mutation.kind) ?? [];
        byKind.set(mutation.kind, [...known, { file: name, mutation }]);
      }
    }
    return [room, byKind];
  }),
);

/** One of a list, by a number from 0 to 1. */
const at = <T>(list: readonly T[], place: number): T => list[Math.floor(place * list.length)]!;

const PLACES = 2 ** 30;

/** Draws the room first, then the kind of change, of those that reach an experiment. */
function drawn({ reached }: Base): Mutant[] {
  // Doubles would be drawn from all that there are, most of which are nearly 0.
  const place = fc.noBias(fc.nat(PLACES - 1)).map((n) => n / PLACES);
  return draw(fc.tuple(place, place, place, place), mutants, 0x3417).map(([room, kind, which, field]) => {
    const byKind = everyMutant.get(at(rooms, room))!;
    const all = byKind.get(at([...byKind.keys()].sort(), kind))!;
    const mutant = at(
      all.filter((each) => reached(each).length > 0),
      which,
    );
    return at(rooms, room) === 'experiments' ? mutant : { ...mutant, field: at(fields, field) };
  });
}

/** What is known of the versions without a mutation. */
interface Base {
  readonly folder: string;
  readonly answers: {
    readonly configs: Ask<ExperimentDocument>;
    readonly fingerprints: Ask<FingerprintDocument>;
    readonly analyses: Ask<AnalysisDocument>;
  };
  /** What computes on its own. */
  readonly fixtures: readonly string[];
  /** The classes that these are made of. */
  readonly classes: Readonly<Record<string, RealBits>>;
  /** Those of them that mutants are tried with: all, or with SHORT=1 a third. */
  readonly tried: readonly string[];
  /** What only gives configs. */
  readonly shipped: readonly string[];
  /** Those that run what a mutant changes, or give configs by it. */
  readonly reached: (mutant: Mutant) => readonly string[];
  /** What they do. */
  readonly real: Readonly<Record<'run' | 'configs', () => Promise<Record<string, RealBits>>>>;
}

/** As they are, in one process. */
const asked = (names: readonly string[]) => ({ names, changes: [], processes: 1 });

/** How a version writes its configs, and fingerprints its code by those of another. */
const byOther = (version: Evaluator): Pick<Analysable, 'written' | 'fingerprintsBy'> => ({
  written: (names) => version.documents(asked(names)),
  fingerprintsBy: (documents) => version.fingerprints({ ...asked([...documents.keys()]), documents }),
});

let base: Base;
let evaluator: Evaluator;

beforeAll(async () => {
  const folder = copyOfRepository();
  const tree = treeAt(folder, { root: folder, project: folder });
  const names = [...new Sources(tree, new Set()).experiments.keys()];
  const modules = readdirSync(EXPERIMENTS).map((file) => file.replace(/ts$/, ''));
  const fixtures = names.filter((name) => modules.some((module) => name.startsWith(module)));
  const shipped = names.filter((name) => !fixtures.includes(name));
  const tried = oneIn(3, fixtures);
  evaluator = evaluatorAt(folder);
  await evaluator.start();
  const answers = {
    configs: await remembered((all) => evaluator.configs(asked(all)), names),
    fingerprints: await remembered((all) => evaluator.fingerprints(asked(all)), fixtures),
    analyses: await remembered((all) => evaluator.analyses(asked(all)), tried),
  };
  const blocks = new Blocks(
    repository,
    rooms.slice(0, -1).flatMap((room) => globSync(`${room}/**/*.ts`, { cwd: repository })),
  );
  const run = once(async () => {
    const noting = copyOfRepository();
    blocks.instrument(noting);
    return realBits(noting, 'blocks', tried);
  });
  const real = {
    run: async () =>
      Object.fromEntries(
        Object.entries(await run()).map(([name, { blocks: _, ...bits }]) => [name, bits as RealBits]),
      ),
    configs: once(() => realBits(folder, 'configs', shipped)),
  };
  const classes = await realBits(folder, 'classes', fixtures);
  // Runs take longer than all else here; the only mutant of a short campaign is tried with every experiment.
  const ran = isShort
    ? undefined
    : new Map(
        Object.entries(await run()).map(([name, bits]) => [
          name,
          new Set(bits.blocks?.split(',').map(Number)),
        ]),
      );
  const used = new Map(
    Object.entries(classes).map(([name, of]) => [
      name,
      new Set(Object.keys(of).filter((cls) => of[cls] === 'true')),
    ]),
  );
  const reached = ({ file, mutation }: Mutant): readonly string[] => {
    if (file.startsWith('experiments/')) return shipped;
    return ran === undefined ? tried : blocks.reached(file, mutation, ran, used);
  };
  base = { folder, answers, fixtures, classes, tried, shipped, reached, real };
}, 3_600_000);

afterAll(() => evaluator.end());

const nothing: Mutation = { kind: 'none', start: 0, end: 0, replacement: '' };

test('the experiments use every class of the rooms, can be compared in full and run', async () => {
  const { fixtures, answers, real } = base;
  const classes = Object.values(base.classes);
  const unused = Object.keys(classes[0]!).filter((name) => classes.every((each) => each[name] !== 'true'));
  expect(unused).toEqual([]);
  const fingerprints = [...(await answers.fingerprints(fixtures)).values()];
  expect(fingerprints.filter((each) => !('fingerprint' in each))).toEqual([]);
  const parts = fingerprints.flatMap((each) =>
    'fingerprint' in each ? Object.values(each.fingerprint) : [],
  );
  // Programs are compared by the configs and code of their classes.
  const inJobs = 'only jobs run them';
  expect(parts.filter(({ notCompared = inJobs }) => notCompared !== inJobs)).toEqual([]);
  // They take longer than all else here; where the only mutant is told, nothing else asks.
  if (isShort) return;
  const errors = Object.values({ ...(await real.run()), ...(await real.configs()) }).flatMap(
    ({ error }) => error ?? [],
  );
  const failed = errors.filter((error) => !/ needs a value for its constant /.test(error));
  expect(failed).toEqual([]);
  const unchanged = { file: 'src/layers/linears.ts', mutation: nothing };
  expect(await told(copyOfRepository(), unchanged, base.tried)).toBeUndefined();
});

/** A version with the code of the base and one changed field. */
interface WithField {
  /** What a review tells of each of so many experiments. */
  readonly reports: (names: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  readonly real: (names: readonly string[]) => Promise<Record<string, RealBits>>;
}

/** Changes a field in a folder, or puts it back. */
function setField(folder: string, [before, after]: readonly [string, string]): void {
  const path = join(folder, fieldFile);
  const text = readFileSync(path, 'utf8');
  expect(text).toContain(before);
  writeFileSync(path, text.replace(before, after));
}

/** The same answers, of each name once, one question after the other. */
function each<T>(
  ask: (names: readonly string[]) => Promise<Iterable<readonly [string, T]>>,
): (names: readonly string[]) => Promise<Map<string, T>> {
  const known = new Map<string, T>();
  let last: Promise<unknown> = Promise.resolve();
  return (names) => {
    const answer = last.then(async () => {
      const unknown = names.filter((name) => !known.has(name));
      if (unknown.length > 0) for (const [name, found] of await ask(unknown)) known.set(name, found);
      return new Map(names.flatMap((name) => (known.has(name) ? [[name, known.get(name)!] as const] : [])));
    });
    last = answer.catch(() => {});
    return answer;
  };
}

const withField = new Map(
  fields.map((field): [Field, WithField] => {
    const folder = once(async () => {
      const made = copyOfRepository();
      setField(made, field);
      return made;
    });
    const reports = async (names: readonly string[]) => {
      const now = evaluatorAt(await folder());
      try {
        return (await reportsOf(now, names)).map((report) => [report.name, JSON.stringify(report)] as const);
      } finally {
        await now.end();
      }
    };
    const real = each(async (names) => Object.entries(await realBits(await folder(), 'run', names)));
    return [field, { reports: each(reports), real: async (names) => Object.fromEntries(await real(names)) }];
  }),
);

/** Comparisons of fixtures with those of the base. */
async function reportsOf(now: Evaluator, tried: readonly string[]) {
  const { answers } = base;
  const documents = [await answers.configs(tried), await now.configs(asked(tried))] as const;
  const models = await analyseModels(
    tried,
    { ...answers, ...byOther(evaluator), documents: documents[0] },
    {
      documents: documents[1],
      fingerprints: (names) => now.fingerprints(asked(names)),
      ...byOther(now),
      analyses: (names) => now.analyses(asked(names)),
    },
  );
  return tried.map((name) => {
    const old = { document: documents[0].get(name), analysis: models.old.get(name) };
    const after = { document: documents[1].get(name), analysis: models.now.get(name) };
    const computed = models.computed.get(name);
    return compareExperiment(name, old, after, [], {
      computed: computed && { ...computed, files: [] },
      broken: models.broken.get(name),
    });
  });
}

/** Experiments that are asked about at once: where a review tells of one of them, no other is asked about. */
const TOGETHER = 5;

/** What a review tells of experiments of the working tree in `folder` beside the changed field; undefined for nothing. */
async function told(
  folder: string,
  { file, field }: Mutant,
  names: readonly string[],
): Promise<string | undefined> {
  const { answers, shipped } = base;
  const now = evaluatorAt(folder);
  try {
    await now.start();
    if (file.startsWith('experiments/')) {
      const [before, after] = [await answers.configs(shipped), await now.configs(asked(shipped))];
      const other = shipped.find((name) => {
        const pair = [before.get(name)!, after.get(name)!] as const;
        return made(pair[0]) === undefined ? made(pair[1]) !== undefined : !isSameConfig(...pair);
      });
      return other === undefined ? undefined : `${other}: its config`;
    }
    for (let from = 0; from < names.length; from += TOGETHER) {
      const some = names.slice(from, from + TOGETHER);
      const reports = await reportsOf(now, some);
      const alone = field && (await withField.get(field)!.reports(some));
      const first = reports.find((report) =>
        alone === undefined
          ? report.status !== 'unchanged'
          : JSON.stringify(report) !== alone.get(report.name),
      );
      if (first) return `${first.name}: ${first.status} ${JSON.stringify(first.computed)}`;
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return 'nothing can be evaluated';
  } finally {
    await now.end();
  }
}

/** What running shows to be other than it was, though no review tells; undefined where one does. */
async function untold(folder: string, mutant: Mutant): Promise<readonly string[] | undefined> {
  const { file, mutation, field } = mutant;
  const names = base.reached(mutant);
  const path = join(folder, file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, mutated(text, mutation));
  if (field !== undefined) setField(folder, field);
  try {
    const said = await told(folder, mutant, names);
    if (said !== undefined) return undefined;
    const ask = file.startsWith('experiments/') ? 'configs' : 'run';
    const before = field === undefined ? await base.real[ask]() : await withField.get(field)!.real(names);
    const known = Object.fromEntries(names.map((name) => [name, before[name]!]));
    return differing(known, await realBits(folder, ask, names));
  } finally {
    if (field !== undefined) setField(folder, [field[1], field[0]]);
    writeFileSync(path, text);
  }
}

test(title('what is called unchanged is the same when it runs'), async () => {
  const open = drawn(base);
  const wrong: string[] = [];
  let shownSame = 0;
  const work = async (): Promise<void> => {
    const folder = copyOfRepository();
    for (let mutant = open.shift(); mutant !== undefined; mutant = open.shift()) {
      const { file, mutation, field } = mutant;
      const found = await untold(folder, mutant);
      if (found?.length === 0) shownSame++;
      const change = `${shown(file, readFileSync(join(repository, file), 'utf8'), mutation)} beside ${field?.[1]}`;
      if (found !== undefined && found.length > 0) wrong.push(`${change}\n  ${found.join('\n  ')}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(mutants, 2) }, work));
  console.info(`${mutants - shownSame - wrong.length} of ${mutants} told, ${shownSame} change no bit`);
  expect(wrong, wrong.join('\n')).toEqual([]);
  // One alone may well be among those that change no bit.
  expect(mutants - shownSame).toBeGreaterThanOrEqual(Math.floor(mutants / 3));
});
