/** @file Learner with several optimizers, each for the variables that its pattern matches (Pax's MultiOptimizerLearner). */
import { z } from 'zod';
import type { FlatLayout } from '../compiler/index.js';
import { instance } from '../hparams/index.js';
import { check } from './checkFields.js';
import type { LearnableVariable } from './learnableVariable.js';
import { Learner } from './learner.js';
import { BaseOptimizer } from './optimizers/optimizer.js';
import { checkPatterns, compilePattern } from './pathPattern.js';

/**
 * A learner whose `optimizer` updates the variables that no pattern matches. Each auxiliary optimizer has a learning rate,
 * regularisation and weight decay of its own. The average of parameters is that of `optimizer`, for all variables.
 */
export class MultiOptimizerLearner extends Learner.with({
  auxiliaryOptimizers: z
    .array(instance(BaseOptimizer, null))
    .default(() => [])
    .describe('Optimizers of the variables that the pattern of the same position matches.'),
  auxiliaryRegex: z
    .array(z.string())
    .default(() => [])
    .describe('Regular expressions of whole paths of variables, one for each auxiliary optimizer.'),
  auxiliaryNames: z
    .array(z.string().regex(/^\w[\w-]*$/))
    .default(() => [])
    .describe('Names of the auxiliary optimizers, by which summaries tell their learning rates.'),
  applySeparateScaling: z
    .boolean()
    .default(false)
    .describe(
      'Whether each optimizer clips the gradients of its own variables, by their norm; otherwise `optimizer` clips all together.',
    ),
}) {
  private patterns: RegExp[] = [];

  override setup(): void {
    super.setup();
    const { auxiliaryOptimizers, auxiliaryRegex, auxiliaryNames, applySeparateScaling } = this.hp;
    const counts = [auxiliaryOptimizers.length, auxiliaryRegex.length, auxiliaryNames.length] as const;
    check(
      this,
      new Set(counts).size === 1,
      'auxiliaryOptimizers, auxiliaryRegex and auxiliaryNames need the same length: ' +
        `got ${counts[0]}, ${counts[1]} and ${counts[2]}.`,
    );
    const twice = auxiliaryNames.find((name, i) => auxiliaryNames.indexOf(name) !== i);
    check(
      this,
      twice === undefined,
      `auxiliaryNames has '${twice}' twice; give each optimizer a name of its own.`,
    );
    for (const [i, { hp }] of auxiliaryOptimizers.entries()) {
      const at = `auxiliaryOptimizers[${i}], '${auxiliaryNames[i]}'`;
      check(
        this,
        hp.emaDecay === 0,
        `${at}, has emaDecay ${hp.emaDecay}, and averages are those of all variables: set optimizer.emaDecay.`,
      );
      check(
        this,
        !auxiliaryOptimizers[i]!.evaluatesAverage || this.evaluatesAverage,
        `${at}, has an average that evaluations take, and optimizer has none: let optimizer be such a one, too.`,
      );
      const clips = hp.clipGradientNormToValue > 0 || hp.clipGradientSingleNormToValue > 0;
      check(
        this,
        applySeparateScaling || !clips,
        `${at}, clips gradients, and optimizer clips all together: set applySeparateScaling, or clip by optimizer.`,
      );
    }
    this.patterns = auxiliaryRegex.map((pattern) => compilePattern(this, pattern));
  }

  /** @throws ConfigError for a pattern that matches no variable that moves, and for a variable that two match */
  override layout(variables: readonly LearnableVariable[]): FlatLayout {
    const moving = variables.filter((variable) => this.isTrainable(variable));
    checkPatterns(this, this.hp.auxiliaryRegex, moving, 'variable that moves');
    for (const { path } of moving) {
      const matching = this.hp.auxiliaryRegex.filter((_, i) => this.patterns[i]!.test(path));
      check(
        this,
        matching.length <= 1,
        `auxiliaryRegex: '${matching[0]}' and '${matching[1]}' both match '${path}'; let one of them leave it out, ` +
          `as (?!${path}$)${matching[1]}.`,
      );
    }
    return super.layout(variables);
  }

  protected override get optimizers(): ReadonlyMap<string, BaseOptimizer> {
    const { auxiliaryNames, auxiliaryOptimizers } = this.hp;
    return new Map([
      ...super.optimizers,
      ...auxiliaryNames.map((name, i) => [name, auxiliaryOptimizers[i]!] as const),
    ]);
  }

  protected override optimizerOf(path: string): string {
    const found = this.patterns.findIndex((pattern) => pattern.test(path));
    return this.hp.auxiliaryNames[found] ?? '';
  }

  protected override get separateScaling(): boolean {
    return this.hp.applySeparateScaling;
  }
}
