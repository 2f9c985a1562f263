/** @file `luthier tokenizer inspect`: the tokens of a text, and statistics of files. */
import { text as textOf } from 'node:stream/consumers';
import { build } from '../../hparams/index.js';
import {
  InputError,
  PretrainedTokenizer,
  readFiles,
  resolveFiles,
  type SourceFile,
} from '../../inputs/index.js';
import { counted, formatBytes } from '../../review/text/index.js';
import { type Paint, UsageError } from '../../system/text/index.js';
import type { Report } from '../command.js';
import type { TokenizerFlags } from './tokenizerFlags.js';

/** Backgrounds of neighbouring tokens. */
const backgrounds = ['bgBlue', 'bgGreen', 'bgMagenta', 'bgYellow'] as const;

/** A text's tokens: in colours, or with a bar between them. */
function shownTokens(tokens: readonly string[], paint: Paint): string {
  const isColoured = paint('bold', 'x') !== 'x';
  return tokens
    .map((token, i) => {
      // A line break within a background would colour the rest of the terminal's line.
      const visible = token.replaceAll('\n', '⏎').replaceAll('\t', '⇥');
      const shown = paint(backgrounds[i % backgrounds.length]!, visible);
      if (token.endsWith('\n')) return `${shown}\n`;
      return isColoured || i + 1 === tokens.length ? shown : `${shown}|`;
    })
    .join('');
}

/** Counts over texts. */
interface Statistics {
  bytes: number;
  tokens: number;
  unknown: number;
  /** Whether decoding has given every text back. */
  isLossless: boolean;
  readonly used: Set<number>;
}

function addTo(statistics: Statistics, tokenizer: PretrainedTokenizer, file: SourceFile): void {
  const ids = tokenizer.encodeFile(file);
  const { unkId } = tokenizer;
  statistics.bytes += file.bytes.length;
  statistics.tokens += ids.length;
  for (const id of ids) {
    statistics.used.add(id);
    if (id === unkId) statistics.unknown++;
  }
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(file.bytes);
  statistics.isLossless &&= tokenizer.decode(ids) === text;
}

function summaryOf(tokenizer: PretrainedTokenizer, statistics: Statistics): string {
  const { bytes, tokens, unknown, used, isLossless } = statistics;
  const { vocabSize } = tokenizer;
  const special = [...tokenizer.specialTokens].map(([id, token]) => `${token} (${id})`).join(', ');
  return [
    `${counted(tokens, 'token')} for ${formatBytes(bytes)}: ${(bytes / tokens || 0).toFixed(2)} bytes a token`,
    `${used.size} of ${vocabSize} ids used, ${unknown} unknown; decoding ${isLossless ? 'reproduces the text' : 'gives a different text'}`,
    `Special tokens: ${special || 'none'}`,
  ].join('\n');
}

/** Tokens of a text, or token statistics of files. */
export async function inspectTokenizer(path: string, flags: TokenizerFlags): Promise<Report> {
  const { input } = flags;
  if (input !== undefined && flags.text !== undefined)
    throw new UsageError(
      'luthier tokenizer inspect: --text shows a text, --input counts files; give one of them.',
    );
  const tokenizer = build(PretrainedTokenizer.config({ file: path }));
  const statistics: Statistics = { bytes: 0, tokens: 0, unknown: 0, isLossless: true, used: new Set() };
  try {
    if (input !== undefined) {
      for (const file of resolveFiles(input))
        for (const read of readFiles([file])) addTo(statistics, tokenizer, read);
      return reportOf(tokenizer, statistics, undefined);
    }
    const text = flags.text ?? (await textOf(process.stdin));
    addTo(statistics, tokenizer, {
      name: 'the text',
      path: 'the text',
      bytes: new TextEncoder().encode(text),
    });
    return reportOf(tokenizer, statistics, tokenizer.encode(text));
  } catch (error) {
    throw error instanceof InputError ? new UsageError(error.message) : error;
  }
}

function reportOf(
  tokenizer: PretrainedTokenizer,
  statistics: Statistics,
  ids: Int32Array | undefined,
): Report {
  const summary = summaryOf(tokenizer, statistics);
  const tokens = Array.from(ids ?? [], (id) => tokenizer.decode([id]));
  const { used, ...counts } = statistics;
  return {
    text: (paint) => (ids === undefined ? summary : `${shownTokens(tokens, paint)}\n\n${summary}`),
    json: () => ({
      ...{ vocabSize: tokenizer.vocabSize, ...counts, used: used.size },
      ...(ids && { ids: [...ids], texts: tokens }),
    }),
  };
}
