/* quantizedAvx512.c: products by weights of few bits in AVX-512. Of 32 registers, 24 hold sums. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprfchw -mprefer-vector-width=512 */
#include <immintrin.h>

#define LT_LANES 16
#define LT_TILE_ROWS 3
#define LT_TILE_CHANNELS 4
#define LT_BYTES(p) (lt_vector) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
/* A permutation's indices are the lower four bits of words. */
#define LT_NIBBLES(words, i)                                                                                            \
  (lt_vector) _mm512_permutexvar_ps(_mm512_srli_epi32((__m512i)(words), 4 * (i)),                                        \
                                    _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7))
/* Four scales, each in four lanes: bf16 are the upper halves of floats. */
#define LT_SCALES(p)                                                                                                    \
  (lt_vector) _mm512_maskz_permutexvar_epi16(                                                                           \
      0xaaaaaaaau, _mm512_set_epi64(0x0003000000030000, 0x0003000000030000, 0x0002000000020000, 0x0002000000020000,    \
                                    0x0001000000010000, 0x0001000000010000, 0, 0),                                     \
      _mm512_castsi128_si512(_mm_loadl_epi64((const __m128i *)(p))))
#define LT_TOTAL(v) _mm512_reduce_add_ps((__m512)(v))
#define LT_STORE_TOTALS(to, v) storeTotals(to, (__m512)(v)[0], (__m512)(v)[1], (__m512)(v)[2], (__m512)(v)[3])

/* The totals of four vectors, each added as by LT_TOTAL: halves, quarters, pairs, neighbours. */
static inline __attribute__((always_inline)) void storeTotals(float *to, __m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
  const __m512 all = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 pairs = _mm512_add_ps(all, _mm512_permute_ps(all, 0x4e)), sums = _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0xb1));
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  _mm_storeu_ps(to, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, sums)));
}

/* Keeps compilers from loading a factor anew for each product that has it. */
#define LT_IN_REGISTER(v) __asm__("" : "+v"(v))
#include "quantizedKernel.h"

const lt_quantized_kernel lt_quantized_avx512 = LT_QUANTIZED_KERNEL;
