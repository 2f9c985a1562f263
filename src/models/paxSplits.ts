/** @file Sharding annotations of Pax's language models (praxis' TransformerLm.set_sharding_params_v1). */
import type { PaxLmOptions } from './paxLm.js';

type Splits = Record<string, (string | string[] | null)[]>;

/**
 * Along which axes of a mesh a model of `paxLm` is split in Pax: depths over `data` and `mdl`, heads, hidden depths and
 * classes over `mdl`; batches over `replica` and `data`. Norms, and what is said nothing of, are whole on every device.
 * Activations are split as where training is optimised for (TRAINING_OPTIMIZED_SHARDING, Pax's default).
 */
export function paxSplits(
  options: PaxLmOptions,
): Record<'weightSplitDimsMapping' | 'activationSplitDimsMapping', Splits> {
  const { combineQkv = true, useBias = false, softmaxBias = true, separateEmbedding = false } = options;
  const batch = ['replica', 'data'];
  const split = [batch, null, 'mdl'];
  // Stacked variables have the stages first, which lie on other devices, and the repetitions, which every device has.
  const { pipeline } = options;
  const stages = pipeline ? [...((pipeline.circularRepeat ?? 1) > 1 ? [null] : []), 'stage'] : [];
  const stacked = [...stages, ...(options.repeatedLayers ? [null] : [])];
  return {
    weightSplitDimsMapping: {
      '.*/ffn_layer1(_gate)?/linear/w': [...stacked, 'data', 'mdl'],
      '.*/logits_ffn/linear/w': ['data', 'mdl'],
      '.*/ffn_layer2/linear/w': [...stacked, 'mdl', 'data'],
      '.*/ffn_layer[12](_gate)?/bias/b': [...stacked, 'mdl'],
      ...(softmaxBias && { '.*/logits_ffn/bias/b': ['mdl'] }),
      '.*/self_attention/(query|key|value|post)/w': [...stacked, 'data', 'mdl', null],
      ...(combineQkv && { '.*/self_attention/combined_qkv/w': [...stacked, null, 'data', 'mdl', null] }),
      ...(useBias && {
        '.*/self_attention/post/b': [...stacked, 'data'],
        ...(combineQkv
          ? { '.*/self_attention/combined_qkv/b': [...stacked, null, 'mdl', null] }
          : { '.*/self_attention/(query|key|value)/b': [...stacked, 'mdl', null] }),
      }),
      ...(separateEmbedding && { '.*/embedding_lookup/emb_var': ['mdl', 'data'] }),
      ...(options.trainablePositions != null && { '.*/position_emb/emb_var': ['data', 'mdl'] }),
    },
    activationSplitDimsMapping: {
      '.*/self_attention(/.*)?': [batch, null, 'mdl', null],
      // Residual sums and norms are split as the outputs of the branches that they add: XLA hands that on.
      '.*/transformer(/(?!.*(self_attention|ffn_layer[12])).*)?': split,
      '.*/ffn_layer[12](_gate)?(/.*)?': split,
      '.*/(softmax|embedding_lookup|position_emb)(/.*)?': split,
    },
  };
}
