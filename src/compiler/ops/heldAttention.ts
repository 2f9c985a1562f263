/** @file Attention to keys and values as a cache holds them: heads that several of queries share, or codes of 8 bits. */
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, INT, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import type { AttentionOptions } from './attention.js';
import { attrsOf, forward } from './attentionForms.js';
import { extrasOf } from './hiddenKeys.js';
import { attentionPart } from './partialAttention.js';

/** Operands behind all others where attribute `coded` is set: factors of the keys' rows and of the values', [B, S, N, 1]. */
const SCALES = 2;

/** Each head [B, S, N, H] for `times` consecutive ones. */
function repeated(x: tf.Tensor, times: number): tf.Tensor {
  const [batch, keys, heads, depth] = x.shape as [number, number, number, number];
  const apart = tf.reshape(x, [batch * keys, heads, 1, depth]);
  return tf.reshape(tf.tile(apart, [1, 1, times, 1]), [batch, keys, heads * times, depth]);
}

/**
 * As `Attention`, with the logarithms of sums [B, N, T] as second result. Keys and values have as many heads as queries, or a
 * divisor of them, each for consecutive heads of queries. With `coded` they are int32, to be multiplied by scales [B, S, N, 1],
 * the last two operands. Engines with machine code make it of attentions to repeated heads and unpacked codes.
 */
defineOperation('HeldAttention', {
  inputs: 'list',
  isProduct: true,
  attrs: (raw: any) => ({ ...attrsOf(raw), ...(raw.coded && { coded: true }) }),
  infer: (inputs, { coded }) => {
    const [q, k, v] = inputs as [(typeof inputs)[number], (typeof inputs)[number], (typeof inputs)[number]];
    const [batch, queries, heads] = q.shape as [number, number, number];
    const isShared = heads % k.shape[2]! === 0 && k.shape[2] === v.shape[2];
    expects(isShared, 'keys and values of as many heads, a divisor of those of queries', [q, k, v]);
    expectsDtypes([k, v], coded ? INT : FLOAT);
    if (coded) expectsDtypes(inputs.slice(-SCALES), FLOAT);
    return [spec([batch, queries, heads, v.shape[3]!], 'float32'), spec([batch, heads, queries], 'float32')];
  },
  decompose: ([q, k, v, ...rest], attrs) => {
    const scales = attrs.coded ? rest.splice(-SCALES) : [];
    const [key, value] = [k!, v!].map((x, i) => {
      const floats = scales[i] ? tf.mul(tf.cast(x, 'float32'), scales[i]) : x;
      return repeated(floats as tf.Tensor, q!.shape[2]! / x.shape[2]!);
    }) as [tf.Tensor, tf.Tensor];
    const { before, after } = attrs as AttentionOptions['window'] & {};
    const options = { ...(attrs as AttentionOptions), ...extrasOf(rest, attrs), window: { before, after } };
    const { means, logSums } = attentionPart(q!, key, value, options as AttentionOptions);
    const [batch, queries, heads] = q!.shape as [number, number, number];
    return [means, tf.reshape(tf.transpose(logSums, [0, 2, 1, 3]), [batch, heads, queries])];
  },
  device: {
    ...forward,
    keeps: () => true,
    bytes: [1, 2],
    shares: (inputs, outputs, attrs) => {
      const [q, k] = inputs as [(typeof inputs)[number], (typeof inputs)[number]];
      // A thread's heads of queries need not begin with those that share a key.
      if (q.shape[2] !== k.shape[2]) return {};
      const { read = [] } = forward.shares!(inputs, outputs, attrs);
      const scales = [inputs.length - 2, inputs.length - 1].map((i) => [i, [0, 2]] as const);
      return attrs.coded && read.length > 0 ? { read: [...read, ...scales] } : { read };
    },
  },
});
