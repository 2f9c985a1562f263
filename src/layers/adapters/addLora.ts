/** @file LoRA in a model: put in by one change of its config, and merged into its weights. */
import type { Tensor } from '../../compiler/index.js';
import { ConfigError, copy, select, updateCallable } from '../../hparams/index.js';
import { DotProductAttention } from '../attention/attentions.js';
import { AttentionProjection, CombinedQKVProjectionLayer } from '../attention/projections.js';
import type { BaseLayer } from '../core/base.js';
import { listLayers, listVariables } from '../core/variables.js';
import { Linear } from '../linears.js';
import { TransformerFeedForward } from '../transformer/feedForwards.js';
import {
  LoraAttentionProjection,
  LoraCombinedQKVProjectionLayer,
  type LoraLayer,
  LoraLinear,
} from './lora.js';

/** Pattern of the variables that LoRA trains, for `bpropVariableInclusion` and `ignoreRules`. */
export const LORA_VARIABLES = '.*/lora_[ab]';

/** Layers that have a form with LoRA, by the layer whose parts they are. */
const FORMS = {
  attention: [
    [DotProductAttention, AttentionProjection, LoraAttentionProjection],
    [DotProductAttention, CombinedQKVProjectionLayer, LoraCombinedQKVProjectionLayer],
  ],
  mlp: [[TransformerFeedForward, Linear, LoraLinear]],
} as const;

interface LoraOptions {
  /** Rank of the changes; 8 by default. */
  readonly rank?: number;
  /** α: changes are multiplied by α / rank; by 1 where absent, as in Pax. */
  readonly alpha?: number;
  /** Projections of attention, those of feed-forward layers, or, as by default, all of them. */
  readonly targets?: 'all' | keyof typeof FORMS;
}

/**
 * Gives the projections of the transformers below a config the form with LoRA; all else stays as it is. Variables of the
 * model keep their paths, and those that {@link LORA_VARIABLES} matches are added: a learner whose `bpropVariableInclusion` is
 * that pattern trains them alone.
 *
 * @param root config of a model, a task or an experiment's list of them; it is changed.
 * @returns the number of configs that were changed.
 * @throws ConfigError where there is no such projection
 */
export function addLora(root: object, { rank = 8, alpha, targets = 'all' }: LoraOptions = {}): number {
  const values = { rank, ...(alpha !== undefined && { alpha }) };
  const forms = targets === 'all' ? [...FORMS.attention, ...FORMS.mlp] : FORMS[targets];
  let count = 0;
  for (const [owner, plain, form] of forms)
    for (const each of select(root, owner))
      count += select(each, { cls: plain, matchSubclasses: false, allowEmpty: true }).replace((old: never) =>
        Object.assign(updateCallable(copy(old), form as never), values),
      );
  if (count === 0)
    throw new ConfigError(
      `addLora() found no projection of ${targets === 'all' ? 'attention or feed-forward layers' : targets} in this config.`,
    );
  return count;
}

/** The layers with LoRA below a model, by the path of the weights that they change. */
export const loraLayers = (root: BaseLayer): ReadonlyMap<string, LoraLayer> =>
  new Map(
    listLayers(root)
      .filter((layer): layer is LoraLayer => 'merged' in layer)
      .map((layer) => [layer.variables.get('w')!.path, layer]),
  );

/**
 * Values of the same model without LoRA, whose outputs are the same: each change is added to its weights.
 *
 * @param root the model with LoRA. @param values those of its variables by path.
 */
export function mergeLora(root: BaseLayer, values: Readonly<Record<string, Tensor>>): Record<string, Tensor> {
  const pattern = new RegExp(`^${LORA_VARIABLES}$`);
  const kept = listVariables(root).filter(({ path }) => !pattern.test(`/${path}`));
  const merged = Object.fromEntries(kept.map(({ path }) => [path, values[path]!]));
  for (const [path, layer] of loraLayers(root)) {
    const named = [...layer.variables].map(([name, { path }]) => [name, values[path]!] as const);
    merged[path] = layer.merged(Object.fromEntries(named) as never);
  }
  return merged;
}
