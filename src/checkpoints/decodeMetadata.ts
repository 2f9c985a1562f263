/** @file Reading of metadata.json, apart from its writing: the thread that saves does without zod, which loads slowly. */

import { z } from 'zod';
import { schemaProblem } from '../files/index.js';
import { CheckpointError } from './checkpointErrors.js';
import { CHECKPOINT_VERSIONS, type CheckpointMetadata, digestOfJson } from './metadata.js';

const versionSchema = z.enum(CHECKPOINT_VERSIONS);

const digestSchema = z.strictObject({
  byteLength: z.int().nonnegative(),
  sha256: z.string(),
  chunks: z.strictObject({ byteLength: z.int().positive(), sha256: z.array(z.string()) }).optional(),
});

const dtypeSchema = z.enum(['float32', 'int8', 'uint8', 'bfloat16', 'float16']);

const variableSchema = z.strictObject({
  shape: z.array(z.int().nonnegative()),
  dtype: dtypeSchema,
  isFrozen: z.boolean().optional(),
  slots: z
    .record(
      z.string(),
      z.strictObject({
        shape: z.array(z.int().nonnegative()),
        dtype: dtypeSchema,
      }),
    )
    .optional(),
});

const metadataSchema: z.ZodType<CheckpointMetadata> = z.strictObject({
  version: versionSchema,
  experiment: z.string(),
  step: z.int().nonnegative(),
  savedAt: z.iso.datetime(),
  variables: z.record(z.string(), variableSchema),
  slots: z.array(z.string()),
  isGood: z.boolean().optional(),
  best: z.strictObject({ step: z.int().nonnegative(), metric: z.string(), value: z.number() }).optional(),
  files: z.record(z.string(), digestSchema),
});

/** @throws CheckpointError of kind `broken` */
export function decodeMetadata(path: string, bytes: Uint8Array): CheckpointMetadata {
  let parsed: Record<string, unknown>;
  try {
    parsed = z
      .looseObject({ version: z.string(), sha256: z.string() })
      .parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? schemaProblem(cause) : (cause as Error).message;
    throw new CheckpointError('broken', path, `not a checkpoint's metadata: ${reason}`, { cause });
  }
  const { sha256: expected, ...fields } = parsed;
  const found = digestOfJson(fields);
  if (found !== expected) {
    throw new CheckpointError('broken', path, `damaged: expected sha256 ${expected}, found ${found}`);
  }
  if (!versionSchema.safeParse(fields.version).success) {
    const known = CHECKPOINT_VERSIONS.join(', ').replace(/, ([^,]*)$/, ' or $1');
    const versions = `expected version ${known}, found ${fields.version}`;
    throw new CheckpointError('mismatch', path, `written by another version of Luthier: ${versions}`);
  }
  const checked = metadataSchema.safeParse(fields);
  if (checked.success) return checked.data;
  throw new CheckpointError('broken', path, schemaProblem(checked.error), { cause: checked.error });
}
