/** @file Calls of tools in a model's text, as Hermes and Qwen write them: JSON between `<tool_call>` and `</tool_call>`. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { stopPrefixLength } from '../continuedText.js';

/** A call in OpenAI's form. */
export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

const [BEGIN, END] = ['<tool_call>', '</tool_call>'];

/** The texts around the arguments of a call, as the templates of Hermes and Qwen write it. */
export const callTag = (name: string): { readonly begin: string; readonly end: string } => ({
  begin: `${BEGIN}\n{"name": ${JSON.stringify(name)}, "arguments": `,
  end: `}\n${END}`,
});

const written = z.object({
  name: z.string(),
  arguments: z.union([z.string(), z.looseObject({})]).optional(),
});

/** The call of a JSON text; undefined for another text. */
function callOf(text: string): ToolCall | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { data } = written.safeParse(value);
  if (data === undefined) return undefined;
  const { name, arguments: given = {} } = data;
  const json = typeof given === 'string' ? given : JSON.stringify(given);
  const id = `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
  return { id, type: 'function', function: { name, arguments: json } };
}

/** Tells calls from text as pieces come. White space around calls belongs to neither. What is no JSON of a call stays text. */
export class ToolCallReader {
  #held = '';
  /** White space that is text if more text follows. */
  #blank = '';
  #isInCall = false;
  #isAfterCall = false;

  /** Takes a piece; gives what is certain by now. */
  take(piece: string): (string | ToolCall)[] {
    this.#held += piece;
    const all: (string | ToolCall)[] = [];
    for (;;) {
      const mark = this.#isInCall ? END : BEGIN;
      const at = this.#held.indexOf(mark);
      if (at < 0) break;
      const before = this.#held.slice(0, at);
      this.#held = this.#held.slice(at + mark.length);
      if (this.#isInCall) all.push(...this.#ended(before, END));
      else {
        all.push(...this.#text(before));
        this.#isInCall = true;
      }
    }
    if (!this.#isInCall) {
      const certain = this.#held.length - stopPrefixLength(this.#held, [BEGIN]);
      all.push(...this.#text(this.#held.slice(0, certain)));
      this.#held = this.#held.slice(certain);
    }
    return all;
  }

  /** The rest, once no further piece comes. */
  rest(): (string | ToolCall)[] {
    if (this.#isInCall) return this.#ended(this.#held, '');
    const last = this.#text(this.#held);
    return this.#blank === '' ? last : [...last, this.#blank];
  }

  #ended(inside: string, end: string): (string | ToolCall)[] {
    this.#isInCall = false;
    const call = callOf(inside);
    if (call === undefined) return this.#text(`${BEGIN}${inside}${end}`);
    this.#isAfterCall = true;
    this.#blank = '';
    return [call];
  }

  #text(text: string): string[] {
    const all = this.#blank + text;
    const own = this.#isAfterCall ? all.trimStart() : all;
    const given = own.trimEnd();
    this.#blank = own.slice(given.length);
    if (given === '') return [];
    this.#isAfterCall = false;
    return [given];
  }
}
