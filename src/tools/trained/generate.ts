/** @file `luthier generate`: continuations of prompts, as they are drawn. */

import { type FlagTable, nonEmpty } from '../../cli/commandLine/index.js';
import { coerce } from '../../hparams/index.js';
import { writeResult } from '../../system/index.js';
import { type GenerateOptions, generationFields, type TrainedRun } from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { type Continued, continued, converse, promptLines } from './prompts.js';
import { cacheFlags, runOf, trainedFlags } from './trainedFlags.js';

// Scores are no part of the text.
const { stop, logprobs: _, scoresPrompt: __, ...others } = generationFields;

/** Flags of the settings, `--top_k` for topK. */
const settingsFlags: FlagTable = {
  ...Object.fromEntries(
    Object.entries(others).map(([key, schema]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      {
        ...{ key, value: 'X', about: schema.description! },
        parse: (text: string, flag: string) => coerce(schema, text, flag),
      },
    ]),
  ),
  stop: {
    ...{ key: 'stop', value: 'TEXT', repeated: true, parse: nonEmpty },
    about: 'Stop sequence, which is not part of the continuation. May be repeated.',
  },
};

/** Continues prompts; those of a text report are written as they are drawn. */
async function continueAll(
  run: TrainedRun,
  prompts: AsyncIterable<string> | Iterable<string>,
  options: GenerateOptions,
  format: string,
): Promise<Continued[]> {
  const all: Continued[] = [];
  for await (const prompt of prompts) {
    if (format === 'text' && all.length > 0) writeResult('\n');
    all.push(
      await continued(run, prompt, options, (piece) => {
        if (format === 'text') writeResult(piece);
      }),
    );
  }
  return all;
}

async function generated(args: Arguments): Promise<Report> {
  const { checkpoint, numThreads, engine, prompt, ...options } = args.values as GenerateOptions & {
    readonly [flag: string]: unknown;
  };
  const run = await runOf(args);
  const isTyped = prompt === undefined && process.stdin.isTTY === true && args.format === 'text';
  let all: Continued[] = [];
  if (isTyped) await converse(run, options, { input: process.stdin, output: process.stdout });
  else {
    const prompts = prompt === undefined ? promptLines(process.stdin) : [prompt as string];
    all = await continueAll(run, prompts, options, args.format);
  }
  await run.dispose();
  return {
    // The text is on the terminal already; the line ends here.
    text: () => '',
    json: () => ({ experiment: run.name, step: run.step, completions: all }),
  };
}

export const generate: Command = {
  usage: 'DIR',
  positionals: [1, 1],
  flags: {
    prompt: {
      ...{ key: 'prompt', value: 'TEXT', parse: nonEmpty },
      about: 'Text to continue. Default: lines typed at the terminal or read from a pipe.',
    },
    ...settingsFlags,
    ...cacheFlags,
    ...trainedFlags,
  },
  changes: false,
  details: [
    'DIR is the --job_log_dir of a run that trained a language model on text, or an encoder-decoder, whose sources are the',
    'prompts. Its task.decode gives the defaults.',
    '',
    "  npx luthier generate out/lm_small --prompt='export interface ' --temperature=0.8 --seed=1",
    '  npx luthier generate out/lm_small --format=json < prompts.txt',
    '',
    'Exit codes: 0; 1 if the run has no checkpoint or a broken one; 2 for a wrong command line or prompt.',
  ].join('\n'),
  run: generated,
};
