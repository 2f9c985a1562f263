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
  const biased = ['ffn_layer[12](_gate)?', ...(softmaxBias ? ['logits_ffn'] : [])].join('|');
  const batch = ['replica', 'data'];
  const split = [batch, null, 'mdl'];
  return {
    weightSplitDimsMapping: {
      '.*/(ffn_layer1(_gate)?|logits_ffn)/linear/w': ['data', 'mdl'],
      '.*/ffn_layer2/linear/w': ['mdl', 'data'],
      [`.*/(${biased})/bias/b`]: ['mdl'],
      '.*/self_attention/(query|key|value|post)/w': ['data', 'mdl', null],
      ...(combineQkv && { '.*/self_attention/combined_qkv/w': [null, 'data', 'mdl', null] }),
      ...(useBias && {
        '.*/self_attention/post/b': ['data'],
        ...(combineQkv
          ? { '.*/self_attention/combined_qkv/b': [null, 'mdl', null] }
          : { '.*/self_attention/(query|key|value)/b': ['mdl', null] }),
      }),
      ...(separateEmbedding && { '.*/embedding_lookup/emb_var': ['mdl', 'data'] }),
      ...(options.trainablePositions != null && { '.*/position_emb/emb_var': ['data', 'mdl'] }),
    },
    activationSplitDimsMapping: {
      '.*/self_attention(/.*)?': [batch, null, 'mdl', null],
      '.*/ffn_layer[12](_gate)?(/.*)?': split,
      '.*/(softmax|embedding_lookup|position_emb)(/.*)?': split,
    },
  };
}
