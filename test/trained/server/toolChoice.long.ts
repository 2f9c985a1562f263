/** @file Calls that requests ask for, by OpenAI's own client: required ones, those of a named function, and single ones. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importPublished, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { type Server, serve } from '../../../src/trained/server/server.js';
import { temporaryDirectory } from '../../command.js';

const published = join(import.meta.dirname, '../../fixtures/published');
/** The end of a text. */
const END = 2;
/** The parts of calls are the tokens of the model. */
const PARTS = [
  ...[
    '<tool_call>Ċ',
    '{"name":Ġ"',
    'sum',
    'now',
    '",Ġ"arguments":Ġ',
    '{"Q":',
    '}',
    '}Ċ',
    '</tool_call>',
    'Ċ',
  ],
  ...'h;0123456789',
];

let run: TrainedRun;
let server: Server;
let client: OpenAI;

beforeAll(async () => {
  const folder = join(temporaryDirectory(), 'llama');
  cpSync(join(published, 'llama'), folder, { recursive: true });
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: 64 }));
  const tokenizer = JSON.parse(readFileSync(join(published, 'gpt2/tokenizer.json'), 'utf8'));
  const names = ['<unk>', '<s>', '</s>', ...PARTS];
  const vocab = Object.fromEntries(names.map((name, id) => [name, id]));
  tokenizer.added_tokens = [0, 1, END].map((id) => ({
    ...tokenizer.added_tokens[0],
    id,
    content: names[id],
  }));
  Object.assign(tokenizer.model, { vocab, merges: [] });
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  const chat_template = '{{ messages[0].content }}';
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ chat_template, eos_token: '</s>' }));
  const jobLogDir = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  run = await loadRun(jobLogDir, { engine: 'eager', batchSize: 4 });
  const limits = { maxBody: 1 << 16, maxWaiting: 16 };
  const log = (error: unknown) => expect(error).toBeUndefined();
  server = await serve(run, { host: '127.0.0.1', port: 0, ...limits, log });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});

afterAll(async () => {
  await server.close(0);
  await run.dispose();
});

const tool = (name: string, least: number, most: number) => ({
  type: 'function' as const,
  function: {
    name,
    parameters: {
      $defs: { number: { type: 'integer', minimum: least, maximum: most } },
      type: 'object',
      properties: { Q: { $ref: '#/$defs/number' } },
      required: ['Q'],
    },
  },
});
const tools = [tool('sum', 10, 19), tool('now', 20, 29)];
const named = (name: string) => ({ type: 'function' as const, function: { name } });

const body = (more: object) => ({
  ...{ model: 'llama', messages: [{ role: 'user' as const, content: 'h;' }], tools, temperature: 1.5 },
  // Nothing is likelier than the end where it may come.
  logit_bias: { [END]: 100 },
  ...more,
});

/** Calls of an answer as `name(Q)`; and why it ended. */
function told({ choices }: Pick<OpenAI.ChatCompletion, 'choices'>): string[] {
  const { message, finish_reason } = choices[0]!;
  const calls = (message.tool_calls ?? []).map((call) => {
    const { name, arguments: given } = (call as { function: { name: string; arguments: string } }).function;
    const { Q, ...others } = JSON.parse(given);
    expect([others, name === 'sum' ? 1 : 2]).toEqual([{}, Math.floor(Q / 10)]);
    return name;
  });
  return [message.content ?? 'null', ...calls, finish_reason];
}

test('a required call is one of the tools, with arguments of its schema, whole and in streams', async () => {
  const names = new Set<string>();
  for (const seed of [1, 2, 3, 4]) {
    const asked = body({ tool_choice: 'required', seed });
    const answer = told(await client.chat.completions.create(asked));
    names.add(answer[1]!);
    expect(answer).toEqual(['null', expect.stringMatching(/^(sum|now)$/), 'tool_calls']);
    if (seed > 1) continue;
    const streamed = client.chat.completions.stream(asked);
    const { choices } = await streamed.finalChatCompletion();
    expect(told({ choices } as never).slice(1)).toEqual(answer.slice(1));
  }
  expect(names.size).toBe(2);
});

test('there may be several, unless one alone is asked for', async () => {
  // The end comes last, so that calls go on.
  const most = { tool_choice: 'required', logit_bias: { [END]: -100 }, max_tokens: 45 };
  const [, ...several] = told(await client.chat.completions.create(body(most)));
  expect(several.length).toBeGreaterThan(2);
  expect(several.at(-1)).toBe('length');
  const single = await client.chat.completions.create(body({ ...most, parallel_tool_calls: false }));
  expect(told(single)).toEqual(['null', expect.stringMatching(/^(sum|now)$/), 'tool_calls']);
});

test('a named function is called once', async () => {
  for (const name of ['sum', 'now']) {
    const asked = { tool_choice: named(name), logit_bias: { [END]: -100 } };
    expect(told(await client.chat.completions.create(body(asked)))).toEqual(['null', name, 'tool_calls']);
  }
});
