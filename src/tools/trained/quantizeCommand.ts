/** @file `luthier quantize`: a trained run with weights in few bits, as a run of its own. */
import { nonEmpty, oneOf } from '../../cli/commandLine/index.js';
import { showFile } from '../../registry/names/index.js';
import { formatBytes, markdownTable } from '../../review/text/index.js';
import { formatCount, UsageError } from '../../system/text/index.js';
import {
  loadRun,
  type QuantizedQuality,
  type QuantizeOptions,
  quantizedQuality,
  quantizeRun,
} from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { trainedFlags } from './trainedFlags.js';

/** Batches of the quality's data by default. */
const BATCHES = 8;

const wholeNumber = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new UsageError(`expected a number of batches, got '${text}'`);
  return Number(text);
};

function qualityRows({ divergence, perplexity, agreement, error, spread }: QuantizedQuality): string[][] {
  const [before, after] = perplexity;
  return [
    ['KL divergence, nats', divergence.toPrecision(3)],
    [
      'perplexity',
      `${before.toFixed(4)} → ${after.toFixed(4)} (${(100 * (after / before - 1)).toFixed(3)} %)`,
    ],
    ['same likeliest class', `${(100 * agreement).toFixed(2)} %`],
    ['RMS error of logits', `${error.toPrecision(3)}, of ${spread.toPrecision(3)}`],
  ];
}

async function quantized({ positionals, values }: Arguments): Promise<Report> {
  const { to, batches = BATCHES, ...options } = values as Partial<QuantizeOptions> & { batches?: number };
  if (to === undefined)
    throw new UsageError('luthier quantize: no directory for the run: --to=DIR is required.');
  const directory = positionals[0]!;
  const { name, step, weights, elements, calibrated, bytes } = await quantizeRun(directory, {
    ...options,
    to,
  });
  let quality: QuantizedQuality | null = null;
  if (batches > 0) {
    const runs = [await loadRun(directory, options), await loadRun(to)] as const;
    quality = await quantizedQuality(directory, runs, batches);
    for (const run of runs) await run.dispose();
  }
  const shown = showFile(to);
  const lines = [
    `Wrote ${shown}: ${name} at step ${step}, ${formatCount(weights)} of ${formatCount(elements)} parameters in ${options.bits ?? 8} bits, ` +
      `${formatBytes(bytes[0])} → ${formatBytes(bytes[1])}${calibrated > 0 ? `, ${formatCount(calibrated)} calibrated` : ''}.`,
    ...(quality === null
      ? ['The model has no logits of labels in the data for evaluations, by which both could be compared.']
      : [
          `Over ${formatCount(quality.labels)} labels of the data for evaluations:`,
          '',
          markdownTable(qualityRows(quality), ['', 'before → after']),
        ]),
  ];
  return {
    text: () => (batches > 0 ? lines : lines.slice(0, 1)).join('\n'),
    json: () => ({
      experiment: name,
      step,
      directory: shown,
      weights,
      calibrated,
      parameters: elements,
      bytes,
      quality,
    }),
  };
}

export const quantizeCommand: Command = {
  usage: 'RUN',
  positionals: [1, 1],
  flags: {
    to: { ...{ key: 'to', value: 'DIR', parse: nonEmpty }, about: 'Directory of the run that is written.' },
    bits: {
      ...{ key: 'bits', value: 'N' },
      about: 'Bits of a weight: 8 or 4. Default: 8.',
      parse: (text, flag) => Number(oneOf(['8', '4'])(text, flag)),
    },
    table_bits: {
      ...{ key: 'tableBits', value: 'N' },
      about:
        'Bits of tables that are looked up, and of the weights that make logits, which rounding changes most: 8 or 4. Default: 8.',
      parse: (text, flag) => Number(oneOf(['8', '4'])(text, flag)),
    },
    group: {
      ...{ key: 'group', value: 'N' },
      about:
        'Weights of an output with one scale: 32, 64, 128, or 0 for all of them. Default: 0 for 8 bits, 32 for 4.',
      parse: (text, flag) => Number(oneOf(['0', '32', '64', '128'])(text, flag)),
    },
    activations: {
      ...{ key: 'activations', value: 'N' },
      about:
        'Bits that rows are rounded to before they are multiplied by weights, in the groups of these: 8. Default: they are not rounded.',
      parse: (text, flag) => Number(oneOf(['8'])(text, flag)),
    },
    skip: {
      ...{ key: 'skip', value: 'PATTERN,…' },
      about: 'Variables that stay as they are, by regular expressions that match whole paths.',
      parse: (text) => text.split(','),
    },
    calibration: {
      ...{ key: 'calibration', value: 'N', parse: wholeNumber },
      about:
        'Batches of the data for training by which weights of products make up for the rounding of those before them. Default: 0.',
    },
    batches: {
      ...{ key: 'batches', value: 'N', parse: wholeNumber },
      about: `Batches of the data for evaluations that both runs are compared over; 0: no comparison. Default: ${BATCHES}.`,
    },
    checkpoint: trainedFlags.checkpoint!,
  },
  changes: false,
  details: [
    'Weights of products, convolutions and tables become codes with scales (task.model.quantization); biases, norms and the like',
    'stay. What is written is a run: luthier generate, serve, loadRun and --mode=eval take it as any other.',
    '',
    '  npx luthier quantize out/lm_small --to=out/lm_small_int8 --activations=8',
    '  npx luthier quantize out/llama --to=out/llama_int4 --bits=4 --group=32 --calibration=16',
    '',
    'Exit codes: 0; 1 if the run has no checkpoint, a weight that is not finite, or groups that do not fit; 2 for a wrong command line.',
  ].join('\n'),
  run: quantized,
};
