/** @file Prompts of a command, from a pipe or typed on a terminal, and their continuations as they are drawn. */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { writeText } from '../../system/index.js';
import type { Completion, GenerateOptions, TrainedRun } from '../../trained/index.js';

/** A prompt and its continuation. */
export interface Continued {
  readonly prompt: string;
  readonly text: string;
  readonly tokens: number;
  readonly finishReason: string;
}

/** Continues a prompt. @param tell receives each piece of the text */
export async function continued(
  run: TrainedRun,
  prompt: string,
  options: GenerateOptions,
  tell: (piece: string) => void,
): Promise<Continued> {
  const completion = run.stream(prompt, options);
  let text = '';
  for await (const piece of completion) {
    tell(piece);
    text += piece;
  }
  return { prompt, text, tokens: completion.tokens, finishReason: completion.finishReason! };
}

/** The lines of a pipe that are not empty. */
export async function* promptLines(input: Readable): AsyncGenerator<string> {
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
    if (line !== '') yield line;
}

/**
 * Continues typed lines, one by one, until Ctrl-C or the end of input. A line that can't be continued gets its error.
 */
export async function converse(
  run: TrainedRun,
  options: GenerateOptions,
  { input, output }: { readonly input: Readable; readonly output: Writable },
): Promise<void> {
  const lines = createInterface({ input, output, terminal: true, prompt: '> ' });
  let current: Completion | undefined;
  let isLeft = false;
  lines.on('SIGINT', () => {
    isLeft = true;
    current?.cancel();
    lines.close();
  });
  lines.prompt();
  for await (const line of lines) {
    if (isLeft) break;
    try {
      current = line === '' ? undefined : run.stream(line, options);
      for await (const piece of current ?? []) writeText(piece, output);
    } catch (error) {
      writeText((error as Error).message, output);
    }
    output.write('\n');
    if (!isLeft) lines.prompt();
  }
}
