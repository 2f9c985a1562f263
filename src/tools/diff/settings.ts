/** @file Review settings, the `luthier.review` of package.json: thresholds with their labels, constants, the device. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { didYouMean, showValue } from '../../hparams/index.js';
import { UsageError } from '../../registry/usageError.js';

// Each message says what was expected.
const text = (expected: string) => z.string(expected).min(1, expected);
const needsLabel = text("the name of a label, such as 'costs-more'");
const share = z.string("a share such as '10%'").regex(/^\d+(?:\.\d+)?%$/, "a share such as '10%'");

/** A figure of an experiment that may not grow by more than a share. */
const growth = <F extends string>(figure: F) =>
  z.strictObject({ figure: z.literal(figure), moreThan: share, needsLabel });

/** What may not become of an experiment. */
const event = <F extends string, E extends string>(figure: F, ...events: readonly [E, ...E[]]) =>
  z.strictObject({
    figure: z.literal(figure),
    when: z.enum(events, choice(events)),
    needsLabel,
  });

function choice(values: readonly string[]): string {
  const shown = values.map((value) => `'${value}'`).join(', ');
  return values.length === 1 ? shown : `one of ${shown}`;
}

const thresholds = [
  growth('parameters'),
  growth('flopsPerToken'),
  growth('tokensPerStep'),
  growth('peakMemory'),
  event('checkpoints', 'incompatible'),
  event('experiments', 'broken', 'removed'),
] as const;
const figures = thresholds.map(({ shape }) => shape.figure.value);

/** What a change may do to an experiment only with a label on its pull request. */
export const thresholdSchema = z.discriminatedUnion('figure', thresholds, {
  error: ({ code }: { code: string }) =>
    code === 'invalid_type' ? 'an object with figure and needsLabel' : choice(figures),
});
export type Threshold = z.infer<typeof thresholdSchema>;

const settingsSchema = z.strictObject(
  {
    /** Values of constants, by experiments' names or patterns, for those in which they have none. */
    constants: z
      .record(
        z.string(),
        z.record(z.string(), z.json(), 'an object with values of constants'),
        "an object such as { 'lm.*': { dataPath: 'sample.txt' } }",
      )
      .default({}),
    /** The device file, from the project's folder, that training costs are told for. */
    device: text('the path of a device file').optional(),
    thresholds: z.array(thresholdSchema, 'an array of thresholds').default([]),
  },
  'an object with constants, device or thresholds',
);

/** What a project asks of its reviews. */
export type ReviewSettings = z.infer<typeof settingsSchema>;

/**
 * The review settings of the project in `folder`; without any, those that ask for nothing.
 *
 * @throws UsageError that names the setting, what was expected and what is there.
 */
export function readSettings(folder: string): ReviewSettings {
  const file = join(folder, 'package.json');
  const given = existsSync(file) ? settingsIn(readFileSync(file, 'utf8')) : undefined;
  const result = settingsSchema.safeParse(given ?? {});
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => problemOf(issue, given));
  throw new UsageError(problems.join('\n'));
}

/**
 * The settings that a review of the working tree follows: those of the base, so that no change loosens its own gates. With
 * its own ones, and what a reader should know where the base's cannot be read.
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

function settingsIn(text: string): unknown {
  try {
    const manifest = JSON.parse(text) as { luthier?: { review?: unknown } };
    return manifest.luthier?.review;
  } catch (error) {
    throw new UsageError(`package.json: expected JSON; ${(error as Error).message}.`);
  }
}

function problemOf(issue: z.core.$ZodIssue, given: unknown): string {
  const where = `package.json: ${z.core.toDotPath(['luthier', 'review', ...issue.path])}`;
  const at = issue.path.reduce<unknown>((part, key) => (part as Record<PropertyKey, unknown>)?.[key], given);
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(at);
    const problems = issue.keys.map((key) => `no setting '${key}'.${didYouMean(key, known)}`);
    return `${where}: ${problems.join(' ')} Expected ${known.join(', ')}.`;
  }
  const names = issue.code === 'invalid_union' ? figures : issue.code === 'invalid_value' ? issue.values : [];
  const hint = typeof at === 'string' ? didYouMean(at, names.map(String)) : '';
  return `${where}: expected ${issue.message}; got ${at === undefined ? 'nothing' : showValue(at)}.${hint}`;
}

/** The settings that there are where `at` stands. */
function knownKeys(at: unknown): string[] {
  const { figure } = at as { figure?: unknown };
  const { shape } = thresholds.find((each) => each.shape.figure.value === figure) ?? settingsSchema;
  return Object.keys(shape);
}
