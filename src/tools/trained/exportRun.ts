/** @file `luthier export`: a trained model as a file for other programs. */
import { dirname } from 'node:path';
import { nonEmpty } from '../../cli/commandLine/index.js';
import { explain, makeDirectory, writeWhole } from '../../files/index.js';
import { showFile } from '../../registry/names/index.js';
import { formatBytes } from '../../review/text/index.js';
import { UsageError } from '../../system/text/index.js';
import { compareOnnx, exportOnnx } from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { runOf, trainedFlags } from './trainedFlags.js';

async function exported(args: Arguments): Promise<Report> {
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
      about: 'The file. Default: model_STEP.onnx in DIR.',
    },
    outputs: {
      ...{ key: 'outputs', value: 'NAME,…' },
      about: 'Predictions that the file computes. Default: those that need the fewest input arrays.',
      parse: (text) => text.split(',').map((name) => name.trim()),
    },
    ...trainedFlags,
  },
  changes: false,
  formats: ['onnx'],
  details: [
    'The file has the weights that evaluations use (their moving average if task.train.evalUseEmaStates), named inputs and',
    'outputs, a first dimension of any size, and the experiment, step and commit in its metadata.',
    "--format=onnx, the file's only format, is the default; --format=json describes the file as JSON.",
    'Checkpoints are safetensors files already: DIR/checkpoints/checkpoint_STEP/state.safetensors.',
    '',
    '  npx luthier export out/lm_small --format=onnx --out=small.onnx',
    '',
    'Exit codes: 0; 1 if the run has no checkpoint, or a model that ONNX has no operators for; 2 for a wrong command line.',
  ].join('\n'),
  run: exported,
};
