/** @file Rules by which a model's initial values come from a checkpoint (Pax's CheckpointLoadingRules), or from published weights. */
import { z } from 'zod';
import { isAxisOrder } from '../checkpoints/index.js';
import { Configurable } from '../hparams/index.js';
import { isPattern, wholePath } from '../learners/index.js';
import { type NameRule, type NameRules, nameRulesOf, publishedFamilies } from '../models/index.js';

const pattern = z
  .string()
  .min(1)
  .refine(isPattern, { error: (issue) => `'${issue.input}' is not a regular expression` });

const axes = z.string().refine(isAxisOrder, {
  error: (issue) =>
    `expected the stored axes and the variable's, as 'o i -> i o' or 'd (0/3 n h) -> d n h', got '${issue.input}'`,
});

/** Names of the tensors in a checkpoint's own state.safetensors, for one that is given as a file. */
const stateNames: NameRules = {
  rules: [['(.*)', 'params/{}']],
  prefixes: [],
  buffers: ['step', 'slots/.*'],
  copies: {},
};

/** A tensor that a variable may start from. */
export interface Candidate {
  readonly tensor: string;
  /** Order of its axes, where they differ from the variable's. */
  readonly axes: string | undefined;
}

/**
 * Which variables start from a checkpoint, and from which of its variables. Patterns match a variable's whole path. As in
 * Pax, the first rule that matches is taken; unlike Pax, a rule that matches no variable is always an error.
 */
export class CheckpointLoadingRules extends Configurable.with({
  checkpoint: z
    .string()
    .min(1)
    .describe(
      'Directory of a run (its --job_log_dir), or of one checkpoint; or published weights: a safetensors file, or a folder ' +
        "of them as Hugging Face's. Relative to the process's own.",
    ),
  step: z
    .union([z.int().nonnegative(), z.literal('best')])
    .nullable()
    .default(null)
    .describe('Step of the checkpoint, or the best by the metric that the run tracked; null: the newest.'),
  averageLast: z
    .int()
    .positive()
    .default(1)
    .describe('How many checkpoints of a run, from the newest back, values are the means of.'),
  loadRules: z
    .array(z.tuple([pattern, z.string().min(1), axes.optional()]))
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Patterns of variables of the model, each with the path in the checkpoint: each {} stands for the next group ' +
        "of the pattern, {0} for the first. A path that starts with 'ema/' reads the moving average. A third text is the " +
        "order of the axes, 'o i -> i o' of a transposed matrix. null: the same paths, or those of nameRules.",
    ),
  nameRules: z
    .enum(['auto', 'none', ...publishedFamilies, 'luthier'])
    .default('auto')
    .describe(
      "Names of published weights, which hold for what loadRules say nothing of; auto: those of config.json's model_type. " +
        'They have to account for every tensor.',
    ),
  ignoreRules: z
    .array(pattern)
    .default([])
    .describe('Patterns of variables of the model that keep their own initial values.'),
  ignoreTensors: z
    .array(pattern)
    .default([])
    .describe('Patterns of tensors of published weights that may be left over.'),
}) {
  /** Whether a variable keeps its own value. */
  keeps(path: string): boolean {
    return this.hp.ignoreRules.some((text) => wholePath(text).test(path));
  }

  /** The rules of one's own; `names` is whether there are name rules besides. */
  ownRules(names: boolean): readonly NameRule[] {
    return this.hp.loadRules ?? (names ? [] : [['(.*)', '{}']]);
  }
}

/** The names of a family, or of a checkpoint's state. */
export const namesOf = (
  family: Exclude<CheckpointLoadingRules['hp']['nameRules'], 'auto' | 'none'>,
): NameRules => (family === 'luthier' ? stateNames : nameRulesOf(family));

/** The result of a rule for a variable's path; undefined where its pattern does not match. */
export function applyRule([text, template, axes]: NameRule, path: string): Candidate | undefined {
  const groups = wholePath(text).exec(path);
  if (groups === null) return undefined;
  let next = 1;
  const tensor = template.replace(/\{(\d*)\}/g, (_, at: string) => {
    return groups[at === '' ? next++ : Number(at) + 1] ?? '';
  });
  return { tensor, axes };
}
