/** @file Routes of language models: completions and chats in OpenAI's form, tokens of texts, and texts of tokens. */
import type { HttpBindings } from '@hono/node-server';
import type { Hono, Context as HonoContext } from 'hono';
import { RequestError } from '../requestError.js';
import type { TrainedRun } from '../trainedRun.js';
import { type Answered, streamAnswer, wholeAnswer } from './answers.js';
import { readChatBody } from './chatBody.js';
import { chatForm } from './chatForm.js';
import { type Prompt, readBody } from './completionBody.js';
import type { Completions } from './computations.js';
import { HttpError } from './httpError.js';
import { readJson } from './jsonBody.js';
import { fieldOf, type RequestSettings } from './requestFields.js';
import type { ServedModels } from './servedModels.js';
import { textForm } from './textForm.js';
import { readDetokenizeBody, readTokenizeBody } from './tokenBodies.js';
import { tokenText } from './tokenTexts.js';

interface Environment {
  readonly Bindings: HttpBindings;
}
export type App = Hono<Environment>;
type Context = HonoContext<Environment>;

/** What the routes use of their server. */
export interface TextRouteOptions {
  readonly models: ServedModels;
  readonly completions: Completions;
  readonly maxWaiting: number;
  readonly maxTokens: number | undefined;
  readonly describe: (error: unknown) => HttpError;
  /** The response of a request that is answered already. */
  readonly sent: Response;
}

/** The text of a prompt, as answers echo it. */
const echoOf = (run: TrainedRun, prompt: Prompt): string =>
  typeof prompt === 'string' ? prompt : run.decode(prompt);

/** Texts that ids add, one after the other. */
function piecesOf(run: TrainedRun, ids: Int32Array): string[] {
  const decoder = run.tokenizer.decoder();
  return Array.from(ids, (id) => decoder.take(id));
}

/** An error about a setting with the field that asks for it; others as they are. */
function withField(settings: RequestSettings, error: unknown): unknown {
  if (!(error instanceof RequestError) || error.setting === undefined) return error;
  return new HttpError(400, error.message, { param: fieldOf(settings, error.setting) });
}

/** A result, of which errors about a setting have its field. */
const ofField = <T>(settings: RequestSettings, result: Promise<T>): Promise<T> =>
  result.catch((error: unknown) => {
    throw withField(settings, error);
  });

/** Adds the routes to a server. @returns their paths */
export function textRoutes(app: App, options: TextRouteOptions): readonly string[] {
  const { models, completions, maxWaiting, maxTokens, describe, sent } = options;
  const limits = {
    ...{ prompts: Math.min(16, maxWaiting), continuations: Math.min(128, maxWaiting) },
    maxTokens: Math.min(maxTokens ?? Number.POSITIVE_INFINITY, models.base.maxTokens),
  };
  const answer = async (context: Context, answered: Answered, settings: RequestSettings) => {
    const { isStreamed, includesUsage } = settings;
    if (!isStreamed) return context.json(await ofField(settings, wholeAnswer(answered)));
    const described = (error: unknown) => describe(withField(settings, error));
    await streamAnswer(context.env.outgoing, answered, { includesUsage, describe: described });
    return sent;
  };
  app.post('/v1/completions', async (context) => {
    const request = readBody(await readJson(context.req), limits);
    const { prompts, echoes, samples, options: drawing } = request;
    const { id: model, run } = models.named(request.model);
    const begun = await ofField(
      request,
      completions.begin(run, prompts, request, context.env.incoming.socket),
    );
    const form = textForm({
      ...{ completions: begun, hasLogprobs: drawing.logprobs !== undefined },
      echoed: echoes ? begun.map((_, i) => echoOf(run, prompts[Math.floor(i / samples)]!)) : undefined,
      tokenText: (id) => tokenText(run, id),
      piecesOf: (ids) => piecesOf(run, ids),
    });
    return answer(context, { model, form, completions: begun, samples }, request);
  });
  app.post('/v1/chat/completions', async (context) => {
    const request = readChatBody(await readJson(context.req), limits);
    const { messages, variables, samples, hasTools, options: drawing } = request;
    const { id: model, run } = models.named(request.model);
    const prompt = await run.chat.render(messages, variables);
    const begun = await ofField(
      request,
      completions.begin(run, [prompt], request, context.env.incoming.socket),
    );
    const hasLogprobs = drawing.logprobs !== undefined;
    const form = chatForm({ hasTools, hasLogprobs, tokenText: (id) => tokenText(run, id) });
    return answer(context, { model, form, completions: begun, samples }, request);
  });
  app.post('/tokenize', async (context) => {
    const { model, prompt, messages, variables, hasTexts } = readTokenizeBody(await readJson(context.req));
    const { run } = models.named(model);
    const tokens = await run.encode(prompt ?? (await run.chat.render(messages, variables)));
    const texts = hasTexts && { token_strs: Array.from(tokens, (id) => tokenText(run, id).token) };
    return context.json({
      ...{ count: tokens.length, max_model_len: run.maxTokens, tokens: [...tokens], ...texts },
    });
  });
  app.post('/detokenize', async (context) => {
    const { model, tokens } = readDetokenizeBody(await readJson(context.req));
    const { run } = models.named(model);
    return context.json({ prompt: run.decode(tokens) });
  });
  return ['/v1/completions', '/v1/chat/completions', '/tokenize', '/detokenize'];
}
