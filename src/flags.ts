/** @file The command line of main.ts: one table of flags, parsed strictly; those that change the experiment keep their order. */
import { didYouMean } from './hparams/index.js';
import { UsageError } from './registry/errors.js';
import {
  type Change,
  type DumpFormat,
  dumpFormats,
  parseFiddler,
  parseFile,
  parseSet,
  parseSweep,
  parseUnset,
} from './registry/overrides.js';

/** What a run does; see docs/guide/running.md. */
const modes = ['train', 'eval', 'decode', 'decode_once', 'train_and_eval', 'train_and_decode'] as const;
type Mode = (typeof modes)[number];

/** The parsed command line. */
export interface Flags {
  readonly exp?: string;
  readonly jobLogDir?: string;
  readonly mode: Mode;
  /** --set, --unset, --config_file, --fiddler and --sweep, in the order in which they were given. */
  readonly changes: readonly Change[];
  readonly dump?: DumpFormat;
  readonly numThreads?: number;
  readonly device: 'cpu' | 'gpu';
  readonly engine: 'auto' | 'onnx' | 'eager';
  readonly peakTflops?: number;
  readonly restorePreviousCheckpoint: boolean;
  readonly help: boolean;
  /** The other flags as they were given, those of the run itself alone: what each run of a sweep has in common. */
  readonly common: readonly string[];
}

interface FlagSpec {
  readonly key: keyof Flags;
  /** How a value is written in --help; none for a switch. */
  readonly value?: string;
  /** What counts where no value is given, which then must stand behind a `=`. */
  readonly whenBare?: string;
  /** Whether it says what each run of a sweep does. */
  readonly common?: boolean;
  readonly about: string;
  readonly parse: (text: string, flag: string) => unknown;
}

function oneOf(values: readonly string[]): FlagSpec['parse'] {
  return (text, flag) => {
    if (values.includes(text)) return text;
    throw new UsageError(
      `${flag}: expected one of ${values.join(', ')}; got '${text}'.${didYouMean(text, values)}`,
    );
  };
}

function positive(integer: boolean): FlagSpec['parse'] {
  return (text, flag) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (value > 0 && Number.isFinite(value) && (!integer || Number.isInteger(value))) return value;
    throw new UsageError(`${flag}: expected a positive ${integer ? 'integer' : 'number'}; got '${text}'.`);
  };
}

function nonEmpty(text: string, flag: string): string {
  if (text !== '') return text;
  throw new UsageError(`${flag}: expected a value; got ''.`);
}

/** Every flag, in the order of --help. */
export const flagTable: Readonly<Record<string, FlagSpec>> = {
  exp: {
    key: 'exp',
    value: 'NAME',
    common: true,
    about: 'The experiment: lm.Small is class Small of experiments/lm.ts; a unique suffix (Small) will do.',
    parse: nonEmpty,
  },
  job_log_dir: {
    key: 'jobLogDir',
    value: 'DIR',
    about: 'Where everything that the run writes goes; a run started again resumes from there.',
    parse: nonEmpty,
  },
  mode: {
    key: 'mode',
    value: 'MODE',
    common: true,
    about: `${modes.join(', ')}. Default: train.`,
    parse: oneOf(modes),
  },
  set: {
    key: 'changes',
    value: 'PATH=VALUE',
    about:
      'Sets a constant of the experiment (numLayers=6) or a field of its configs (task.train.numTrainSteps=100, ' +
      'datasets[0].batchSize=8). This and the next four are repeatable, and applied in order.',
    parse: parseSet,
  },
  unset: {
    key: 'changes',
    value: 'PATH',
    about: 'Brings back the default of a constant or a field, or takes out an entry of a list or a record.',
    parse: parseUnset,
  },
  fiddler: {
    key: 'changes',
    value: 'NAME(ARG=VALUE,…)',
    about: "Calls a function that the experiment's file exports, to edit the configs.",
    parse: parseFiddler,
  },
  config_file: {
    key: 'changes',
    value: 'FILE',
    about: 'Sets what a YAML or JSON file says, or takes the configs that --dump=json or --dump=yaml wrote.',
    parse: parseFile,
  },
  sweep: {
    key: 'changes',
    value: 'PATH=VALUES',
    about:
      'One run for each value (1e-3,1e-4 or 1..4 or 0..1:0.25 or log(1e-4,1e-1,4)), or for each entry of what ' +
      "NAME(ARG=VALUE,…) of the experiment's file returns; of several sweeps, for each combination. " +
      'Each run has a directory in --job_log_dir.',
    parse: parseSweep,
  },
  dump: {
    key: 'dump',
    value: 'FORMAT',
    whenBare: 'text',
    about: `Prints the configs that would be built, and ends. ${dumpFormats.join(', ')}. Default: text.`,
    parse: oneOf(dumpFormats),
  },
  num_threads: {
    key: 'numThreads',
    value: 'N',
    common: true,
    about: 'Threads that compute. Default: the number of cores.',
    parse: positive(true),
  },
  device: {
    key: 'device',
    value: 'cpu|gpu',
    common: true,
    about: 'gpu computes with @tensorflow/tfjs-node-gpu, which must be installed. Default: cpu.',
    parse: oneOf(['cpu', 'gpu']),
  },
  engine: {
    key: 'engine',
    value: 'ENGINE',
    common: true,
    about: 'auto, onnx or eager (op by op, slow, for comparison). Default: auto.',
    parse: oneOf(['auto', 'onnx', 'eager']),
  },
  peak_tflops: {
    key: 'peakTflops',
    value: 'X',
    common: true,
    about: 'Peak of the machine in 1e12 FLOP/s, for MFU. Default: measured in the process.',
    parse: positive(false),
  },
  restore_previous_checkpoint: {
    key: 'restorePreviousCheckpoint',
    common: true,
    about: 'If the newest checkpoint is broken, use the one before it.',
    parse: () => true,
  },
  help: {
    key: 'help',
    about: 'Shows this text; with --exp also all that --set, --fiddler and --sweep can name.',
    parse: () => true,
  },
};

function unknownFlag(name: string): UsageError {
  const dashed = Object.keys(flagTable).map((f) => `--${f}`);
  return new UsageError(
    `Unknown flag --${name}.${didYouMean(`--${name}`, dashed)} The flags are: ${dashed.join(', ')}.`,
  );
}

/** A flag as it was given: its value is undefined for a switch. */
interface Given {
  readonly name: string;
  readonly spec: FlagSpec;
  readonly text: string | undefined;
}

/** The next flag of `rest`, which loses what it takes. */
function nextFlag(rest: string[]): Given {
  const argument = rest.shift()!;
  const match = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(argument);
  if (!match) throw new UsageError(`Unexpected argument '${argument}': flags are written --name=value.`);
  const name = match[1] === 'h' ? 'help' : match[1]!;
  const spec = Object.hasOwn(flagTable, name) ? flagTable[name]! : undefined;
  if (!spec) throw unknownFlag(name);
  const text = match[2];
  if (spec.value === undefined) {
    if (text !== undefined) throw new UsageError(`--${name}: takes no value; got '${text}'.`);
    return { name, spec, text };
  }
  if (text !== undefined || spec.whenBare !== undefined) return { name, spec, text: text ?? spec.whenBare };
  const following = rest.shift();
  if (following === undefined || following.startsWith('--')) {
    throw new UsageError(`--${name}: expected a value: --${name}=${spec.value}.`);
  }
  return { name, spec, text: following };
}

/**
 * Parses the arguments after the script's name: `--flag=value` or `--flag value`. Of a flag given twice the last one
 * counts (`npm start -- --mode=eval`), except that every change of the experiment does, in its place.
 *
 * @throws UsageError for an unknown flag, a wrong or missing value, a stray argument, flags that do not go together.
 */
export function parseFlags(argv: readonly string[]): Flags {
  const values: Partial<Record<keyof Flags, unknown>> = {};
  const changes: Change[] = [];
  const common: string[] = [];
  const rest = [...argv];
  while (rest.length > 0) {
    const { name, spec, text } = nextFlag(rest);
    const value = spec.parse(text ?? '', `--${name}`);
    if (spec.key === 'changes') changes.push(value as Change);
    else values[spec.key] = value;
    if (spec.common) common.push(text === undefined ? `--${name}` : `--${name}=${text}`);
  }
  const flags = {
    mode: 'train',
    device: 'cpu',
    engine: 'auto',
    restorePreviousCheckpoint: false,
    help: false,
    ...values,
    changes,
    common,
  } as Flags;
  checkConflicts(flags);
  return flags;
}

function checkConflicts({ changes, mode, dump }: Flags): void {
  const swept = changes.find(({ kind }) => kind === 'sweep');
  if (swept === undefined || dump !== undefined || mode.startsWith('train')) return;
  throw new UsageError(
    `${swept.origin} and --mode=${mode} do not go together: a sweep trains. ` +
      `To use what it trained, give --job_log_dir the directory of one of its runs.`,
  );
}

/** The list of flags for --help. */
export function flagsHelp(): string {
  return Object.entries(flagTable)
    .map(([name, { value, whenBare, about }]) => {
      const shown = value === undefined ? '' : whenBare === undefined ? `=${value}` : `[=${value}]`;
      return `  --${name}${shown}\n      ${about}`;
    })
    .join('\n');
}
