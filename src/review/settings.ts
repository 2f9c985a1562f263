/** @file Review settings, the `luthier.review` of package.json: thresholds with their labels, constants, the device. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { explain, parseJson } from '../files/index.js';
import { issueText } from '../hparams/index.js';
import { UsageError } from '../system/text/index.js';

const needsLabel = z.string().min(1);
/** `10%`, `2.5%` */
const share = z.string().regex(/^\d+(\.\d+)?%$/);

/** A figure of an experiment that may not grow by more than a share. */
const growth = <F extends string>(figure: F) =>
  z.strictObject({ figure: z.literal(figure), moreThan: share, needsLabel });

/** A forbidden outcome of an experiment. */
const event = <F extends string, E extends string>(figure: F, ...events: readonly [E, ...E[]]) =>
  z.strictObject({ figure: z.literal(figure), when: z.enum(events), needsLabel });

/** A change to an experiment that needs a label on the pull request. */
export const thresholdSchema = z.discriminatedUnion('figure', [
  growth('parameters'),
  growth('flopsPerToken'),
  growth('tokensPerStep'),
  growth('peakMemory'),
  event('checkpoints', 'incompatible', 'changed', 'uncompared'),
  event('experiments', 'broken', 'removed'),
]);
export type Threshold = z.infer<typeof thresholdSchema>;

const settingsSchema = z.strictObject({
  /** Values of constants, by experiments' names or patterns, for those in which they have none. */
  constants: z.record(z.string(), z.record(z.string(), z.json())).default({}),
  /** The device file for costs of training, relative to the project's folder. */
  device: z.string().min(1).optional(),
  thresholds: z.array(thresholdSchema).default([]),
});

/** A project's review settings. */
export type ReviewSettings = z.infer<typeof settingsSchema>;

/**
 * The review settings of the project in `folder`; empty by default.
 *
 * @throws UsageError that names the setting, the expected and the present value.
 */
export function readSettings(folder: string): ReviewSettings {
  const file = join(folder, 'package.json');
  const given = existsSync(file) ? settingsIn(readFileSync(file, 'utf8')) : undefined;
  const result = settingsSchema.safeParse(given ?? {});
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) =>
    issueText('package.json: luthier.review', settingsSchema, given, issue),
  );
  throw new UsageError(`${problems.join('\n')}.`);
}

/**
 * The settings for a review of the working tree: those of the base, so that no change loosens its own gates; also the
 * working tree's own, and a note if the base's cannot be read.
 *
 * @throws UsageError for settings of the working tree that the next reviews could not follow.
 */
export function settingsOfBase(
  base: string,
  workingTree: string,
): { readonly settings: ReviewSettings; readonly own: ReviewSettings; readonly notes: readonly string[] } {
  const own = readSettings(workingTree);
  try {
    return { settings: readSettings(base), own, notes: [] };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const note = `No thresholds hold, for the base's review settings are wrong: ${error.message}`;
    return { settings: settingsSchema.parse({}), own, notes: [note] };
  }
}

const manifest = z.looseObject({ luthier: z.looseObject({ review: z.unknown().optional() }).optional() });

function settingsIn(text: string): unknown {
  try {
    return parseJson(text, manifest).luthier?.review;
  } catch (error) {
    throw new UsageError(`package.json: ${explain(error)}.`);
  }
}
