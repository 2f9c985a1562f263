/* quantizedAvx2.c: products by weights of few bits in AVX2. Of 16 registers, 8 hold sums. */
/* flags: -O3 -mavx2 -mfma */
#include <immintrin.h>

#define LT_LANES 8
#define LT_TILE_ROWS 2
#define LT_TILE_CHANNELS 2
#define LT_BYTES(p) (lt_vector) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define LT_NIBBLES(words, i)                                                                                            \
  (lt_vector) _mm256_cvtepi32_ps(_mm256_sub_epi32(                                                                      \
      _mm256_and_si256(_mm256_srli_epi32((__m256i)(words), 4 * (i)), _mm256_set1_epi32(15)), _mm256_set1_epi32(8)))
#include "quantizedKernel.h"

const lt_quantized_kernel lt_quantized_avx2 = LT_QUANTIZED_KERNEL;
