/* gemmAvx2.c: the microkernel for AVX2 with fused multiply-add. */
/* flags: -O3 -mavx2 -mfma */
#include <immintrin.h>

#include "kernels.h"

#define LT_NAME(x) x
#define LT_ROWS 6
#define LT_VECTORS 2
#define LT_LANES 8
#define LT_DEPTH 1
#define LT_OPERAND __m256
#define LT_LOAD(p) _mm256_loadu_ps((const float *)(p))
#define LT_SPREAD(w) _mm256_castsi256_ps(_mm256_set1_epi32((int)(w)))
#define LT_MULADD(c, a, b) _mm256_fmadd_ps(a, b, c)
#include "gemmKernel.h"

/* Stores six or eight words; masked stores would take many cycles. */
LT_INLINE void store(uint32_t *to, int64_t stored, __m256i words) {
  if (stored == 8) return _mm256_storeu_si256((__m256i *)to, words);
  _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(words));
  _mm_storel_epi64((__m128i *)(to + 4), _mm256_extracti128_si256(words, 1));
}

/* to[w * width + i] = rows[i][w] for i < stored, which is the tile's rows or eight. */
LT_INLINE void transpose(uint32_t *to, int64_t width, int64_t stored, const __m256i *rows) {
  __m256i pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int half = 0; half < 8; half += 4) {
    quads[half] = _mm256_unpacklo_epi64(pairs[half], pairs[half + 2]);
    quads[half + 1] = _mm256_unpackhi_epi64(pairs[half], pairs[half + 2]);
    quads[half + 2] = _mm256_unpacklo_epi64(pairs[half + 1], pairs[half + 3]);
    quads[half + 3] = _mm256_unpackhi_epi64(pairs[half + 1], pairs[half + 3]);
  }
  for (int q = 0; q < 4; q++) {
    store(to + q * width, stored, _mm256_permute2x128_si256(quads[q], quads[4 + q], 0x20));
    store(to + (q + 4) * width, stored, _mm256_permute2x128_si256(quads[q], quads[4 + q], 0x31));
  }
}

#define LT_GROUP 8
#define LT_TRANSPOSE(to, width, stored, rows) transpose(to, width, stored, (const __m256i *)(rows))
#include "gemmPack.h"

const lt_kernel lt_avx2_float32 = {
    "avx2", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packFloat32, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_avx2_bfloat16 = {
    "avx2", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_avx2_kept = {
    "avx2", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choosePairs, NULL, burn, packPairs, NULL, 2};
