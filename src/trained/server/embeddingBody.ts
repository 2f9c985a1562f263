/** @file Bodies and answers of POST /v1/embeddings, in OpenAI's form. */
import { z } from 'zod';
import type { ExamplePrediction } from '../examplePredictor.js';
import { checkedFields, expected } from './bodyFields.js';

/** A request for the embeddings of texts. */
export interface EmbeddingRequest {
  readonly model: string | undefined;
  readonly texts: readonly string[];
  /** Whether vectors are float32, little-endian, in base64; else they are lists. */
  readonly isBase64: boolean;
}

function schemaFor(most: number) {
  const text = z.string(expected('a text')).min(1, expected('a text that is not empty'));
  return z.object({
    model: z.string(expected('a text')).optional(),
    input: z.union([text, z.array(text).min(1).max(most)], expected(`a text, or a list of 1 to ${most}`)),
    encoding_format: z.enum(['float', 'base64'], expected('"float" or "base64"')).optional(),
    user: z.string(expected('a text')).optional(),
  });
}

/** Checks a body. @param most texts of a request @throws HttpError 400 with the field's name */
export function readEmbeddingBody(body: unknown, most: number): EmbeddingRequest {
  const { model, input, encoding_format } = checkedFields(body, schemaFor(most), 'input');
  return {
    model,
    texts: typeof input === 'string' ? [input] : input,
    isBase64: encoding_format === 'base64',
  };
}

/** The answer. @param tokens of all texts together */
export function embeddingAnswer(
  model: string,
  predictions: readonly ExamplePrediction[],
  { tokens, isBase64 }: { readonly tokens: number; readonly isBase64: boolean },
): object {
  const data = predictions.map(({ outputs }, index) => {
    const values = outputs.embeddings as readonly number[];
    const embedding = isBase64 ? base64Of(values) : values;
    return { object: 'embedding', index, embedding };
  });
  return { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

function base64Of(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeFloatLE(value, i * 4);
  return bytes.toString('base64');
}
