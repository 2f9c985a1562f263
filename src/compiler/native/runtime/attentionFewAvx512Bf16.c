/* attentionFewAvx512Bf16.c: AVX512-BF16 products of a query with sixteen keys at a time, and of weights with values. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mprefer-vector-width=512 */
#include <immintrin.h>

#include "attentionFew.h"

#define LT_UNROLL _Pragma("GCC unroll 16")

static inline __m512 dot(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }

/* Sums of sixteen vectors: element 4 i + j is the sum of a[i + 4 j]. */
static inline __m512 sum_each(const __m512 *a) {
  __m512 b[8], c[4];
  LT_UNROLL for (int i = 0; i < 8; i++)
    b[i] = _mm512_add_ps(_mm512_unpacklo_ps(a[i], a[i + 8]), _mm512_unpackhi_ps(a[i], a[i + 8]));
  LT_UNROLL for (int i = 0; i < 4; i++)
    c[i] = _mm512_add_ps(_mm512_unpacklo_ps(b[i], b[i + 4]), _mm512_unpackhi_ps(b[i], b[i + 4]));
  const __m512 d0 = _mm512_add_ps(_mm512_shuffle_f32x4(c[0], c[1], 0x88), _mm512_shuffle_f32x4(c[0], c[1], 0xdd));
  const __m512 d1 = _mm512_add_ps(_mm512_shuffle_f32x4(c[2], c[3], 0x88), _mm512_shuffle_f32x4(c[2], c[3], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(d0, d1, 0x88), _mm512_shuffle_f32x4(d0, d1, 0xdd));
}

void lt_few_dots_avx512bf16(const bf16 *query, const bf16 *keys, int64_t rs, int64_t count, int64_t dims, float *logits) {
  for (int64_t r = 0; r < count; r += 16) {
    const bf16 *row[16];
    __m512 sums[16];
    LT_UNROLL for (int i = 0; i < 16; i++) {
      /* The position that sum_each gives it; the last row is repeated beyond the end. */
      const int64_t at = r + 4 * (i % 4) + i / 4;
      row[i] = keys + (at < count ? at : count - 1) * rs;
      sums[i] = _mm512_setzero_ps();
    }
    int64_t d = 0;
    for (; d + 32 <= dims; d += 32) {
      const __m512i q = _mm512_loadu_si512(query + d);
      LT_UNROLL for (int i = 0; i < 16; i++) sums[i] = dot(sums[i], q, _mm512_loadu_si512(row[i] + d));
    }
    if (d < dims) {
      const __mmask32 rest = (__mmask32)((1ull << (dims - d)) - 1);
      const __m512i q = _mm512_loadu_si512(query + d);
      LT_UNROLL for (int i = 0; i < 16; i++) sums[i] = dot(sums[i], q, _mm512_maskz_loadu_epi16(rest, row[i] + d));
    }
    const __mmask16 there = count - r < 16 ? (__mmask16)((1u << (count - r)) - 1) : 0xffff;
    _mm512_mask_storeu_ps(logits + r, there, sum_each(sums));
  }
}

/* Adds columns [0, 32) of a group to two vectors of sums, in the column order that unpacking produces. */
static inline void add_pair(__m512 sums[2], __m512i v0, __m512i v1, __m512i weights) {
  sums[0] = dot(sums[0], _mm512_unpacklo_epi16(v0, v1), weights);
  sums[1] = dot(sums[1], _mm512_unpackhi_epi16(v0, v1), weights);
}

static inline void add_columns(const float *weights, const bf16 *values, int64_t rs, int64_t rows, const int groups,
                               __mmask32 there, float *to) {
  __m512 sums[2][2] = {{_mm512_setzero_ps(), _mm512_setzero_ps()}, {_mm512_setzero_ps(), _mm512_setzero_ps()}};
  const __m512i none = _mm512_setzero_si512();
  for (int64_t r = 0; r < rows; r += 2) {
    const int two = r + 1 < rows;
    const bf16 *v = values + r * rs;
    /* Weights are rounded already: their upper halves hold the whole value. */
    const uint32_t pair = lt_bits(weights[r]) >> 16 | (two ? lt_bits(weights[r + 1]) & 0xffff0000u : 0);
    const __m512i both = _mm512_set1_epi32((int32_t)pair);
    LT_UNROLL for (int g = 0; g < groups; g++)
      add_pair(sums[g], _mm512_maskz_loadu_epi16(there, v + 32 * g),
               two ? _mm512_maskz_loadu_epi16(there, v + rs + 32 * g) : none, both);
  }
  const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i high = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  LT_UNROLL for (int g = 0; g < groups; g++) {
    float *at = to + 32 * g;
    const __mmask16 first = (__mmask16)there, second = (__mmask16)(there >> 16);
    const __m512 a = _mm512_permutex2var_ps(sums[g][0], low, sums[g][1]);
    const __m512 b = _mm512_permutex2var_ps(sums[g][0], high, sums[g][1]);
    _mm512_mask_storeu_ps(at, first, _mm512_add_ps(_mm512_maskz_loadu_ps(first, at), a));
    _mm512_mask_storeu_ps(at + 16, second, _mm512_add_ps(_mm512_maskz_loadu_ps(second, at + 16), b));
  }
}

void lt_few_values_avx512bf16(const float *weights, const bf16 *values, int64_t rs, int64_t rows, int64_t columns,
                              float *sums) {
  int64_t c = 0;
  for (; c + 64 <= columns; c += 64) add_columns(weights, values + c, rs, rows, 2, 0xffffffffu, sums + c);
  for (; c < columns; c += 32) {
    const int64_t rest = columns - c;
    add_columns(weights, values + c, rs, rows, 1, rest < 32 ? (1u << rest) - 1 : 0xffffffffu, sums + c);
  }
}
