/** @file `luthier tokenizer train`: a byte-level BPE learned from files. */
import { dirname } from 'node:path';
import { makeDirectory, writeWhole } from '../../files/index.js';
import {
  InputError,
  readFiles,
  resolveFiles,
  tokenizerJson,
  trainBpe,
  WordCounts,
} from '../../inputs/index.js';
import { counted, formatBytes } from '../../review/text/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Report } from '../command.js';
import type { TokenizerFlags } from './tokenizerFlags.js';

/** Counts the words of files, which are in memory one at a time. */
function countWords(specs: readonly string[]): { corpus: WordCounts; numFiles: number } {
  const corpus = new WordCounts();
  try {
    const files = resolveFiles(specs);
    for (const file of files) for (const { bytes } of readFiles([file])) corpus.add(bytes);
    return { corpus, numFiles: files.length };
  } catch (error) {
    throw error instanceof InputError ? new UsageError(error.message) : error;
  }
}

/** Learns and writes a tokenizer. */
export function trainTokenizer(flags: TokenizerFlags): Report {
  const { input, out, vocab_size: wanted = 8192, min_frequency: minFrequency = 2 } = flags;
  const specialTokens = flags.special_token ?? ['<|endoftext|>'];
  if (input === undefined || out === undefined)
    throw new UsageError(
      'luthier tokenizer train needs --input, the files to learn from, and --out, the file to write.',
    );
  if (new Set(specialTokens).size < specialTokens.length)
    throw new UsageError(`--special_token: expected different tokens; got ${specialTokens.join(', ')}.`);
  const firstId = specialTokens.length;
  if (wanted < firstId + 256)
    throw new UsageError(
      `--vocab_size: expected ${firstId + 256} or more, for 256 bytes and ${counted(firstId, 'special token')}; got ${wanted}.`,
    );
  const { corpus, numFiles } = countWords(input);
  const contents = tokenizerJson({
    specialTokens,
    merges: trainBpe(corpus, { firstId, vocabSize: wanted, minFrequency }),
  });
  makeDirectory(dirname(out));
  writeWhole(out, contents);
  const vocabSize = Object.keys(JSON.parse(contents).model.vocab).length;
  const short =
    vocabSize < wanted
      ? ` No further pair occurs ${minFrequency} times: --vocab_size asked for ${wanted}.`
      : '';
  return {
    text: () =>
      `${out}: ${vocabSize} tokens, learned from ${counted(numFiles, 'file')} of ${formatBytes(corpus.numBytes)} with ${counted(corpus.words.size, 'distinct word')}.${short}`,
    json: () => ({
      ...{ file: out, vocabSize, specialTokens },
      ...{ files: numFiles, bytes: corpus.numBytes, words: corpus.words.size },
    }),
  };
}
