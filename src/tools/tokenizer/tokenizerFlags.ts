/** @file Flags of `luthier tokenizer`. */
import { type FlagTable, nonEmpty, positive } from '../../cli/commandLine/index.js';

/** Values of the flags. */
export interface TokenizerFlags {
  readonly input?: readonly string[];
  readonly vocab_size?: number;
  readonly min_frequency?: number;
  readonly special_token?: readonly string[];
  readonly out?: string;
  readonly text?: string;
}

export const tokenizerFlags: FlagTable = {
  input: {
    ...{ key: 'input', value: 'GLOB', repeated: true, parse: nonEmpty },
    about: "Text files: a path, a glob or a 'pkg:<package>/<glob>' spec. May be repeated.",
  },
  text: {
    ...{ key: 'text', value: 'TEXT', parse: nonEmpty },
    about: 'inspect: text whose tokens to show. Without it and --input, standard input.',
  },
  vocab_size: {
    ...{ key: 'vocab_size', value: 'N', parse: positive(true) },
    about: 'train: ids in all: special tokens, 256 bytes, merges. Default: 8192.',
  },
  min_frequency: {
    ...{ key: 'min_frequency', value: 'N', parse: positive(true) },
    about: 'train: times that a pair must occur to be merged. Default: 2.',
  },
  special_token: {
    ...{ key: 'special_token', value: 'TEXT', repeated: true, parse: nonEmpty },
    about:
      'train: a token with an id from 0 on, in the given order. May be repeated. Default: <|endoftext|>.',
  },
  out: {
    ...{ key: 'out', value: 'FILE', parse: nonEmpty },
    about: 'train: the tokenizer.json to write.',
  },
};
