/** @file Answers to POST /v1/completions, in OpenAI's form: whole, or by pieces as server-sent events. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Completion } from '../completion.js';
import type { HttpError } from './httpError.js';

/** Fields that all parts of an answer share. */
function head(model: string): object {
  const created = Math.floor(Date.now() / 1000);
  return { id: `cmpl-${randomUUID()}`, object: 'text_completion', created, model };
}

const choice = (index: number, text: string, { finishReason = null }: { finishReason?: string | null }) => ({
  ...{ index, text, logprobs: null, finish_reason: finishReason },
});

/** Counts tokens of prompts and completions. */
function usageOf(completions: readonly Completion[]): object {
  const sum = (count: (completion: Completion) => number) =>
    completions.reduce((total, completion) => total + count(completion), 0);
  const prompt = sum(({ promptIds }) => promptIds.length);
  const drawn = sum(({ tokens }) => tokens);
  return { prompt_tokens: prompt, completion_tokens: drawn, total_tokens: prompt + drawn };
}

/** The result of each continuation; where one fails, the others end. */
async function allOrNone<T>(
  completions: readonly Completion[],
  make: (completion: Completion, index: number) => Promise<T>,
): Promise<T[]> {
  try {
    return await Promise.all(completions.map(make));
  } catch (error) {
    for (const completion of completions) completion.cancel();
    throw error;
  }
}

/** The whole answer, once all continuations have ended. */
export async function wholeAnswer(model: string, completions: readonly Completion[]): Promise<object> {
  const begun = head(model);
  const texts = await allOrNone(completions, async (completion) => {
    const pieces: string[] = [];
    for await (const piece of completion) pieces.push(piece);
    return pieces.join('');
  });
  return {
    ...begun,
    choices: texts.map((text, i) => choice(i, text, { finishReason: completions[i]!.finishReason! })),
    usage: usageOf(completions),
  };
}

/** Fields of a stream's events besides the text. */
export interface StreamOptions {
  /** Whether it ends with the usage of tokens. */
  readonly includesUsage: boolean;
  readonly describe: (error: unknown) => HttpError;
}

/** Writes pieces as events as they come; an error ends the events with one of its own. */
export async function streamAnswer(
  response: ServerResponse,
  model: string,
  completions: readonly Completion[],
  { includesUsage, describe }: StreamOptions,
): Promise<void> {
  const begun = { ...head(model), ...(includesUsage && { usage: null }) };
  // A connection that stays open would keep a server that is to stop.
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'close' };
  response.writeHead(200, headers);
  const send = (data: object) => response.write(`data: ${JSON.stringify(data)}\n\n`);
  const follow = async (completion: Completion, index: number) => {
    for await (const piece of completion) send({ ...begun, choices: [choice(index, piece, {})] });
    send({ ...begun, choices: [choice(index, '', { finishReason: completion.finishReason! })] });
  };
  try {
    await allOrNone(completions, follow);
    if (includesUsage) send({ ...begun, choices: [], usage: usageOf(completions) });
    response.write('data: [DONE]\n\n');
  } catch (error) {
    send(describe(error).body);
  }
  response.end();
}
