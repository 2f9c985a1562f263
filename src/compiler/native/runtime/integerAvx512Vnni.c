/* integerAvx512Vnni.c: integer products of rounded rows by weights of few bits in AVX-512 with VNNI. Of 32 registers, 24 hold sums. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mprefer-vector-width=512 -ffp-contract=off */
#include <immintrin.h>
#include <stdint.h>

#define LT_LANES 16
#define LT_TILE_ROWS 6
#define LT_TILE_VECTORS 2
#define LT_FEW_ROWS 3
#define LT_DOT(bits, sums, w, x) (lt_ints) _mm512_dpbusd_epi32((__m512i)(sums), (__m512i)(w), _mm512_set1_epi32(x))
#define LT_QUADS(to, from, stride) quadsAt((__m512i *)(to), from, stride)

static inline __attribute__((always_inline)) __m512i channelsAt(const char *from, int64_t stride) {
  const __m512i one = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)from));
  const __m512i two = _mm512_inserti32x4(one, _mm_loadu_si128((const __m128i *)(from + 4 * stride)), 1);
  const __m512i three = _mm512_inserti32x4(two, _mm_loadu_si128((const __m128i *)(from + 8 * stride)), 2);
  return _mm512_inserti32x4(three, _mm_loadu_si128((const __m128i *)(from + 12 * stride)), 3);
}

static inline __attribute__((always_inline)) void quadsAt(__m512i *to, const char *from, int64_t stride) {
  const __m512i a = channelsAt(from, stride), b = channelsAt(from + stride, stride);
  const __m512i c = channelsAt(from + 2 * stride, stride), d = channelsAt(from + 3 * stride, stride);
  const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
  const __m512i abHigh = _mm512_unpackhi_epi32(a, b), cdHigh = _mm512_unpackhi_epi32(c, d);
  to[0] = _mm512_unpacklo_epi64(ab, cd);
  to[1] = _mm512_unpackhi_epi64(ab, cd);
  to[2] = _mm512_unpacklo_epi64(abHigh, cdHigh);
  to[3] = _mm512_unpackhi_epi64(abHigh, cdHigh);
}
#include "integerKernel.h"

const lt_quantized_kernel lt_integer_avx512vnni = LT_INTEGER_KERNEL;
