/** @file Calls of tools told apart from text, however both are cut into pieces. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ToolCall, ToolCallReader } from '../../../src/trained/server/toolCalls.js';

const written = (text: string) => `<tool_call>${text}</tool_call>`;
const sum = written('\n{"name": "sum", "arguments": {"of": [1, 2]}}\n');
const now = written('{"name": "now"}');

/** Texts as they come, those side by side as one, and calls as `name(arguments)`. */
function read(pieces: readonly string[]): string[] {
  const reader = new ToolCallReader();
  const parts = [...pieces.flatMap((piece) => reader.take(piece)), ...reader.rest()];
  const all: string[] = [];
  let isText = false;
  for (const part of parts) {
    if (typeof part !== 'string') all.push(shown(part));
    else if (isText) all[all.length - 1] += part;
    else all.push(part);
    isText = typeof part === 'string';
  }
  return all;
}

const shown = ({ id, type, function: { name, arguments: given } }: ToolCall): string => {
  expect([type, id]).toEqual(['function', expect.stringMatching(/^call_[\da-f]{24}$/)]);
  return `${name}(${given})`;
};

const [called, told] = ['sum({"of":[1,2]})', 'now({})'];
const cases: readonly (readonly [text: string, parts: readonly string[]])[] = [
  [' a b \n', [' a b \n']],
  [`Wait.\n${sum}\n${now}\n`, ['Wait.', called, told]],
  [`${sum} then  more `, [called, 'then  more ']],
  [`a < b <tool_cal ${now}`, ['a < b <tool_cal', told]],
  [`${written('{"nam": 1}')}x`, ['<tool_call>{"nam": 1}</tool_call>x']],
  // The end of the sequence may stand for the end of the call.
  [sum.slice(0, -'</tool_call>'.length), [called]],
  ['<tool_call>{"name"', ['<tool_call>{"name"']],
  [written('{"name": "f", "arguments": "{\\"a\\": 1}"}'), ['f({"a": 1})']],
];

test('calls and text are the same for all cuts', () => {
  const cuts = fc.array(fc.nat(80), { maxLength: 8 });
  fc.assert(
    fc.property(fc.constantFrom(...cases), cuts, ([text, parts], at) => {
      const places = [0, ...at.filter((place) => place < text.length).sort((a, b) => a - b), text.length];
      const pieces = places.slice(1).map((end, i) => text.slice(places[i], end));
      expect(read(pieces)).toEqual(parts);
    }),
    { numRuns: 300, examples: cases.map((each): [(typeof cases)[number], number[]] => [each, []]) },
  );
});
