/** @file Lookup of tokens in the weights of a softmax, for models that tie the two. */
import type { Tensor } from '../../compiler/index.js';
import type { BaseSoftmax } from '../baseSoftmax.js';
import type { BaseLayer } from '../core/base.js';

/** A table of tokens. */
export interface TokenLookup {
  /** int32 ids [...] to [..., depth]. */
  embLookup(ids: Tensor): Tensor;
}

/** The lookup in the weights of the softmax of `owner`. @throws LayerError for a softmax that has none */
export function lookupOf(owner: BaseLayer, softmax: BaseSoftmax): TokenLookup {
  const shared: BaseSoftmax & Partial<TokenLookup> = softmax;
  if (shared.embLookup) return { embLookup: (ids) => shared.embLookup!(ids) };
  throw owner.error(
    `softmaxTpl is a ${softmax.constructor.name}, which can't embed tokens; set separateEmbeddingTpl, or use ` +
      'SharedEmbeddingSoftmax or NClassMajorSharedEmbeddingSoftmax.',
  );
}
