/** @file Mutants of the C runtime: one small mistake each, at the edges of tiles, tails, sums and slices. */

/** An edit of one file that changes results. */
export interface RuntimeMutant {
  /** Name of the file in `src/compiler/native/runtime`. */
  readonly file: string;
  /** Text that the file has once. */
  readonly find: string;
  readonly replace: string;
}

/**
 * Each changes results on every CPU, or those of all kernels but the one that multiplies bf16. Files for the instructions
 * of one CPU have none: where these are missing, nothing could notice.
 */
export const runtimeMutants: readonly RuntimeMutant[] = [
  // Products: packing, tiles, slabs, shares of threads.
  {
    file: 'gemm.c',
    find: 'end = least(m, last * width)',
    replace: 'end = least(m - 1, last * width)',
  },
  {
    file: 'gemm.c',
    find: 'lt_element(b, k0, 0), b, n, k1 - k0);',
    replace: 'lt_element(b, k0, 0), b, n - 1, k1 - k0);',
  },
  {
    file: 'gemmPack.h',
    find: 'for (int64_t c = whole; c < width; c++)',
    replace: 'for (int64_t c = whole + 1; c < width; c++)',
  },
  {
    file: 'gemmPack.h',
    find: 'return rounding ? LT_NAME(rounded)(u) & 0xffff0000u : u;',
    replace: 'return rounding ? u & 0xffff0000u : u;',
  },
  { file: 'gemmKernel.h', find: 'to[j] += tile[j]', replace: 'to[j] = tile[j]' },
  {
    file: 'gemmKernel.h',
    find: 'const int whole = m == rows && n == vectors * LT_LANES;',
    replace: 'const int whole = m == rows;',
  },
  { file: 'gemmKernel.h', find: 'if (alpha != 1.0f) {', replace: 'if (alpha != 1.0f && whole) {' },
  { file: 'gemmKernel.h', find: 'm - i >= 4 ? 2 : m - i >= 2;', replace: 'm - i >= 4 ? 2 : m - i >= 1;' },
  {
    file: 'gemmProducts.c',
    find: 'slab.accumulate = q->accumulate || s > 0;',
    replace: 'slab.accumulate = q->accumulate;',
  },
  {
    file: 'gemmProducts.c',
    find: 'alpha, accumulate || p > 0, next, share);',
    replace: 'alpha, accumulate, next, share);',
  },
  {
    file: 'gemmProducts.c',
    find: 'packSlab(kernel, &packed, now + i, own[i]);\n    }\n    lt_barrier();',
    replace: 'packSlab(kernel, &packed, now + i, own[i]);\n    }',
  },
  {
    file: 'gemmProducts.c',
    find: 'ceilDivide(last - i, blocks)) : j;',
    replace: 'ceilDivide(last, blocks)) : j;',
  },
  {
    file: 'gemmProducts.c',
    find: 'end = least(q->m, last * kernel->rows);',
    replace: 'end = least(q->m, last * kernel->rows - 1);',
  },
  // Attention: what a query sees, tails of rows, blocks of keys, gradients.
  {
    file: 'attentionSoftmax.c',
    find: 'lt_least(lt_first_query(a, at->key + r) - at->query, at->lanes);',
    replace: 'lt_least(lt_first_query(a, at->key + r) - at->query - 1, at->lanes);',
  },
  {
    file: 'attentionSoftmax.c',
    find: 'for (; r < keys; r++, row += lanes)\n      for (int c',
    replace: 'for (; r + 1 < keys; r++, row += lanes)\n      for (int c',
  },
  {
    file: 'attention.c',
    find: 'slopes[i] = scale * (1.0f - t * t);',
    replace: 'slopes[i] = scale * (1.0f - t);',
  },
  {
    file: 'attention.c',
    find: 'for (; at < columns; at++) sum',
    replace: 'for (; at + 1 < columns; at++) sum',
  },
  {
    file: 'attentionChunk.c',
    find: 'biases[c] = -1.44269504f * lt_sink_log(',
    replace: 'biases[c] = 1.44269504f * lt_sink_log(',
  },
  { file: 'attentionForward.c', find: 'rescale_sums(b, queries, factors);\n    }', replace: '}' },
  {
    file: 'attentionFew.c',
    find: 'for (; r < rows; r++, row += rs)',
    replace: 'for (; r + 1 < rows; r++, row += rs)',
  },
  {
    file: 'attentionBackward.c',
    find: 'const int adds = add_dk && add_dv;',
    replace: 'const int adds = add_dk || add_dv;',
  },
  { file: 'attentionBackward.c', find: 'b->dq.stride, accumulate);', replace: 'b->dq.stride, 0);' },
  {
    file: 'attentionBackward.c',
    find: 'const int64_t begin = lt_least(seeing.begin',
    replace: 'const int64_t begin = 0 * lt_least(seeing.begin',
  },
  {
    file: 'attention.c',
    find: 'if (any_between(ids + step, keys.end - step, least, most)) break;',
    replace: '',
  },
  { file: 'attentionMask.c', find: 'items < threads && dmask.query != 0;', replace: 'items < threads;' },
  // Convolutions.
  { file: 'winograd.c', find: 'return total == 0;', replace: 'return 1;' },
  { file: 'winogradGradient.c', find: '1.0f, block > begin, work);', replace: '1.0f, block > 0, work);' },
  { file: 'depthwise.c', find: 'at / w->stride < w->count ?', replace: 'at / w->stride <= w->count ?' },
  {
    file: 'depthwise.c',
    find: '(last - 1) * w->stride + offset >= w->size) last--;',
    replace: '(last - 1) * w->stride + offset > w->size) last--;',
  },
  // Indices, random numbers, functions of single numbers.
  {
    file: 'indexing.c',
    find: 'if (last > columns) last = columns;',
    replace: 'if (last > columns) last = columns - 1;',
  },
  { file: 'indexing.c', find: 'value += 0.0f; /* -0 + 0 = 0 */', replace: '' },
  {
    file: 'draws.c',
    find: 'out[count - 1] = firsts[count / 2];',
    replace: 'out[count - 1] = seconds[count / 2];',
  },
  {
    file: 'random.c',
    find: '!is_whole && first + i < count; i++)',
    replace: '!is_whole && first + i + 1 < count; i++)',
  },
  { file: 'vectormath.h', find: '__builtin_rintf(x)', replace: '__builtin_roundf(x)' },
  {
    file: 'vectormath.h',
    find: 'return x < 0.0f ? LT_NAN : positive;',
    replace: 'return x <= -1.0f ? LT_NAN : positive;',
  },
  {
    file: 'integermath.h',
    find: 'result = b < 0 ? inverse : result;',
    replace: 'result = b < 1 ? inverse : result;',
  },
  // Programs: steps, loops, operands that programs share.
  {
    file: 'packSteps.c',
    find: 'const int64_t slabs = (k + SLAB - 1) / SLAB,',
    replace: 'const int64_t slabs = k / SLAB,',
  },
  { file: 'program.c', find: 'if (term->period) at %= term->period;', replace: '' },
  { file: 'sharedOperands.c', find: 'x->precision == y->precision && ', replace: '' },
];
