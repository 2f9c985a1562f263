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
#include "quantizedKernel.h"

const lt_quantized_kernel lt_quantized_avx512 = LT_QUANTIZED_KERNEL;
