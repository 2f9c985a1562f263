/** @file Command line of a run: one table of flags; flags that change the experiment keep their order. */

import { UsageError } from '../../system/text/index.js';
import {
  type FlagTable,
  nonEmpty,
  oneOf,
  parseFlagTable,
  positive,
  valuesOf,
} from '../commandLine/flagTable.js';
import { type Mode, modes } from '../commandLine/modes.js';
import { type Change, type DumpFormat, dumpFormats } from '../overrides.js';
import { overrideFlags, sweepFlags } from './changeFlags.js';
import { checkDecodeFlags, type DecodeFlags, decodeFlags } from './decodeFlags.js';
import { inspectionFlags } from './inspectionFlags.js';
import { refusedFlags } from './refusedFlags.js';
import { checkStudyFlags, type StudyFlags, studyFlags } from './studyFlags.js';

/** Engine names, repeated here because parsing flags must not load the compiler. */
const engines = ['auto', 'native', 'onnx', 'eager'] as const;

/** A parsed command line. */
export interface Flags extends DecodeFlags, StudyFlags {
  readonly exp?: string;
  readonly jobLogDir?: string;
  readonly mode: Mode;
  /** --set, --unset, --config_file, --fiddler and --sweep, in the given order. */
  readonly changes: readonly Change[];
  /** Runs of a sweep at once. */
  readonly sweepParallel?: number;
  readonly dump?: DumpFormat;
  readonly numThreads?: number;
  readonly device: 'cpu' | 'gpu';
  readonly engine: (typeof engines)[number];
  readonly peakTflops?: number;
  readonly checkpoint?: number | string;
  readonly waitSeconds?: number;
  readonly restorePreviousCheckpoint: boolean;
  readonly restoreChanged?: 'apply' | 'dry_run';
  readonly checkpointTodeleteSubdir?: string;
  readonly profile: boolean;
  readonly tap?: readonly string[];
  readonly tapSteps?: (step: number) => boolean;
  readonly tapValues?: boolean;
  readonly debug?: 'nan' | 'eager';
  readonly help: boolean;
  /** Flags that every run of a sweep inherits, as given. */
  readonly common: readonly string[];
}

/** Flags that a sweep keeps from its runs, and why; each of them inherits all others as given. */
const keptFromRuns: Readonly<Record<string, string>> = {
  job_log_dir: 'each has a directory of its own',
  ...Object.fromEntries(
    Object.keys(overrideFlags).map((name) => [name, 'each has the changes of its combination']),
  ),
  ...Object.fromEntries(
    Object.keys({ ...sweepFlags, ...studyFlags }).map((name) => [name, 'none is a sweep or a study']),
  ),
  dump: 'prints instead of running',
  help: 'prints instead of running',
};

/** A step, best, or a path, which has a separator. */
function checkpointOf(text: string, flag: string): number | string {
  if (text === 'best' || /[\\/]/.test(text)) return text;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(
    `${flag}: expected the step of a checkpoint, best, or a path such as ./${text || 'out/run'}; got '${text}'.`,
  );
}

/** The name of a folder that no checkpoint could have. */
function folderName(text: string, flag: string): string {
  if (/^[A-Za-z_][\w.-]*$/.test(text) && !/^(?:checkpoint|tmp|broken)_/.test(text)) return text;
  throw new UsageError(`${flag}: expected the name of a folder, such as archive; got '${text}'.`);
}

/** @throws UsageError for a flag of training in another mode */
function checkTrainFlags({ mode, restoreChanged }: Pick<Flags, 'mode' | 'restoreChanged'>): void {
  if (restoreChanged === undefined || mode.startsWith('train')) return;
  throw new UsageError(
    `--restore_changed: only for training; --mode=${mode} reads a checkpoint whose variables are the model's.`,
  );
}

/** All flags, in the order of --help. */
export const flagTable: FlagTable = {
  exp: {
    key: 'exp',
    value: 'NAME',
    about: 'The experiment: lm.Small is class Small of experiments/lm.ts. A unique suffix (Small) is enough.',
    parse: nonEmpty,
  },
  job_log_dir: {
    key: 'jobLogDir',
    value: 'DIR',
    about:
      'Directory for all output of the run, which may have {exp}, {date} and {time}. A run that is started again ' +
      'resumes from it. Default: out/{exp}.',
    parse: nonEmpty,
  },
  mode: {
    key: 'mode',
    value: 'MODE',
    about: `${modes.join(', ')}. Default: train.`,
    parse: oneOf(modes),
  },
  ...overrideFlags,
  ...sweepFlags,
  ...studyFlags,
  dump: {
    key: 'dump',
    value: 'FORMAT',
    whenBare: 'text',
    about: `Prints the configs that would be built, and exits. ${dumpFormats.join(', ')}. Default: text.`,
    parse: oneOf(dumpFormats),
  },
  num_threads: {
    key: 'numThreads',
    value: 'N',
    about: 'Number of compute threads. Default: the number of cores.',
    parse: positive(true),
  },
  device: {
    key: 'device',
    value: 'cpu|gpu',
    about: 'gpu needs @tensorflow/tfjs-node-gpu. Default: cpu.',
    parse: oneOf(['cpu', 'gpu']),
  },
  engine: {
    key: 'engine',
    value: 'ENGINE',
    about:
      'auto, native (machine code, or an error), onnx (ONNX Runtime), eager (op by op: slow, for comparison). Default: auto.',
    parse: oneOf(engines),
  },
  peak_tflops: {
    key: 'peakTflops',
    value: 'X',
    about: 'Peak of the machine in 1e12 FLOP/s, for MFU. Default: measured at the start.',
    parse: positive(false),
  },
  checkpoint: {
    key: 'checkpoint',
    value: 'STEP|best|PATH',
    about:
      'The checkpoint to evaluate, decode or train from: of this step, the best by task.train.trackMetric, or that of ' +
      'another run (out/run, out/run/1200, out/run/best) or checkpoint directory. Training goes back to a step or best, and ' +
      'keeps later checkpoints aside; from a path, it starts a new run with its whole state. Default: the newest.',
    parse: checkpointOf,
  },
  wait_for_training: {
    key: 'waitSeconds',
    value: 'SECONDS',
    about:
      'How long --mode=eval and --mode=decode wait for a checkpoint where no process trains in the directory, as before ' +
      'training starts or until it comes back. Default: 0.',
    parse: positive(false),
  },
  restore_previous_checkpoint: {
    key: 'restorePreviousCheckpoint',
    about: 'Falls back to the previous checkpoint if the newest is broken.',
    parse: () => true,
  },
  ...decodeFlags,
  restore_changed: {
    key: 'restoreChanged',
    value: 'apply|dry_run',
    whenBare: 'apply',
    about:
      'Training goes on from a checkpoint of another optimizer, precision or part of the model: what fits is restored, ' +
      'and the rest begins anew, as a table tells. dry_run: shows the table, and exits.',
    parse: oneOf(['apply', 'dry_run']),
  },
  checkpoint_todelete_subdir: {
    key: 'checkpointTodeleteSubdir',
    value: 'FOLDER',
    about: 'Moves old checkpoints to this folder beside the others, instead of deleting them.',
    parse: folderName,
  },
  profile: {
    key: 'profile',
    about: 'Prints where the time went, by phase and by layer, at the end; the directory profile has more.',
    parse: () => true,
  },
  ...inspectionFlags,
  help: {
    key: 'help',
    about: 'Shows this help; with --exp, also everything that --set, --fiddler and --sweep can name.',
    parse: () => true,
  },
};

/**
 * Parses the arguments after the script's name: `--flag=value` or `--flag value`. Of a flag given twice, the last one
 * wins (`npm start -- --mode=eval`), except for changes of the experiment, which all apply in order.
 *
 * @throws UsageError for an unknown or refused flag, a wrong or missing value, a positional argument, or conflicting flags.
 */
export function parseFlags(argv: readonly string[]): Flags {
  const { given, positionals } = parseFlagTable(argv, flagTable, refusedFlags);
  const [stray] = positionals;
  if (stray !== undefined)
    throw new UsageError(`Unexpected argument '${stray}': flags are written --name=value.`);
  const common = given
    .filter(({ name }) => !Object.hasOwn(keptFromRuns, name))
    .map(({ name, text }) => (text === undefined ? `--${name}` : `--${name}=${text}`));
  const flags = {
    mode: 'train',
    device: 'cpu',
    engine: 'auto',
    restorePreviousCheckpoint: false,
    evalDuringDecode: false,
    profile: false,
    help: false,
    changes: [],
    ...valuesOf(given),
    common,
  } as Flags;
  checkConflicts(flags);
  return flags;
}

function checkConflicts(flags: Flags): void {
  checkInspection(flags);
  checkDecodeFlags(flags, flags);
  checkTrainFlags(flags);
  const { changes, mode, dump, checkpoint, sweepParallel, waitSeconds } = flags;
  if (waitSeconds !== undefined && ((mode !== 'eval' && mode !== 'decode') || checkpoint !== undefined))
    throw new UsageError(
      `--wait_for_training=${waitSeconds}: it is for --mode=eval and --mode=decode without --checkpoint, which take each ` +
        'checkpoint of a run that trains.',
    );
  const swept = changes.find(({ kind }) => kind === 'sweep');
  checkStudyFlags(flags, mode, swept?.origin);
  if (sweepParallel !== undefined && swept === undefined && flags.study === undefined)
    throw new UsageError(
      `--sweep_parallel=${sweepParallel}: it is for --sweep=PATH=VALUES or --study=NAME, which is not given.`,
    );
  if (swept !== undefined && (checkpoint === 'best' || typeof checkpoint === 'number')) {
    throw new UsageError(
      `--checkpoint=${checkpoint} and ${swept.origin} do not go together: each run of a sweep has a directory of its own. ` +
        'Use the path of a run or a checkpoint, as --checkpoint=out/run: every run then starts from its state.',
    );
  }
  if (swept === undefined || dump !== undefined || mode.startsWith('train')) return;
  throw new UsageError(
    `${swept.origin} and --mode=${mode} do not go together: a sweep trains. ` +
      `To use its models, give --job_log_dir the directory of one of its runs.`,
  );
}

function checkInspection({ mode, debug, tap, tapSteps, tapValues }: Flags): void {
  if (tap !== undefined && !mode.startsWith('train')) {
    throw new UsageError(
      `--tap=${tap[0]} and --mode=${mode} do not go together: taps read training steps. Use --mode=train.`,
    );
  }
  if (tap === undefined && (tapSteps !== undefined || tapValues !== undefined)) {
    const flag = tapSteps === undefined ? '--tap_values' : '--tap_steps';
    throw new UsageError(`${flag}: it is for --tap=PATTERN, which is not given.`);
  }
  if (debug !== 'eager') return;
  if (mode.includes('decode')) {
    throw new UsageError(
      `--debug=eager and --mode=${mode} do not go together: decoding steps are compiled. ` +
        'Use --mode=train, train_and_eval or eval.',
    );
  }
  if (tap !== undefined)
    throw new UsageError(
      '--debug=eager and --tap do not go together: taps are compiled, and an eager layer can print every value.',
    );
}
