/** @file Prefix tuning of a model: put in by one change of its config. */
import { ConfigError, select } from '../../hparams/index.js';
import { DotProductAttention } from '../attention/attentions.js';
import { KeyValuePrefix } from '../attention/keyValuePrefix.js';

/** Pattern of the variables of prefixes, for `bpropVariableInclusion` and `ignoreRules`. */
export const PREFIX_VARIABLES = '.*/prefix/(key|value)';

/**
 * Gives each dot-product attention below a config trained keys and values in front of those of the sequence; all else stays as
 * it is. Variables keep their paths, and those that {@link PREFIX_VARIABLES} matches are added: a learner whose
 * `bpropVariableInclusion` is that pattern trains them alone. Latent attention has none.
 *
 * @param root config of a model, a task or an experiment's list of them; it is changed.
 * @returns the number of configs that were changed.
 * @throws ConfigError where there is no such attention
 */
export function addPrefix(
  root: object,
  { prefixLength = 8 }: { readonly prefixLength?: number } = {},
): number {
  const found = [...select(root, { cls: DotProductAttention, allowEmpty: true })];
  if (found.length === 0) throw new ConfigError('addPrefix() found no dot-product attention in this config.');
  for (const each of found) each.prefixTpl = KeyValuePrefix.config({ prefixLength });
  return found.length;
}
