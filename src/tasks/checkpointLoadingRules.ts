/** @file Rules by which a model's initial values come from a checkpoint (Pax's CheckpointLoadingRules). */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { isPattern, wholePath } from '../learners/index.js';

const pattern = z
  .string()
  .min(1)
  .refine(isPattern, { error: (issue) => `'${issue.input}' is not a regular expression` });

/**
 * Which variables start from a checkpoint, and from which of its variables. Patterns match a variable's whole path. As in
 * Pax, the first rule that matches is taken; unlike Pax, a rule that matches no variable is always an error.
 */
export class CheckpointLoadingRules extends Configurable.with({
  checkpoint: z
    .string()
    .min(1)
    .describe("Directory of a run (its --job_log_dir), or of one checkpoint; relative to the process's own."),
  step: z
    .union([z.int().nonnegative(), z.literal('best')])
    .nullable()
    .default(null)
    .describe('Step of the checkpoint, or the best by the metric that the run tracked; null: the newest.'),
  loadRules: z
    .array(z.tuple([pattern, z.string().min(1)]))
    .min(1)
    .default(() => [['(.*)', '{}'] as [string, string]])
    .describe(
      'Patterns of variables of the model, each with the path in the checkpoint: each {} stands for the next group ' +
        "of the pattern, {0} for the first. A path that starts with 'ema/' reads the moving average.",
    ),
  ignoreRules: z
    .array(pattern)
    .default([])
    .describe('Patterns of variables of the model that keep their own initial values.'),
}) {
  /** The rule that a variable falls under, and the path that it starts from; undefined: it keeps its own value. */
  sourceOf(path: string): { readonly rule: number; readonly source: string } | undefined {
    if (this.hp.ignoreRules.some((text) => wholePath(text).test(path))) return undefined;
    for (const [rule, [text, template]] of this.hp.loadRules.entries()) {
      const groups = wholePath(text).exec(path);
      if (groups === null) continue;
      let next = 1;
      const source = template.replace(/\{(\d*)\}/g, (_, at: string) => {
        return groups[at === '' ? next++ : Number(at) + 1] ?? '';
      });
      return { rule, source };
    }
    return undefined;
  }
}
