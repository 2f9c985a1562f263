/* integerAvx2.h: what integer products in AVX2 have in common, with VNNI and without. Of 16 registers, 8 hold sums. */
#include <immintrin.h>
#include <stdint.h>

#define LT_LANES 8
#define LT_TILE_ROWS 2
#define LT_TILE_VECTORS 2
#define LT_FEW_ROWS 2
#define LT_QUADS(to, from, stride) quadsAt((__m256i *)(to), from, stride)

static inline __attribute__((always_inline)) __m256i channelsAt(const char *from, int64_t stride) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from)),
                                 _mm_loadu_si128((const __m128i *)(from + 4 * stride)), 1);
}

static inline __attribute__((always_inline)) void quadsAt(__m256i *to, const char *from, int64_t stride) {
  const __m256i a = channelsAt(from, stride), b = channelsAt(from + stride, stride);
  const __m256i c = channelsAt(from + 2 * stride, stride), d = channelsAt(from + 3 * stride, stride);
  const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
  const __m256i abHigh = _mm256_unpackhi_epi32(a, b), cdHigh = _mm256_unpackhi_epi32(c, d);
  to[0] = _mm256_unpacklo_epi64(ab, cd);
  to[1] = _mm256_unpackhi_epi64(ab, cd);
  to[2] = _mm256_unpacklo_epi64(abHigh, cdHigh);
  to[3] = _mm256_unpackhi_epi64(abHigh, cdHigh);
}
