/** @file Names of LoRA's factors in PEFT's adapters, by the names of the weights that they change. */
import { type BaseLayer, type LoraLayer, loraLayers } from '../layers/index.js';
import type { NameRule, NameRules } from '../models/index.js';
import { applyRule } from '../tasks/index.js';

/** The rules of a model's factors, and the reasons why there are not all of them, a line each. */
export interface AdapterNames {
  readonly names: NameRules;
  readonly problems: readonly string[];
}

/**
 * The names of a model's factors: PEFT has `lora_A` [rank, inputs] and `lora_B` [outputs, rank] beside a module's weight.
 *
 * @param names those of the model's weights, whose axes say which are inputs and outputs
 */
export function adapterNames(model: BaseLayer, names: NameRules): AdapterNames {
  const [rules, problems]: [NameRule[], string[]] = [[], []];
  for (const [path, layer] of loraLayers(model)) {
    const [found] = names.rules.flatMap((rule) => applyRule(rule, path) ?? []);
    const axes = found && factorAxes(layer, found.axes ?? 'i o -> i o');
    if (axes === undefined) problems.push(`${path}: PEFT has no module of its factors.`);
    else
      for (const factor of ['a', 'b'] as const) {
        const module = found!.tensor.replace(/\.weight$/, '');
        const variable = layer.variables.get(`lora_${factor}`)!.path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        rules.push([variable, `${module}.lora_${factor.toUpperCase()}.weight`, axes[factor]]);
      }
  }
  const prefixes = ['', ...names.prefixes].map((prefix) => `base_model.model.${prefix}`).reverse();
  return { names: { rules, prefixes, buffers: [], copies: {} }, problems };
}

/** The orders of the factors' axes, by that of the weights; undefined where inputs are not an axis of their own. */
function factorAxes(layer: LoraLayer, axes: string): { readonly a: string; readonly b: string } | undefined {
  const [stored = '', variable = ''] = axes.split('->').map((side) => side.trim());
  const words = variable.split(/\s+/);
  const count = layer.variables.get('lora_a')!.shape.length - 1;
  const { isOutputProjection = false } = layer.hp as { readonly isOutputProjection?: boolean };
  const inputs = isOutputProjection ? words.slice(1) : words.slice(0, count);
  const outputs = words.filter((word) => !inputs.includes(word));
  const groups = stored.match(/\([^)]*\)|\S+/g) ?? [];
  const ofInputs = groups.filter((group) => inputs.some((word) => group.match(/[\w/]+/g)!.includes(word)));
  const ofOutputs = groups.filter((group) => !ofInputs.includes(group));
  if (inputs.length !== count || ofInputs.length !== 1 || ofOutputs.length !== 1) return undefined;
  return {
    a: `r ${ofInputs[0]} -> ${inputs.join(' ')} r`,
    b: `${ofOutputs[0]} r -> r ${outputs.join(' ')}`,
  };
}
