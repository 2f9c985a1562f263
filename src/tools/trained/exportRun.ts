/** @file `luthier export`: a trained model as a file for other programs. */
import { dirname } from 'node:path';
import { nonEmpty, oneOf } from '../../cli/commandLine/index.js';
import { explain, makeDirectory, writeWhole } from '../../files/index.js';
import { showFile } from '../../registry/names/index.js';
import { formatBytes } from '../../review/text/index.js';
import { formatCount, UsageError } from '../../system/text/index.js';
import {
  compareOnnx,
  exportAdapter,
  exportGguf,
  exportHuggingFace,
  exportOnnx,
  type PublishOptions,
  type TrainedRun,
} from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { runOf, trainedFlags } from './trainedFlags.js';

const PLAIN = ['float32', 'bfloat16', 'float16'] as const;

/** Types of GGUF's tensors by their names in the flag. */
const GGUF_TYPES = {
  float32: 'F32',
  float16: 'F16',
  bfloat16: 'BF16',
  q8_0: 'Q8_0',
  q4_0: 'Q4_0',
  q4_k: 'Q4_K',
} as const;

type TypeName = keyof typeof GGUF_TYPES;

/** Options of an export to another framework. */
interface Publishing extends Omit<PublishOptions, 'dtype'> {
  readonly dtype?: TypeName | undefined;
}

/** The type of tensors outside of GGUF. @throws UsageError for a packed one */
function plainType(dtype: TypeName | undefined, format: string): (typeof PLAIN)[number] | undefined {
  const plain = PLAIN.find((each) => each === dtype);
  if (dtype !== undefined && plain === undefined)
    throw new UsageError(
      `--dtype=${dtype} is for --format=gguf, not ${format}: expected ${PLAIN.join(', ')}.`,
    );
  return plain;
}

/** Formats that other frameworks load, by the writer of each. */
const PUBLISHERS = {
  huggingface: (run: TrainedRun, options: Publishing) =>
    exportHuggingFace(run, { ...options, dtype: plainType(options.dtype, 'huggingface') }),
  peft: (run: TrainedRun, options: Publishing) =>
    exportAdapter(run, { ...options, dtype: plainType(options.dtype, 'peft') }),
  gguf: (run: TrainedRun, { dtype, ...options }: Publishing) =>
    exportGguf(run, { ...options, type: dtype && GGUF_TYPES[dtype] }),
} as const;

type PublishFormat = keyof typeof PUBLISHERS;

async function published(args: Arguments, format: PublishFormat): Promise<Report> {
  const { out, config, dtype, outputs } = args.values as Partial<Publishing> & { outputs?: unknown };
  if (outputs !== undefined)
    throw new UsageError(`--outputs: predictions are chosen for --format=onnx, not ${format}.`);
  const directory = args.positionals[0]!.replace(/[\\/]+$/, '');
  const run = await runOf(args, { parametersOf: 'eval' });
  const folder =
    out ?? `${directory}/${format === 'gguf' ? `model_${run.step}.gguf` : `${format}_${run.step}`}`;
  const { tensors, count, files } = await PUBLISHERS[format](run, { directory, out: folder, config, dtype });
  await run.dispose();
  const shown = showFile(folder);
  const text = () =>
    [
      `Wrote ${shown}: ${tensors} tensors of ${formatCount(count)} elements, ${run.name} at step ${run.step}.`,
      ...(run.isAveraged ? ['weights: the moving average of the parameters, as evaluated'] : []),
      `files: ${files.join(', ')}`,
    ].join('\n');
  const json = () => ({
    experiment: run.name,
    step: run.step,
    directory: shown,
    tensors,
    elements: count,
    files,
  });
  return { text, further: { [format]: text }, json };
}

async function exported(args: Arguments): Promise<Report> {
  if (Object.hasOwn(PUBLISHERS, args.format)) return published(args, args.format as PublishFormat);
  const { outputs, out } = args.values as { outputs?: readonly string[]; out?: string };
  const run = await runOf(args, { parametersOf: 'eval' });
  const { bytes, ...model } = exportOnnx(run, outputs);
  const difference = await compareOnnx(run, bytes, model);
  await run.dispose();
  const file = out ?? `${args.positionals[0]!.replace(/[\\/]+$/, '')}/model_${run.step}.onnx`;
  try {
    makeDirectory(dirname(file));
    writeWhole(file, bytes);
  } catch (error) {
    throw new UsageError(
      `${out === undefined ? file : `--out=${file}`}: cannot be written: ${explain(error)}.`,
    );
  }
  const shown = showFile(file);
  const lines = [
    `${formatBytes(bytes.length)}, ${run.name} at step ${run.step}`,
    ...(run.isAveraged ? ['weights: the moving average of the parameters, as evaluated'] : []),
    `inputs: ${model.inputs.join(', ')}`,
    `outputs: ${model.outputs.join(', ')}`,
    ...(model.classes ? [`classes: ${model.classes.join(', ')}`] : []),
    ...[...model.others].map(([name, paths]) => `left out: ${name}, of ${paths.join(', ')}`),
    `ONNX Runtime computes the same, to ${difference.toExponential(0)} of the largest value.`,
  ];
  const text = () => [`Wrote ${shown}: ${lines[0]}.`, ...lines.slice(1)].join('\n');
  return {
    text,
    further: { onnx: text },
    json: () => ({
      ...{ experiment: run.name, step: run.step, isAveraged: run.isAveraged, file: shown },
      ...{ bytes: bytes.length, difference },
      ...{ inputs: model.inputs, outputs: model.outputs, others: Object.fromEntries(model.others) },
      ...(model.classes && { classes: model.classes }),
    }),
  };
}

export const exportCommand: Command = {
  usage: 'DIR',
  positionals: [1, 1],
  flags: {
    out: {
      ...{ key: 'out', value: 'FILE', parse: nonEmpty },
      about:
        'The file or folder. Default: model_STEP.onnx, model_STEP.gguf, huggingface_STEP or peft_STEP in DIR.',
    },
    outputs: {
      ...{ key: 'outputs', value: 'NAME,…' },
      about: 'Predictions that the file computes. Default: those that need the fewest input arrays.',
      parse: (text) => text.split(',').map((name) => name.trim()),
    },
    config: {
      ...{ key: 'config', value: 'DIR', parse: nonEmpty },
      about:
        "Of --format=huggingface, peft and gguf: folder with the config.json of the run's network. Default: that of the published " +
        'model that the run was imported or started from.',
    },
    dtype: {
      ...{ key: 'dtype', value: 'TYPE', parse: oneOf(Object.keys(GGUF_TYPES)) },
      about:
        'Of --format=huggingface, peft and gguf: type of the tensors. Default: as checkpoints hold them; of gguf float32. ' +
        'Of gguf also q8_0, q4_0 and q4_k, which pack matrices in blocks of a row.',
    },
    ...trainedFlags,
  },
  changes: false,
  formats: ['onnx', ...Object.keys(PUBLISHERS)],
  details: [
    'The file has the weights that evaluations use (their moving average if task.train.evalUseEmaStates), named inputs and',
    'outputs, a first dimension of any size, and the experiment, step and commit in its metadata.',
    '--format=onnx is the default; --format=json describes the file as JSON.',
    '--format=huggingface writes a folder that transformers loads: config.json, model.safetensors, tokenizer and chat template.',
    '--format=gguf writes a file that llama.cpp loads, with tokenizer and chat template.',
    "--format=peft writes the factors of a run's LoRA as an adapter of PEFT.",
    'Checkpoints are safetensors files already: DIR/checkpoints/checkpoint_STEP/state.safetensors.',
    '',
    '  npx luthier export out/lm_small --format=onnx --out=small.onnx',
    '  npx luthier export out/llama --format=huggingface --out=models/mine',
    '',
    'Exit codes: 0; 1 if the run has no checkpoint, or a model that ONNX has no operators for; 2 for a wrong command line.',
  ].join('\n'),
  run: exported,
};
