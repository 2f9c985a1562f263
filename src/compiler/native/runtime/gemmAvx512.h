/* gemmAvx512.h: vectors shared by both AVX-512 microkernels. */
#include <immintrin.h>

#include "kernels.h"

#define LT_ROWS 8
#define LT_VECTORS 3
#define LT_LANES 16
#define LT_GROUP 8

/* to[w * width + i] = rows[i][w] for the first `words` of sixteen words of eight rows. */
static inline __attribute__((always_inline)) void lt_transpose512(uint32_t *to, int64_t width, const __m512i *rows,
                                                                  int64_t words) {
  __m512i pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  /* quads[q]: in its lane l the word 4 l + q of the rows 0 to 3; quads[4 + q]: of the rows 4 to 7 */
  for (int half = 0; half < 8; half += 4) {
    quads[half] = _mm512_unpacklo_epi64(pairs[half], pairs[half + 2]);
    quads[half + 1] = _mm512_unpackhi_epi64(pairs[half], pairs[half + 2]);
    quads[half + 2] = _mm512_unpacklo_epi64(pairs[half + 1], pairs[half + 3]);
    quads[half + 3] = _mm512_unpackhi_epi64(pairs[half + 1], pairs[half + 3]);
  }
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (int q = 0; q < 4; q++) {
    const __m512i first = _mm512_permutex2var_epi64(quads[q], low, quads[4 + q]);
    const __m512i second = _mm512_permutex2var_epi64(quads[q], high, quads[4 + q]);
    if (q < words) _mm256_storeu_si256((__m256i *)(to + q * width), _mm512_castsi512_si256(first));
    if (q + 4 < words) _mm256_storeu_si256((__m256i *)(to + (q + 4) * width), _mm512_extracti64x4_epi64(first, 1));
    if (q + 8 < words) _mm256_storeu_si256((__m256i *)(to + (q + 8) * width), _mm512_castsi512_si256(second));
    if (q + 12 < words) _mm256_storeu_si256((__m256i *)(to + (q + 12) * width), _mm512_extracti64x4_epi64(second, 1));
  }
}
