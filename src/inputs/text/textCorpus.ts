/** @file One split of a text corpus, as tokens. */

import { createHash } from 'node:crypto';
import type { DataFile } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import { readFiles, resolveFiles } from './corpusFiles.js';
import { heldOutFiles, type SplitName, splitStream, streamOf, type TokenStream } from './tokens.js';
import type { BaseTokenizer } from './vocabularies/baseTokenizer.js';

/** Files of a corpus, and the split to read. */
export interface TextCorpusOptions {
  readonly files: readonly string[];
  readonly split: SplitName;
  readonly splitBy: 'file' | 'text';
  readonly validationFraction: number;
  readonly validationFiles: readonly string[];
}

/** A split after reading. */
interface TextCorpus {
  /** The tokens of the split, document by document. */
  readonly stream: TokenStream;
  /** The files of the split. */
  readonly files: readonly DataFile[];
}

/**
 * Reads one split.
 *
 * @throws InputError for missing or unencodable files, and for a split without a token to predict
 */
export function readTextCorpus(options: TextCorpusOptions, tokenizer: BaseTokenizer): TextCorpus {
  const { split } = options;
  const held = resolveFiles(options.validationFiles);
  const heldPaths = new Set(held.map((file) => file.path));
  const rest = resolveFiles(options.files).filter((file) => !heldPaths.has(file.path));
  const bySpec = held.length > 0;
  const byFile = bySpec || options.splitBy === 'file';
  const everyNth = heldOutFiles(rest.length, bySpec ? 0 : options.validationFraction);
  const isWanted = (path: string, index: number): boolean =>
    !byFile || split === 'all' || (heldPaths.has(path) || everyNth[index]!) === (split === 'validation');

  const files = [...rest, ...held];
  const isLearned = tokenizer.needsCorpus;
  const read = readFiles(isLearned ? files : files.filter((file, index) => isWanted(file.path, index)));
  if (isLearned) tokenizer.fit(read);
  const wanted = isLearned ? read.filter((file, index) => isWanted(file.path, index)) : read;
  const documents = wanted.map((file) => tokenizer.encodeFile(file));
  const stream = streamOf(documents.filter((document) => document.length > 0));
  const part = byFile ? stream : splitStream(stream, options.validationFraction, split);
  const sizes = wanted.map(({ name, path, bytes }) => ({ name, path, size: bytes.length }));
  if (part.tokens.length >= 2) return { stream: part, files: sizes };

  const paths = files.slice(0, 3).map((file) => file.path);
  const where = `${plural(files.length, 'file')} (${paths.join(', ')}${files.length > 3 ? ', …' : ''})`;
  throw new InputError(
    wanted.length === files.length && stream.tokens.length === 0
      ? `The corpus is empty: no text in ${where}.`
      : `Split '${split}' has ${plural(part.tokens.length, 'token')} of ${where}, expected at least 2. It is cut by splitBy '${options.splitBy}' and validationFraction ${options.validationFraction}; validationFiles can name the files to hold out.`,
  );
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Digest of a token stream: equal for equal documents in the same order, on every machine. */
export function fingerprint(stream: TokenStream): string {
  const { tokens, starts } = stream;
  const hash = createHash('sha256')
    .update(JSON.stringify([tokens.BYTES_PER_ELEMENT, starts]))
    .update(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength))
    .digest('hex');
  return `${plural(starts.length - 1, 'document')} of ${plural(tokens.length, 'token')} (sha256 ${hash.slice(0, 16)})`;
}
