/** @file Networks whose layers differ by the kinds that a config.json gives them. */
import { z } from 'zod';
import { type Config, derive } from '../../hparams/index.js';
import type { Transformer, TransformerLm } from '../../layers/index.js';

/** Fields of a config.json whose attention has windows in some layers. */
export const windowFields = {
  sliding_window: z.int().positive().nullish(),
  layer_types: z.array(z.enum(['full_attention', 'sliding_attention'])).nullish(),
};

interface LayerTypes {
  readonly num_hidden_layers: number;
  readonly layer_types?: readonly string[] | null | undefined;
}

/** Settings whose layer_types, if they are there, are as many as the layers. */
export const checkedLayerTypes = <T extends LayerTypes>(settings: z.ZodType<T>): z.ZodType<T> =>
  settings.refine(
    ({ num_hidden_layers, layer_types }) => layer_types == null || layer_types.length === num_hidden_layers,
    { path: ['layer_types'], error: 'expected one for each of num_hidden_layers' },
  );

/**
 * The kinds of the layers: those that the settings list, or else by `kindOf`, which is called with the numbers of the layers,
 * from 1.
 */
export const layerTypesOf = <K extends string>(
  values: { readonly num_hidden_layers: number; readonly layer_types?: readonly K[] | null | undefined },
  kindOf: (layer: number) => K,
): readonly K[] =>
  values.layer_types ?? Array.from({ length: values.num_hidden_layers }, (_, i) => kindOf(i + 1));

/** Gives each layer its own config: the template of all layers, as `change` alters it for the layer's kind. */
export function setLayerKinds<K extends string>(
  lm: Config<TransformerLm>,
  kinds: readonly K[],
  change: (layer: Config<Transformer>, kind: K) => void,
): void {
  const stack = lm.stackedTransformerTpl;
  const layers = kinds.map((kind) => derive(stack.transformerLayerParamsTpl, (layer) => change(layer, kind)));
  if (new Set(kinds).size === 1) stack.transformerLayerParamsTpl = layers[0]!;
  else stack.transformerLayerParamsTpls = layers;
}
