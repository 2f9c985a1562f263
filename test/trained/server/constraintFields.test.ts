/** @file Fields of requests that constrain texts. */
import { expect, test } from 'vitest';
import { readChatBody } from '../../../src/trained/server/chatBody.js';
import { readBody } from '../../../src/trained/server/completionBody.js';

const limits = { prompts: 1, maxTokens: 9, continuations: 1 };
const schema = { type: 'object', properties: { a: { type: 'integer' } } };
const chat = (fields: object) =>
  readChatBody({ messages: [{ role: 'user', content: 'a' }], ...fields }, limits).options.constraint;

test('each field is a constraint', () => {
  expect(chat({ response_format: { type: 'text' } })).toBeUndefined();
  expect(chat({ response_format: { type: 'json_object' } })).toEqual({ json: 'object' });
  const format = { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } };
  expect(chat({ response_format: format })).toEqual({ jsonSchema: schema });
  expect(chat({ guided_json: schema })).toEqual({ jsonSchema: schema });
  expect(readBody({ prompt: 'a', guided_regex: 'a+' }, limits).options.constraint).toEqual({ regex: 'a+' });
  expect(readBody({ prompt: 'a', guided_grammar: 'root ::= "a"' }, limits).options.constraint).toEqual({
    grammar: 'root ::= "a"',
  });
});

test('others are refused by name', () => {
  let deep: object = {};
  for (let level = 0; level < 20_000; level++) deep = { items: deep };
  expect(() => chat({ guided_json: deep })).toThrow(
    'guided_json: expected a JSON schema of at most 500 levels, got',
  );
  expect(() => chat({ response_format: { type: 'json_schema', json_schema: { schema: deep } } })).toThrow(
    'response_format.json_schema.schema: expected a JSON schema of at most 500 levels, got',
  );
  expect(() => chat({ guided_regex: 'a', response_format: { type: 'json_object' } })).toThrow(
    'expected one of response_format, tool_choice, guided_json, guided_regex, guided_grammar.',
  );
});

const tool = (name: string, parameters?: object) => ({ type: 'function', function: { name, parameters } });
const named = (name: string) => ({ type: 'function', function: { name } });
const tools = [tool('sum', schema), tool('say "hi"')];
const call = (name: string, jsonSchema: object) => ({
  ...{ begin: `<tool_call>\n{"name": "${name}", "arguments": `, jsonSchema, end: '}\n</tool_call>' },
});
const all = [call('sum', schema), call('say \\"hi\\"', { type: 'object' })];

test('calls that a request asks for are tagged values of their schemas', () => {
  expect(chat({ tools, tool_choice: 'auto', parallel_tool_calls: true })).toBeUndefined();
  expect(chat({ tools, tool_choice: 'none', parallel_tool_calls: false })).toBeUndefined();
  expect(chat({ tools, tool_choice: 'required' })).toEqual({ tags: all, separator: '\n' });
  expect(chat({ tools, tool_choice: 'required', parallel_tool_calls: false })).toEqual({ tags: all });
  expect(chat({ tools, tool_choice: named('sum') })).toEqual({ tags: [all[0]] });
});

test.each<[object, string]>([
  [{ tool_choice: 'required', tools: [] }, 'tool_choice: expected "tools" beside it.'],
  [
    { tool_choice: named('add') },
    'tool_choice: expected the name of a tool, one of "sum", "say \\"hi\\"", got "add".',
  ],
  [
    { parallel_tool_calls: false },
    'parallel_tool_calls: expected true where calls are not "required", got false.',
  ],
  [
    { tool_choice: 'required', response_format: { type: 'json_object' } },
    'expected one of response_format, tool_choice, guided_json, guided_regex, guided_grammar.',
  ],
])('%j is refused by name', (fields, message) => {
  expect(() => chat({ tools, ...fields })).toThrow(message);
});

test('templates read developers as the system, and arguments of calls as objects', () => {
  const called = { type: 'function', function: { name: 'f', arguments: '{"q": 7}' } };
  const messages = [
    { role: 'developer', content: [{ type: 'text', text: 'a' }] },
    { role: 'assistant', content: null, tool_calls: [called] },
  ];
  expect(readChatBody({ messages }, limits).messages).toEqual([
    { role: 'system', content: 'a' },
    {
      ...{ role: 'assistant', content: '' },
      tool_calls: [{ type: 'function', function: { name: 'f', arguments: { q: 7 } } }],
    },
  ]);
});
