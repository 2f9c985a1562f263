/** @file The command line of main.ts: one table of flags, parsed strictly. */
import { didYouMean } from './hparams/names.js';
import { UsageError } from './registry/errors.js';

/** What a run does; see docs/guide/running.md. */
const modes = ['train', 'eval', 'decode', 'decode_once', 'train_and_eval', 'train_and_decode'] as const;
type Mode = (typeof modes)[number];

/** A `--set path=value` as written. */
interface SetFlag {
  readonly path: string;
  readonly text: string;
  /** `--set numLayers=6`. */
  readonly origin: string;
}

/** The parsed command line. */
export interface Flags {
  readonly exp?: string;
  readonly jobLogDir?: string;
  readonly mode: Mode;
  readonly set: readonly SetFlag[];
  readonly numThreads?: number;
  readonly device: 'cpu' | 'gpu';
  readonly engine: 'auto' | 'onnx' | 'eager';
  readonly peakTflops?: number;
  readonly restorePreviousCheckpoint: boolean;
  readonly help: boolean;
}

interface FlagSpec {
  readonly key: keyof Flags;
  /** How a value is written in --help; none for a switch. */
  readonly value?: string;
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

function setting(text: string, flag: string): SetFlag {
  const at = text.indexOf('=');
  if (at > 0) return { path: text.slice(0, at).trim(), text: text.slice(at + 1), origin: `${flag} ${text}` };
  throw new UsageError(
    `${flag} ${text}: expected path=value, for example ${flag} task.train.numTrainSteps=100.`,
  );
}

/** Every flag, in the order of --help. */
export const flagTable: Readonly<Record<string, FlagSpec>> = {
  exp: {
    key: 'exp',
    value: 'NAME',
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
    about: `${modes.join(', ')}. Default: train.`,
    parse: oneOf(modes),
  },
  set: {
    key: 'set',
    value: 'PATH=VALUE',
    about:
      'Sets a constant of the experiment (numLayers=6) or a field of its configs (task.train.numTrainSteps=100, ' +
      'datasets[0].batchSize=8). Repeatable; applied in order.',
    parse: setting,
  },
  num_threads: {
    key: 'numThreads',
    value: 'N',
    about: 'Threads that compute. Default: the number of cores.',
    parse: positive(true),
  },
  device: {
    key: 'device',
    value: 'cpu|gpu',
    about: 'gpu computes with @tensorflow/tfjs-node-gpu, which must be installed. Default: cpu.',
    parse: oneOf(['cpu', 'gpu']),
  },
  engine: {
    key: 'engine',
    value: 'ENGINE',
    about: 'auto, onnx or eager (op by op, slow, for comparison). Default: auto.',
    parse: oneOf(['auto', 'onnx', 'eager']),
  },
  peak_tflops: {
    key: 'peakTflops',
    value: 'X',
    about: 'Peak of the machine in 1e12 FLOP/s, for MFU. Default: measured in the process.',
    parse: positive(false),
  },
  restore_previous_checkpoint: {
    key: 'restorePreviousCheckpoint',
    about: 'If the newest checkpoint is broken, use the one before it.',
    parse: () => true,
  },
  help: {
    key: 'help',
    about: 'Shows this text; with --exp also what --set can set.',
    parse: () => true,
  },
};

function unknownFlag(name: string): UsageError {
  const dashed = Object.keys(flagTable).map((f) => `--${f}`);
  return new UsageError(
    `Unknown flag --${name}.${didYouMean(`--${name}`, dashed)} The flags are: ${dashed.join(', ')}.`,
  );
}

/**
 * Parses the arguments after the script's name: `--flag=value` or `--flag value`. Of a flag given twice the last one
 * counts (`npm start -- --mode=eval`), except that every --set does.
 *
 * @throws UsageError for an unknown flag, a wrong or missing value, a stray argument.
 */
export function parseFlags(argv: readonly string[]): Flags {
  const values: Partial<Record<keyof Flags, unknown>> = {};
  const set: SetFlag[] = [];
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    const match = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(argument);
    if (!match) throw new UsageError(`Unexpected argument '${argument}': flags are written --name=value.`);
    const name = match[1] === 'h' ? 'help' : match[1]!;
    const spec = Object.hasOwn(flagTable, name) ? flagTable[name]! : undefined;
    if (!spec) throw unknownFlag(name);
    let text = match[2];
    if (spec.value === undefined) {
      if (text !== undefined) throw new UsageError(`--${name}: takes no value; got '${text}'.`);
    } else if (text === undefined) {
      text = argv[++i];
      if (text === undefined || text.startsWith('--')) {
        throw new UsageError(`--${name}: expected a value: --${name}=${spec.value}.`);
      }
    }
    const value = spec.parse(text ?? '', `--${name}`);
    if (name === 'set') set.push(value as SetFlag);
    else values[spec.key] = value;
  }
  return {
    mode: 'train',
    device: 'cpu',
    engine: 'auto',
    restorePreviousCheckpoint: false,
    help: false,
    ...values,
    set,
  } as Flags;
}

/** The list of flags for --help. */
export function flagsHelp(): string {
  return Object.entries(flagTable)
    .map(([name, spec]) => `  --${name}${spec.value ? `=${spec.value}` : ''}\n      ${spec.about}`)
    .join('\n');
}
