/** @file Bodies of POST /predict: examples as JSON, files among them in base64. */
import { z } from 'zod';
import { didYouMean } from '../../hparams/index.js';
import type { RawExample } from '../examplePredictor.js';
import { HttpError } from './httpError.js';

/** A request for predictions. */
export interface PredictRequest {
  readonly model: string | undefined;
  readonly instances: readonly RawExample[];
}

const FIELDS = ['model', 'instances'] as const;

const file = z.strictObject({ b64: z.string() });

/** A value with the bytes of files in place of `{ "b64": "…" }`. @throws HttpError for a text that is no base64 */
function withBytes(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const found = file.safeParse(value);
  if (found.success) {
    const bytes = Buffer.from(found.data.b64, 'base64');
    if (bytes.toString('base64').replace(/=+$/, '') === found.data.b64.replace(/=+$/, '')) return bytes;
    throw new HttpError(400, `${path}.b64: expected base64.`, { param: 'instances' });
  }
  if (Array.isArray(value)) return value.map((item, i) => withBytes(item, `${path}[${i}]`));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, withBytes(item, `${path}.${key}`)]),
  );
}

/** Checks a body. @throws HttpError 400 with the field's name */
export function readPredictBody(body: unknown, most: number): PredictRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new HttpError(400, 'The body: expected a JSON object with "instances".');
  const unknown = Object.keys(body).find((name) => !FIELDS.includes(name as never));
  if (unknown !== undefined) {
    const message = `${JSON.stringify(unknown)} is not supported.${didYouMean(unknown, FIELDS)} The fields are: ${FIELDS.join(', ')}.`;
    throw new HttpError(400, message, { param: unknown });
  }
  const { model, instances } = body as { readonly model?: unknown; readonly instances?: unknown };
  if (model !== undefined && model !== null && typeof model !== 'string')
    throw new HttpError(400, 'model: expected a text.', { param: 'model' });
  if (!Array.isArray(instances) || instances.length === 0 || instances.length > most) {
    const got = Array.isArray(instances) ? `${instances.length}` : typeof instances;
    throw new HttpError(400, `instances: expected a list of 1 to ${most} examples, got ${got}.`, {
      param: 'instances',
    });
  }
  return {
    model: model ?? undefined,
    instances: instances.map((value, i) => withBytes(value, `instances[${i}]`)) as RawExample[],
  };
}
