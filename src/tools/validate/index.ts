/** @file `luthier validate`: checks experiments before a run. */
import { positive } from '../../cli/commandLine/index.js';
import { areTold, directoriesFor, type Scan, scan, select } from '../../registry/names/index.js';
import { didYouMean, Progress, UsageError } from '../../system/text/index.js';
import type { Command } from '../command.js';
import { type Checked, checkAll } from './checkAll.js';
import { type Level, levels, parseLevel } from './levels.js';
import { type Result, resultOf, resultOfBroken, validateReport } from './validateReport.js';

const defaultTimeout = 120;

export const validate: Command = {
  usage: '[EXP…]',
  positionals: [0, Number.POSITIVE_INFINITY],
  flags: {
    level: {
      key: 'level',
      value: 'LEVEL',
      about: `Last level to check: ${levels.map((name, i) => `${i} ${name}`).join(', ')}. Default: trace.`,
      parse: parseLevel,
    },
    timeout: {
      key: 'timeout',
      value: 'SECONDS',
      about: `Time limit for each experiment. Default: ${defaultTimeout}.`,
      parse: positive(false),
    },
  },
  changes: true,
  details: `Without EXP, all experiments of ./experiments are checked, or luthier's own if there are none.
EXP is a full name, a dotted suffix of one, or a pattern: 'c4.*'.

Levels; each includes those before it:
  0 resolve   the file loads, and exports the class
  1 task      the constants are complete and valid, and the task's config is valid and builds
  2 datasets  the datasets build, including those to decode
  3 trace     the shapes of a training step, of evaluation and of decoding fit; the decoder draws; nothing is allocated
  4 step      one training step and one batch of each evaluation run here, in a temporary directory

Experiments are checked in separate processes: one that crashes, hangs or runs out of memory does not affect the others.
An experiment that lacks a value (--set dataPath=PATH) or needs a larger machine is incomplete, and fails only if it is named.
Flags that change experiments apply to each; without EXP, --set of a constant applies to the experiments that declare it.

  npx luthier validate
  npx luthier validate ShakespeareChar --set dataPath=input.txt --level=step

Exit codes: 0; 1 if an experiment fails; 2 for a wrong command line.`,
  async run({ positionals, values, changes }) {
    const directories = directoriesFor(positionals.length > 0);
    const timeout = (values.timeout as number | undefined) ?? defaultTimeout;
    const found = await completed(scan(directories), positionals, timeout);
    const { experiments, broken } = select(positionals, found, directories);
    const started = performance.now();
    const level = (values.level as Level | undefined) ?? 'trace';
    const progress = new Progress(experiments.length);
    const checked = await checkAll(experiments, {
      level,
      changes,
      lenient: positionals.length === 0,
      timeout,
      done: ({ found: { name } }) => progress.add(name),
    });
    progress.end();
    refuseUnused(checked, found);
    const results: Result[] = [...checked.map(resultOf), ...broken.map(resultOfBroken)];
    return validateReport(results, {
      level,
      named: positionals.length > 0,
      directories,
      seconds: (performance.now() - started) / 1000,
    });
  },
};

/** Gigabytes for loading modules. */
const memory = 4;

/** A scan with the experiments that only loading tells, where these may be meant. */
async function completed(found: Scan, names: readonly string[], seconds: number): Promise<Scan> {
  if (found.unclassified.length === 0 || areTold(names, found)) return found;
  const { withLoaded } = await import('../../review/index.js');
  return withLoaded(found, { seconds, gigabytes: memory });
}

/** A setting that no experiment accepts is a typo. */
function refuseUnused(checked: readonly Checked[], { experiments }: Scan): void {
  const resolved = checked.filter(({ reached }) => reached !== undefined);
  const [first] = resolved;
  const unused = first?.findings.ignored.find((origin) => {
    return resolved.every(({ findings }) => findings.ignored.includes(origin));
  });
  if (unused === undefined) return;
  const constant = /^\S+ ([^=]*)/.exec(unused)![1]!;
  const known = new Set(experiments.flatMap(({ constants }) => constants.map(({ name }) => name)));
  throw new UsageError(
    `${unused}: no experiment has a constant '${constant}'.${didYouMean(constant, known)}`,
  );
}
