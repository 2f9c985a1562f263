/** @file Flags that look inside a training run: taps of activations and gradients, debugging. */
import { UsageError } from '../../system/text/index.js';
import { type FlagTable, nonEmpty, oneOf } from '../commandLine/flagTable.js';

/** Whether a step, counted from 1, is one of a set. */
type StepSet = (step: number) => boolean;

// Steps are written as in cron: 1, 100-110, or */50 for every 50th; several are joined by commas.
function parseSteps(text: string, flag: string): StepSet {
  const sets = text.split(',').map((item): StepSet => {
    const [, first, last, interval] = /^(?:(\d+)(?:-(\d+))?|\*\/(\d+))$/.exec(item.trim()) ?? [];
    if (Number(interval) > 0) return (step) => step % Number(interval) === 0;
    const [from, to] = [Number(first), Number(last ?? first)];
    if (from > 0 && to >= from) return (step) => step >= from && step <= to;
    throw new UsageError(
      `${flag}: expected steps from 1, such as 1,10 or 100-110 or */50 (every 50th); got '${item}'.`,
    );
  });
  return (step) => sets.some((has) => has(step));
}

export const inspectionFlags = {
  tap: {
    key: 'tap',
    value: 'PATTERN',
    repeated: true,
    about:
      "Prints statistics of activations and their gradients: of layers by path and of this.tap('name', x) in layers. " +
      "* matches within a name, ** across names: 'lm/transformer/x_layers_0/**'. May be repeated.",
    parse: nonEmpty,
  },
  tap_steps: {
    key: 'tapSteps',
    value: 'STEPS',
    about: 'Steps at which --tap prints: 1,10 or 100-110 or */50, every 50th. Default: 1.',
    parse: parseSteps,
  },
  tap_values: {
    key: 'tapValues',
    about: 'Writes the values that --tap reads, too: taps/step_00000001.safetensors.',
    parse: () => true,
  },
  debug: {
    key: 'debug',
    value: 'nan|eager',
    about:
      'nan: ends at the first value that is not finite, with its layer, operation and line. ' +
      'eager: layers run op by op, uncompiled: print and dataSync work in them.',
    parse: oneOf(['nan', 'eager']),
  },
} satisfies FlagTable;
