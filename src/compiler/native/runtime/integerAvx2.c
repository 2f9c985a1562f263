/* integerAvx2.c: integer products of rounded rows by weights of few bits in AVX2. */
/* flags: -O3 -mavx2 -mfma -ffp-contract=off */
#include "integerAvx2.h"

#define LT_DOT(bits, sums, w, x) (lt_ints) _mm256_add_epi32((__m256i)(sums), dotOf(bits, (__m256i)(w), _mm256_set1_epi32(x)))

/* Sums of two products have 16 bits with weights of 4, at most 2 * 15 * 127; those of 8 are multiplied as words of 16 bits, even
   bytes and odd ones. */
static inline __attribute__((always_inline)) __m256i dotOf(const int bits, __m256i w, __m256i x) {
  if (bits == 4) return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1));
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8));
  return _mm256_add_epi32(even, _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8)));
}
#include "integerKernel.h"

const lt_quantized_kernel lt_integer_avx2 = LT_INTEGER_KERNEL;
