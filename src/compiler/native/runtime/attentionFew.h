/* attentionFew.h: products of a query with bf16 keys and values, for CPUs with such instructions. */
#ifndef LUTHIER_ATTENTION_FEW_H
#define LUTHIER_ATTENTION_FEW_H

#include "kernels.h"

/* logits[r] = query keys[r]; the query is padded with zeros from dims to a multiple of 32. */
void lt_few_dots_avx512bf16(const bf16 *query, const bf16 *keys, int64_t rs, int64_t count, int64_t dims, float *logits);

/* sums[c] += the sum of weights[r] values[r, c]; weights are rounded to bf16. */
void lt_few_values_avx512bf16(const float *weights, const bf16 *values, int64_t rs, int64_t rows, int64_t columns,
                              float *sums);

#endif
