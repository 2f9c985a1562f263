/** @file JSON bodies of requests: their content type, their syntax, their depth. */
import type { HonoRequest } from 'hono';
import { HttpError } from './httpError.js';

/** Values within values: more than any field has, and few enough for every function that walks them. */
const MOST_DEPTH = 32;

/** @throws HttpError 400 for a field whose value is nested deeper than any may be, or has a name that reaches prototypes */
function checkValues(body: unknown): void {
  // A stack of its own, for the depth is the client's.
  const waiting: { readonly value: unknown; readonly depth: number; readonly field: string | null }[] = [
    { value: body, depth: 0, field: null },
  ];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, depth, field } = next;
    if (typeof value !== 'object' || value === null) continue;
    if (depth > MOST_DEPTH) {
      const message = `${field ?? 'The body'}: expected values nested at most ${MOST_DEPTH} deep.`;
      throw new HttpError(400, message, { param: field });
    }
    const isTop = depth === 0 && !Array.isArray(value);
    if (depth > 0 && Object.hasOwn(value, '__proto__'))
      throw new HttpError(400, `${field ?? 'The body'}: the name "__proto__" is not supported.`, {
        param: field,
      });
    for (const [key, item] of Object.entries(value))
      waiting.push({ value: item, depth: depth + 1, field: isTop ? key : field });
  }
}

/**
 * The JSON of a request's body. Any web page may send text to this machine; JSON takes a server's consent.
 *
 * @throws HttpError 415 for another content type; 400 for a body that is no JSON, or nested too deep
 */
export async function readJson(request: HonoRequest): Promise<unknown> {
  const type = request.header('content-type') ?? 'none';
  if (!/^application\/json *(;|$)/i.test(type))
    throw new HttpError(
      415,
      `The body's content type: expected application/json, got ${type.slice(0, 100)}.`,
    );
  const text = await request.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, `The body: expected JSON: ${(error as Error).message}.`);
  }
  checkValues(body);
  return body;
}
