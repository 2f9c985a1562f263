/** @file `luthier tokenizer`: training of a vocabulary, and tokens of a text. */
import { didYouMean, UsageError } from '../../system/text/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { type TokenizerFlags, tokenizerFlags } from './tokenizerFlags.js';

/** Flags of each action. */
const flagsOf = {
  train: ['input', 'vocab_size', 'min_frequency', 'special_token', 'out'],
  inspect: ['input', 'text'],
} as const;

type Action = keyof typeof flagsOf;
const actions = Object.keys(flagsOf) as Action[];

function checkFlags(action: Action, values: TokenizerFlags): void {
  const allowed: readonly string[] = flagsOf[action];
  const foreign = Object.keys(values).find((name) => !allowed.includes(name));
  if (foreign !== undefined)
    throw new UsageError(
      `luthier tokenizer ${action} has no flag --${foreign}. Its flags: ${allowed.map((name) => `--${name}`).join(', ')}.`,
    );
}

async function run({ positionals: [action, file], values }: Arguments): Promise<Report> {
  if (!actions.includes(action as Action))
    throw new UsageError(
      `luthier tokenizer has no action '${action}'.${didYouMean(action!, actions)} The actions are: ${actions.join(', ')}.`,
    );
  checkFlags(action as Action, values);
  if (action === 'train') {
    if (file !== undefined)
      throw new UsageError(`luthier tokenizer train takes no file; got '${file}'. Give --input and --out.`);
    return (await import('./trainTokenizer.js')).trainTokenizer(values);
  }
  if (file === undefined)
    throw new UsageError('luthier tokenizer inspect takes the path of a tokenizer.json.');
  return (await import('./inspectTokenizer.js')).inspectTokenizer(file, values);
}

export const tokenizer: Command = {
  usage: 'train|inspect [FILE]',
  positionals: [1, 2],
  flags: tokenizerFlags,
  changes: false,
  details: [
    'train learns byte-level BPE with the words of GPT-2, and writes it in the format of Hugging Face: the same files give',
    'the same tokenizer. inspect shows the tokens of a text, and how many bytes a token stands for.',
    '',
    "  npx luthier tokenizer train --input='pkg:typescript/lib/*.d.ts' --vocab_size=8192 --out=data/tokenizer.json",
    "  npx luthier tokenizer inspect data/tokenizer.json --text='export interface Row {}'",
    "  npx luthier tokenizer inspect data/tokenizer.json --input='src/**/*.ts'",
    '',
    'Exit codes: 0; 2 for a wrong command line, missing files, or a file that is not a tokenizer.',
  ].join('\n'),
  run,
};
