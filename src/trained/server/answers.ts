/** @file Answers in OpenAI's form: whole, or by pieces as server-sent events. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Completion, FinishReason, TokenScore } from '../completion.js';
import type { HttpError } from './httpError.js';

/** How one continuation looks in an answer. */
export interface ChoiceForm {
  /** Choices of events that come before any text. */
  begin(): object[];
  /** Those of a piece of text. @param scores of the tokens that begin in it, where the request asks for them */
  piece(text: string, scores: readonly TokenScore[]): object[];
  end(reason: FinishReason, scores: readonly TokenScore[]): object[];
  /** The choice of a whole answer. */
  whole(text: string, scores: readonly TokenScore[], reason: FinishReason): object;
}

/** How the answers of a route look. */
export interface AnswerForm {
  /** Of ids. */
  readonly prefix: string;
  /** Value of `object` of a whole answer, and of an event. */
  readonly object: string;
  readonly chunk: string;
  choice(index: number): ChoiceForm;
}

/** The continuations of a request. */
export interface Answered {
  readonly model: string;
  readonly form: AnswerForm;
  readonly completions: readonly Completion[];
  /** Continuations of each prompt, one behind the other. */
  readonly samples: number;
}

/** Fields that all parts of an answer share. */
function head({ model, form: { prefix } }: Answered, object: string): object {
  const created = Math.floor(Date.now() / 1000);
  return { id: `${prefix}-${randomUUID()}`, object, created, model };
}

/** Counts tokens of prompts, each once, and of completions. */
function usageOf({ completions, samples }: Answered): object {
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  const prompts = completions.filter((_, i) => i % samples === 0);
  const prompt = sum(prompts.map(({ promptIds }) => promptIds.length));
  const drawn = sum(completions.map(({ tokens }) => tokens));
  return { prompt_tokens: prompt, completion_tokens: drawn, total_tokens: prompt + drawn };
}

/** The result of each continuation; where one fails, the others end. */
async function allOrNone<T>(
  { completions, form }: Answered,
  make: (completion: Completion, choice: ChoiceForm) => Promise<T>,
): Promise<T[]> {
  try {
    return await Promise.all(completions.map((each, index) => make(each, form.choice(index))));
  } catch (error) {
    for (const completion of completions) completion.cancel();
    throw error;
  }
}

/** The whole answer, once all continuations have ended. */
export async function wholeAnswer(answered: Answered): Promise<object> {
  const begun = head(answered, answered.form.object);
  const choices = await allOrNone(answered, async (completion, choice) => {
    const pieces: string[] = [];
    for await (const piece of completion) pieces.push(piece);
    return choice.whole(pieces.join(''), completion.takeScores(), completion.finishReason!);
  });
  return { ...begun, choices, usage: usageOf(answered) };
}

/** Time between two events of a continuation: tokens that come faster share one, which costs a system call, and wakes the client. */
const EVENT_MS = 20;

/** Waits that end with the promise at the latest. */
function pausesUntil(ended: Promise<void>): (ms: number) => Promise<void> {
  let resume = (): void => {};
  void ended.then(() => resume());
  return (ms) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      resume = () => {
        clearTimeout(timer);
        resolve();
      };
    });
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
  answered: Answered,
  { includesUsage, describe }: StreamOptions,
): Promise<void> {
  const begun = { ...head(answered, answered.form.chunk), ...(includesUsage && { usage: null }) };
  // A connection that stays open would keep a server that is to stop.
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'close' };
  response.writeHead(200, headers);
  const send = (data: object) => response.write(`data: ${JSON.stringify(data)}\n\n`);
  const sendAll = (choices: readonly object[]) => {
    for (const choice of choices) send({ ...begun, choices: [choice] });
  };
  try {
    await allOrNone(answered, async (completion, choice) => {
      sendAll(choice.begin());
      const pause = pausesUntil(completion.ended);
      for await (const piece of completion) {
        sendAll(choice.piece(piece, completion.takeScores()));
        if (completion.finishReason === undefined) await pause(EVENT_MS);
      }
      sendAll(choice.end(completion.finishReason!, completion.takeScores()));
    });
    if (includesUsage) send({ ...begun, choices: [], usage: usageOf(answered) });
    response.write('data: [DONE]\n\n');
  } catch (error) {
    send(describe(error).body);
  }
  response.end();
}
