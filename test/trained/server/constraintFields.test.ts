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
    'expected one of response_format, guided_json, guided_regex, guided_grammar.',
  );
});
