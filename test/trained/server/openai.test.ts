/** @file The server by OpenAI's own client: chats, samples, log-probabilities, tools, and the errors that it tells apart. */
import { createHash } from 'node:crypto';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';
import { Script } from 'node:vm';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Constraints } from '../../../src/decoding/index.js';
import { importPublished, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { type Server, serve } from '../../../src/trained/server/server.js';
import { tokenText } from '../../../src/trained/server/tokenTexts.js';
import { temporaryDirectory } from '../../command.js';
import { endlessRun } from './endlessRun.js';

/** Roles by their first letters, tools and calls by their names: the context is of 24 tokens. */
const TEMPLATE = `
{%- for message in messages %}
{{- message.role[0] }}{{ message.content }}{% for call in message.tool_calls or [] %}{{ call.function.name }}{{ call.function.arguments.q }}{% endfor %};
{%- endfor %}
{%- for tool in tools or [] %}{{ tool.function.name }}{% endfor %}
{%- if add_generation_prompt %}a{% endif %}`;

const options = { host: '127.0.0.1', port: 0, maxBody: 1 << 16, maxWaiting: 8 };
let run: TrainedRun;
let server: Server;
let client: OpenAI;
const errors: unknown[] = [];

beforeAll(async () => {
  const folder = join(temporaryDirectory(), 'gpt2');
  cpSync(join(import.meta.dirname, '../../fixtures/published/gpt2'), folder, { recursive: true });
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ chat_template: TEMPLATE }));
  const jobLogDir = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  run = await loadRun(jobLogDir, { engine: 'eager', batchSize: 3 });
  server = await serve(run, { ...options, log: (error) => errors.push(error) });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});

afterAll(async () => {
  await server.close(0);
  await run.dispose();
  expect(errors).toEqual([]);
});

const user = (content: string) => ({ role: 'user' as const, content });
const model = 'gpt2';

test('a chat is the continuation of what the template of the imported model writes', async () => {
  const messages = [{ role: 'developer' as const, content: 'x' }, user('hi')];
  const answer = await client.chat.completions.create({ model, messages, temperature: 0, max_tokens: 8 });
  const text = await run.generate('sx;uhi;a', { temperature: 0, maxTokens: 8 });
  const prompt_tokens = run.tokenizer.encode('sx;uhi;a').length;
  expect(answer).toEqual({
    ...{
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model,
    },
    choices: [
      {
        ...{ index: 0, logprobs: null, finish_reason: 'length' },
        message: { role: 'assistant', content: text, refusal: null },
      },
    ],
    usage: { prompt_tokens, completion_tokens: 8, total_tokens: prompt_tokens + 8 },
  });
  const parts = [
    { type: 'text' as const, text: 'h' },
    { type: 'text' as const, text: 'i' },
  ];
  const same = await client.chat.completions.create({
    ...{ model, messages: [messages[0]!, { role: 'user', content: parts }], temperature: 0 },
    ...{ max_completion_tokens: 8, store: false, metadata: { a: 'b' }, user: 'u', service_tier: 'auto' },
  });
  expect(same.choices[0]!.message.content).toBe(text);
});

test('a stream of samples adds up to the whole answer, with scores of all tokens and their usage', async () => {
  const body = {
    ...{ model, messages: [user('hi')], n: 3, seed: 5, temperature: 1.2, max_tokens: 10, logprobs: true },
    ...{ top_logprobs: 2, frequency_penalty: 0.5, presence_penalty: -0.5, logit_bias: { 33: 2 } },
  };
  const whole = await client.chat.completions.create(body);
  const stream = await client.chat.completions.create({
    ...{ ...body, stream: true, stream_options: { include_usage: true } },
  });
  const texts = ['', '', ''];
  const scores: unknown[][] = [[], [], []];
  const reasons: unknown[] = [];
  let usage: unknown;
  for await (const { choices, usage: told } of stream) {
    usage = told;
    for (const { index, delta, logprobs, finish_reason } of choices) {
      texts[index]! += delta.content ?? '';
      scores[index]!.push(...(logprobs?.content ?? []));
      if (finish_reason !== null) reasons[index] = finish_reason;
    }
  }
  expect(texts).toEqual(whole.choices.map(({ message }) => message.content));
  expect(scores).toEqual(whole.choices.map(({ logprobs }) => logprobs!.content));
  expect(reasons).toEqual(whole.choices.map(({ finish_reason }) => finish_reason));
  expect(usage).toEqual(whole.usage);
  expect(new Set(texts).size).toBe(3);
  for (const [i, each] of texts.entries()) {
    const settings = { seed: 5 + i, temperature: 1.2, maxTokens: 10, logitBias: { 33: 2 } };
    const penalties = { frequencyPenalty: 0.5, presencePenalty: -0.5 };
    expect(each).toBe(await run.generate('uhi;a', { ...settings, ...penalties }));
    // Broken characters are told as such, and never as half of one.
    expect(Buffer.from(each).toString()).toBe(each);
  }
});

test('scores are those of the model’s predictions, echoed prompts included', async () => {
  const { choices } = await client.completions.create({
    ...{ model, prompt: 'one two', echo: true, logprobs: 3, temperature: 0, max_tokens: 4 },
  });
  const { text, logprobs } = choices[0]!;
  const { tokens, token_logprobs, top_logprobs, text_offset } = logprobs!;
  expect(text.startsWith('one two')).toBe(true);
  const ids = [...run.tokenizer.encode('one two')];
  expect(tokens!.slice(0, ids.length)).toEqual(ids.map((id) => tokenText(run, id).token));
  expect(text_offset!.slice(0, ids.length)).toEqual(ids.map((_, i) => run.decode(ids.slice(0, i)).length));
  // The drawn ones are the likeliest.
  expect(tokens).toHaveLength(ids.length + 4);
  expect([token_logprobs![0], top_logprobs![0]]).toEqual([null, null]);
  const data = Int32Array.from({ length: 24 }, (_, i) => ids[i] ?? 0);
  const { logits } = await run.predict({ ids: { shape: [1, 24], dtype: 'int32', data } });
  const vocabulary = logits!.shape[2]!;
  for (let i = 1; i < ids.length; i++) {
    const row = Array.from(logits!.data.slice((i - 1) * vocabulary, i * vocabulary), Number);
    const logSum = Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0));
    expect(token_logprobs![i]).toBeCloseTo(row[ids[i]!]! - logSum, 4);
    const best = row.indexOf(Math.max(...row));
    expect(top_logprobs![i]![tokenText(run, best).token]).toBeCloseTo(row[best]! - logSum, 4);
  }
  const drawn = token_logprobs!.slice(ids.length);
  expect(drawn).toEqual(top_logprobs!.slice(ids.length).map((top) => Math.max(...Object.values(top))));
});

test('a prompt may be ids, and each of several has its samples', async () => {
  const ids = [...run.tokenizer.encode('one two')];
  const settings = { model, temperature: 0, max_tokens: 5 };
  const text = await run.generate('one two', { temperature: 0, maxTokens: 5 });
  const one = await client.completions.create({ ...settings, prompt: ids });
  const several = await client.completions.create({ ...settings, prompt: [ids, [7]], n: 2, echo: true });
  expect(one.choices.map((choice) => choice.text)).toEqual([text]);
  expect(several.choices.map((choice) => choice.text)).toEqual([
    ...[`one two${text}`, `one two${text}`],
    ...Array(2).fill(several.choices[2]!.text),
  ]);
  expect(several.usage).toMatchObject({ prompt_tokens: ids.length + 1, completion_tokens: 20 });
});

test('tools and their results reach the template', async () => {
  const tools = [{ type: 'function' as const, function: { name: 'T', parameters: { type: 'object' } } }];
  const call = { id: 'c', type: 'function' as const, function: { name: 'f', arguments: '{"q": 7}' } };
  const messages = [
    ...[user('h'), { role: 'assistant' as const, content: null, tool_calls: [call] }],
    { role: 'tool' as const, tool_call_id: 'c', content: '9' },
  ];
  const settings = { model, messages, temperature: 0, max_tokens: 2 };
  const asked = async (more: object) =>
    (await client.chat.completions.create({ ...settings, ...more })).choices[0]!.message.content;
  const expected = (prompt: string) => run.generate(prompt, { temperature: 0, maxTokens: 2 });
  expect(await asked({ tools })).toBe(await expected('uh;af7;t9;Ta'));
  expect(await asked({ tools, tool_choice: 'none' })).toBe(await expected('uh;af7;t9;a'));
});

test('calls of tools that a model writes are calls in whole answers and in streams', async () => {
  const pieces = ['Let me', ' see.', ' <tool', '_call>{"name": "T", "argu', 'ments": {"q": 7}}</tool_call>'];
  const calling = await serve(endlessRun(0, pieces), { ...options, log: (error) => errors.push(error) });
  const own = new OpenAI({ baseURL: `${calling.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const tools = [{ type: 'function' as const, function: { name: 'T' } }];
  const body = { model: 'endless', messages: [user('h')], tools };
  const { choices } = await own.chat.completions.create(body);
  const call = { type: 'function', id: expect.any(String), function: { name: 'T', arguments: '{"q":7}' } };
  const [choice] = choices;
  expect(choice!.message).toMatchObject({ content: 'Let me see.', tool_calls: [call] });
  expect(choice!.finish_reason).toBe('tool_calls');
  const streamed = await own.chat.completions.stream(body).finalChatCompletion();
  expect(streamed.choices[0]).toMatchObject({
    ...{ message: { content: 'Let me see.', tool_calls: [call] }, finish_reason: 'tool_calls' },
  });
  const plain = await own.chat.completions.create({ ...body, tools: [] });
  expect(plain.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: pieces.join('') } });
  await calling.close(0);
});

test('answers are of the JSON schema that a request gives', async () => {
  const json_schema = { name: 'x', strict: true, schema: { type: 'string', enum: ['a1', 'b'] } };
  for (const seed of [1, 2, 3]) {
    const { choices } = await client.chat.completions.create({
      ...{ model, messages: [user('h')], temperature: 2, seed, logprobs: true },
      response_format: { type: 'json_schema', json_schema },
    });
    const { message, finish_reason, logprobs } = choices[0]!;
    expect(['"a1"', '"b"']).toContain(message.content);
    expect(finish_reason).toBe('stop');
    expect(logprobs!.content!.map(({ token }) => token).join('')).toBe(message.content);
  }
});

test('errors of settings name the fields that have them', async () => {
  const json_schema = { name: 'x', schema: { type: 'integer', multipleOf: 3 } };
  const parameters = { type: 'object', properties: { a: { type: 'integer', multipleOf: 3 } } };
  const problem =
    "has 'multipleOf', which is not supported there: it may have type, minimum, maximum, exclusiveMinimum, exclusiveMaximum.";
  const tools = [{ type: 'function', function: { name: 'f', parameters } }];
  const cases: readonly (readonly [string, object, string])[] = [
    [
      'response_format',
      { response_format: { type: 'json_schema', json_schema } },
      `constraint: the schema ${problem}`,
    ],
    [
      'tool_choice',
      { tools, tool_choice: 'required' },
      `constraint: the schema at #/properties/a ${problem}`,
    ],
    [
      'guided_regex',
      { guided_regex: '(?=a)' },
      'constraint: the regular expression looks around or sets flags within a group, which is not supported, at character 3.',
    ],
  ];
  for (const [param, fields, message] of cases)
    for (const stream of [false, true]) {
      const body = { model, messages: [user('h')], ...fields, stream };
      const asked = client.chat.completions.create(body as never);
      const error = await asked.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ type: 'invalid_request_error', param });
      expect((error as Error).message).toContain(message);
    }
});

test('constraints are compiled one at a time, and others go on between them', async () => {
  const events: string[] = [];
  const { compile } = Constraints.prototype;
  const compiling = vi.spyOn(Constraints.prototype, 'compile').mockImplementation(function (
    this: Constraints,
    constraint,
  ) {
    const compiled = compile.call(this, constraint);
    const key = JSON.stringify(constraint);
    if (!events.includes(key)) events.push(key);
    return compiled;
  });
  const patterns = ['a', 'b', 'c', 'd'].map((letter) => ({ regex: `${letter}{9000}` }));
  let isOver = false;
  const others = (async () => {
    for (; !isOver; await immediate()) if (events.at(-1) !== 'others') events.push('others');
  })();
  const begun = patterns.map((constraint) => run.beginAll(['h', 'h'], { constraint }, () => 1));
  for (const completion of (await Promise.all(begun)).flat()) completion.cancel();
  isOver = true;
  await others;
  compiling.mockRestore();
  const between = patterns.flatMap((constraint) => ['others', JSON.stringify(constraint)]);
  expect(events.slice(0, between.length)).toEqual(between);
});

test('a request names the run or one of its adapters', async () => {
  const adapters = { tuned: endlessRun(0, ['A', 'B']) };
  const both = await serve(run, { ...options, adapters, log: (error) => errors.push(error) });
  const own = new OpenAI({ baseURL: `${both.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const ids: string[] = [];
  for await (const { id } of own.models.list()) ids.push(id);
  expect(ids).toEqual(['gpt2', 'gpt2:tuned']);
  const body = { messages: [user('h')], temperature: 0, max_tokens: 4 };
  for (const [name, id, text] of [
    ['tuned', 'gpt2:tuned', 'AB'],
    ['gpt2:tuned', 'gpt2:tuned', 'AB'],
    ['gpt2', 'gpt2', await run.generate('uh;a', { temperature: 0, maxTokens: 4 })],
  ] as const) {
    const { model: told, choices } = await own.chat.completions.create({ ...body, model: name });
    expect([told, choices[0]!.message.content]).toEqual([id, text]);
  }
  const error = await own.chat.completions.create({ ...body, model: 'x' }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.NotFoundError);
  expect((error as Error).message).toContain(
    "The model 'x' is not served; the server has 'gpt2', 'gpt2:tuned'.",
  );
  await both.close(0);
});

async function posted(url: string, path: string, body: object): Promise<any> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

test('texts and chats become tokens, and tokens texts', async () => {
  const ids = [...run.tokenizer.encode('uhé;a')];
  const tokens = { count: ids.length, max_model_len: 24, tokens: ids };
  expect(await posted(server.url, '/tokenize', { prompt: 'uhé;a' })).toEqual(tokens);
  const messages = [user('hé')];
  const told = await posted(server.url, '/tokenize', { messages, return_token_strs: true });
  expect(told).toEqual({ ...tokens, token_strs: ids.map((id) => tokenText(run, id).token) });
  const without = await posted(server.url, '/tokenize', { messages, add_generation_prompt: false });
  expect(without.tokens).toEqual([...run.tokenizer.encode('uhé;')]);
  expect(await posted(server.url, '/detokenize', { tokens: ids })).toEqual({ prompt: 'uhé;a' });
  const { error } = await posted(server.url, '/detokenize', { tokens: [1e6] });
  expect(error).toMatchObject({ type: 'invalid_request_error', param: 'tokens' });
});

test('metrics count requests, tokens and rows; a request that takes too long is given up', async () => {
  const slow = await serve(endlessRun(10), {
    ...options,
    maxSeconds: 0.05,
    log: (error) => errors.push(error),
  });
  const body = { prompt: ['a', 'b'], max_tokens: 2, n: 2 };
  await posted(slow.url, '/v1/completions', body);
  const { error } = await posted(slow.url, '/v1/completions', { prompt: 'abc' });
  expect(error).toEqual({
    ...{ message: 'The request was not answered within 0.05 s. Try again later.', type: 'server_error' },
    ...{ param: null, code: 'timeout' },
  });
  await posted(slow.url, '/v1/nothing', {});
  const response = await fetch(`${slow.url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await response.text();
  const values = new Map(
    text
      .split('\n')
      .flatMap((line) => (/^[^#]/.test(line) ? [line.split(/ (?=\S+$)/) as [string, string]] : [])),
  );
  const { luthier_generation_tokens_total: drawn, ...found } = Object.fromEntries(values);
  expect(Number(drawn)).toBeGreaterThan(8);
  expect(found).toMatchObject({
    'luthier_requests_total{route="/v1/completions",status="200"}': '1',
    'luthier_requests_total{route="/v1/completions",status="503"}': '1',
    'luthier_requests_total{route="other",status="404"}': '1',
    'luthier_completions_total{reason="length"}': '4',
    'luthier_completions_total{reason="cancelled"}': '1',
    ...{ luthier_prompt_tokens_total: '7', luthier_time_to_first_token_seconds_count: '5' },
    ...{ 'luthier_time_to_first_token_seconds_bucket{le="+Inf"}': '5', luthier_request_seconds_count: '3' },
    'luthier_rows_busy{model="endless"}': '0',
  });
  expect(Number(values.get('luthier_time_per_output_token_seconds_count'))).toBe(Number(drawn) - 5);
  await slow.close(0);
});

test('the chat page runs its own script alone, and reaches this server alone', async () => {
  const response = await fetch(server.url);
  const html = await response.text();
  const [script] = [...html.matchAll(/<script>([\s\S]*)<\/script>/g)].map(([, text]) => text!);
  const hash = createHash('sha256').update(script!).digest('base64');
  const policy = response.headers.get('content-security-policy')!;
  expect(policy).toContain(`default-src 'none'; script-src 'sha256-${hash}'; style-src 'sha256-`);
  expect(policy).toContain(
    "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  expect(html).not.toMatch(/https?:|\son\w+=|\sstyle=|innerHTML/);
  expect(() => new Script(script!)).not.toThrow();
});

test.each<[string, object, string, string | null]>([
  ['no message', { messages: [] }, 'messages: expected a list of messages, got [].', 'messages'],
  [
    'another role',
    { messages: [{ role: 'bot', content: 'x' }] },
    'messages.0.role: expected "system", "developer", "user", "assistant", "tool", got "bot".',
    'messages',
  ],
  [
    'an image',
    { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] },
    'messages.0.content: expected a text, or a list of {"type": "text"}, got [{"type":"image_url"}].',
    'messages',
  ],
  [
    'top_logprobs alone',
    { top_logprobs: 2 },
    'top_logprobs: expected "logprobs": true beside it.',
    'top_logprobs',
  ],
  [
    'another choice of tools',
    { tool_choice: 'any' },
    'tool_choice: expected "auto", "none", "required", or {"type": "function", "function": {"name": "…"}}, got "any".',
    'tool_choice',
  ],
  [
    'a misspelled field',
    { max_token: 3 },
    expect.stringMatching(
      /^"max_token" is not supported\. Did you mean 'max_tokens'\? The fields are: model, messages, /,
    ),
    'max_token',
  ],
  [
    'a chat that is too long',
    { messages: [user('x'.repeat(60))] },
    expect.stringMatching(/^The prompt has \d+ tokens; prompt and continuation together have 24 at most/),
    'messages',
  ],
])('a chat with %s is a BadRequestError with its field', async (_, fields, message, param) => {
  const body = { model, messages: [user('hi')], ...fields };
  const error = await client.chat.completions.create(body as never).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect((error as { error: unknown }).error).toMatchObject({
    message,
    param,
    type: 'invalid_request_error',
  });
});

test('more than may wait is a RateLimitError, after which a client may come again', async () => {
  const many = () => client.completions.create({ model, prompt: Array(8).fill('a'), max_tokens: 3 });
  const [first, second] = await Promise.allSettled([many(), many()]);
  expect(first.status).toBe('fulfilled');
  const { reason } = second as PromiseRejectedResult;
  expect(reason).toBeInstanceOf(OpenAI.RateLimitError);
  expect(reason.headers.get('retry-after')).toBe('1');
  await many();
});
