/** @file Tasks of language models in JSON Lines files, an example a line. */
import { basename } from 'node:path';
import { z } from 'zod';
import { explain, parseJson, readRegularFile } from '../../files/index.js';
import { UsageError } from '../../system/text/index.js';

const text = z.string();
const filled = text.min(1);

/** Which of several endings of a context is the likeliest. */
const multipleChoice = z
  .strictObject({
    context: text,
    choices: z.array(filled).min(2),
    /** The index of the right one. */
    answer: z.int().nonnegative(),
    /** Stands between the context and a choice. */
    delimiter: text.default(' '),
  })
  .refine(({ choices, answer }) => answer < choices.length, {
    path: ['answer'],
    error: 'expected the index of a choice',
  });

/** How likely a text is. */
const perplexity = z.strictObject({ text: filled });

/** Whether a greedy continuation is the answer, or one of several. */
const exactMatch = z.strictObject({
  prompt: filled,
  answer: z.union([text, z.array(text).min(1)]),
  maxTokens: z.int().positive().default(32),
  /** Texts that end a continuation. */
  stop: z.array(filled).default(['\n']),
});

/** Kinds of tasks, by the key that tells them apart. */
const kinds = {
  choices: { name: 'multipleChoice', schema: multipleChoice },
  text: { name: 'perplexity', schema: perplexity },
  prompt: { name: 'exactMatch', schema: exactMatch },
} as const;

export type MultipleChoice = z.output<typeof multipleChoice>;
export type PerplexityText = z.output<typeof perplexity>;
export type ExactMatch = z.output<typeof exactMatch>;

/** A file's examples, all of one kind. */
export type LanguageTask = { readonly name: string; readonly file: string } & (
  | { readonly kind: 'multipleChoice'; readonly examples: readonly MultipleChoice[] }
  | { readonly kind: 'perplexity'; readonly examples: readonly PerplexityText[] }
  | { readonly kind: 'exactMatch'; readonly examples: readonly ExactMatch[] }
);

const KEYS =
  'A line has the keys context, choices, answer and delimiter (multiple choice), text (perplexity), or prompt, answer, maxTokens and stop (exact match)';

/** Reads a task. @throws UsageError with the line, for a file that can't be read or has other contents */
export function readTask(file: string): LanguageTask {
  let contents: string;
  try {
    contents = new TextDecoder('utf-8', { fatal: true }).decode(readRegularFile(file));
  } catch (error) {
    throw new UsageError(`${file}: cannot be read: ${explain(error)}.`, { cause: error });
  }
  let kind: (typeof kinds)[keyof typeof kinds] | undefined;
  const examples: unknown[] = [];
  for (const [i, line] of contents.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      kind ??= kindOf(line);
      examples.push(parseJson<unknown>(line, kind.schema));
    } catch (error) {
      throw new UsageError(`${file}:${i + 1}: ${(error as Error).message}. ${KEYS}.`, {
        cause: error,
      });
    }
  }
  if (kind === undefined) throw new UsageError(`${file} has no examples.`);
  return { name: basename(file).replace(/\.jsonl?$/, ''), file, kind: kind.name, examples } as LanguageTask;
}

function kindOf(line: string): (typeof kinds)[keyof typeof kinds] {
  const value = parseJson(line, z.record(z.string(), z.unknown()));
  const key = Object.keys(kinds).find((each) => Object.hasOwn(value, each));
  if (key === undefined) throw new Error('expected one of the keys choices, text or prompt');
  return kinds[key as keyof typeof kinds];
}
