/** @file `luthier diff`: the differences between two experiments, or the effects of a change on experiments. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Device, readDevice } from '../analysis/index.js';
import { nonEmpty, positive } from '../cli/commandLine/index.js';
import type { Override } from '../cli/index.js';
import { explain, readRegularFile } from '../files/index.js';
import {
  answerFolder,
  compareRun,
  compareTwo,
  compareVersions,
  type DiffReport,
  type Label,
  type Limits,
  markdownOf,
  onDevice,
  parseReport,
  readSettings,
  textOf,
  type VersionsRequest,
  verdictOf,
} from '../review/index.js';
import { UsageError } from '../system/text/index.js';
import type { Arguments, Command, Report } from './command.js';

const defaultSeconds = 60;
const defaultGigabytes = 4;

/** The command. */
export const diff: Command = {
  usage: '[EXP | A B | RUN]',
  positionals: [0, 2],
  changes: true,
  formats: ['markdown'],
  flags: {
    base: {
      key: 'base',
      value: 'REF',
      about:
        'Compares the working tree with the merge base of HEAD and REF, as a pull request does. Without EXP, all ' +
        'experiments are compared.',
      parse: nonEmpty,
    },
    exact: {
      key: 'exact',
      about: 'Compares with REF itself, not with the merge base.',
      parse: () => true,
    },
    timeout: {
      key: 'timeout',
      value: 'SECONDS',
      about: `Time limit for one experiment. Default: ${defaultSeconds}.`,
      parse: positive(false),
    },
    memory: {
      key: 'memory',
      value: 'GIGABYTES',
      about: `Memory limit for evaluating one experiment. Default: ${defaultGigabytes}.`,
      parse: positive(false),
    },
    device: {
      key: 'device',
      value: 'FILE',
      about:
        'Device file (JSON or YAML) with peak, MFU, memory and price, for the cost of a whole training. Default: the ' +
        'device of the review settings.',
      parse: nonEmpty,
    },
    pictures: {
      key: 'pictures',
      value: 'DIR',
      about: 'With --base, draws the changes in the configs of each experiment: DIR/lm.Small.svg.',
      parse: nonEmpty,
    },
    install: {
      key: 'installs',
      about:
        "With --base, installs the packages of REF's own package-lock.json for REF, by npm without install scripts, where " +
        'it differs from the present one. By default, both versions get the packages installed now.',
      parse: () => true,
    },
    fresh: {
      key: 'fresh',
      about: 'With --base, evaluates everything anew, ignoring results of earlier reviews.',
      parse: () => true,
    },
    label: {
      key: 'labels',
      value: 'LABEL',
      repeated: true,
      about:
        'With --base or --report, a label of the pull request, which may lift a threshold. May be repeated.',
      parse: nonEmpty,
    },
    report: {
      key: 'report',
      value: 'FILE',
      about: 'Compares nothing, and shows the report that an earlier comparison printed with --format=json.',
      parse: nonEmpty,
    },
    exit_code: {
      key: 'exitCode',
      about: 'Exits with 1 if any experiment changed.',
      parse: () => true,
    },
  },
  details: `Examples:
  npx luthier diff lm.Small lm.ShakespeareChar --set dataPath=input.txt
  npx luthier diff lm.Small --base=HEAD
  npx luthier diff --base=origin/main --format=markdown
  npx luthier diff --base=origin/main --format=json > report.json; npx luthier diff --report=report.json
  npx luthier diff out/lm_small

RUN, the directory of a run, asks whether it goes on from its newest checkpoint with the code and data of now and the flags
that it was started with: with the same bits, changed, or not at all, with the error with which the job would end, and what
train.initFromCheckpoint would still load of it. Nothing is trained.

--set and the other flags that change experiments apply to both sides. The revision is checked out into a temporary
folder, with the ignored files (packages, data) of the working tree. An experiment has changed if its configs, its
constants, or the size, cost or variables of its model have; comments and spelled-out defaults are no change. Where only
code changed, the traced training step and evaluation, the update, the initial values, rows of the data and decoding are
compared by fingerprints. An experiment with a part that could not be compared does not count as unchanged.

Thresholds are read from package.json, under luthier.review, at REF:
  "thresholds": [{ "figure": "parameters", "moreThan": "10%", "needsLabel": "costs-more" }]

Exit codes: 0; 1 if the change breaks an experiment or needs a label that it lacks, or if RUN cannot go on; 2 for a wrong
command line.`,
  async run(args: Arguments): Promise<Report> {
    const { failOnChange, labels, asked } = requestOf(args);
    if ('report' in asked) return reportOf(parseReport(textOfReport(asked.report)), failOnChange, labels);
    const device = asked.device === undefined ? undefined : readDevice(asked.device);
    if ('base' in asked) {
      const answers = asked.fresh ? undefined : answerFolder();
      return reportOf(await compareVersions({ ...asked, device, answers }), failOnChange, labels);
    }
    if ('run' in asked) {
      const { report, goesOn } = await compareRun(asked.run, args.changes, asked.limits);
      const told = reportOf(onDevice(report, device ?? deviceOfSettings()), failOnChange);
      return goesOn === 'never' ? { ...told, exitCode: 1 } : told;
    }
    const compared = await compareTwo(...asked.experiments, args.changes, asked.limits);
    return reportOf(onDevice(compared, device ?? deviceOfSettings()), failOnChange);
  },
};

/** A comparison of two experiments, of a run or the working tree with a revision, or a report of an earlier one. */
type DiffRequest =
  | { readonly report: string }
  | { readonly run: string; readonly device: string | undefined; readonly limits: Limits }
  | {
      readonly experiments: readonly [string, string];
      readonly device: string | undefined;
      readonly limits: Limits;
    }
  | (Omit<VersionsRequest, 'device' | 'answers'> & {
      readonly device: string | undefined;
      /** Whether nothing of earlier comparisons is used. */
      readonly fresh: boolean;
    });

/** The comparison that arguments request. @throws UsageError for flags that exclude each other */
export function requestOf({ positionals, values, changes }: Omit<Arguments, 'warn' | 'format'>): {
  readonly failOnChange: boolean;
  readonly labels: readonly Label[];
  readonly asked: DiffRequest;
} {
  const [first, second] = positionals;
  const { base, report, device, pictures } = values as Readonly<Record<string, string | undefined>>;
  const common = {
    failOnChange: values.exitCode === true,
    labels: ((values.labels as string[] | undefined) ?? []).map((name) => ({ name })),
  };
  if (report !== undefined) {
    if (base !== undefined || first !== undefined)
      throw new UsageError('--report shows an earlier comparison: it takes neither --base nor experiments.');
    return { ...common, asked: { report } };
  }
  const limits = {
    seconds: (values.timeout as number | undefined) ?? defaultSeconds,
    gigabytes: (values.memory as number | undefined) ?? defaultGigabytes,
  };
  if (base === undefined) {
    if (first !== undefined && second === undefined && isDirectory(first))
      return { ...common, asked: { run: first, device, limits } };
    if (first === undefined || second === undefined)
      throw new UsageError(
        "luthier diff takes two experiments (A B), a run's directory, or --base=REF with an experiment or none. " +
          'luthier diff --help explains more.',
      );
    return { ...common, asked: { experiments: [first, second], device, limits } };
  }
  if (second !== undefined)
    throw new UsageError(`--base compares one experiment, or all; got '${first}' '${second}'.`);
  return {
    ...common,
    asked: {
      project: process.cwd(),
      base,
      exact: values.exact === true,
      name: first,
      changes: changes.map(fromAnywhere),
      pictures,
      device,
      installs: values.installs === true,
      fresh: values.fresh === true,
      limits,
    },
  };
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function textOfReport(file: string): string {
  try {
    return readRegularFile(file).toString();
  } catch (error) {
    throw new UsageError(`--report=${file} cannot be read: ${explain(error)}.`, { cause: error });
  }
}

/** The device that the settings of the project in this folder name. */
function deviceOfSettings(): Device | undefined {
  const { device } = readSettings(process.cwd());
  return device === undefined ? undefined : readDevice(device);
}

/** A change that is the same in every working directory. */
function fromAnywhere(change: Override): Override {
  return change.kind === 'file' ? { ...change, file: resolve(change.file) } : change;
}

/** A comparison as the command reports it; `failOnChange` makes a change a failure. */
export function reportOf(report: DiffReport, failOnChange = false, labels: readonly Label[] = []): Report {
  const isChanged =
    report.experiments.some(({ status }) => status !== 'failing') || report.declarations.length > 0;
  const fails = verdictOf(report, labels).fails || (failOnChange && isChanged);
  return {
    text: (paint) => textOf(report, paint, labels),
    json: () => report,
    further: { markdown: () => markdownOf(report, { labels }) },
    exitCode: Number(fails),
  };
}
