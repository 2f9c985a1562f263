/* gemmAvx512Bf16.c: the microkernel of AVX512-BF16: two products of bf16 summed into each float32 at once. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mprfchw -mprefer-vector-width=512 */
#include "gemmAvx512.h"

/* The instructions round to nearest even, keep NaN, and take subnormal numbers for zero. */
#define LT_NAME(x) x
#define LT_DEPTH 2
#define LT_OPERAND __m512i
#define LT_LOAD(p) _mm512_loadu_si512(p)
#define LT_SPREAD(w) _mm512_set1_epi32((int)(w))
#define LT_MULADD(c, a, b) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define LT_NARROW(x) (lt_halves) _mm512_cvtneps_pbh(x)
#include "gemmKernel.h"

/* The lanes [0, count) of sixteen (thirty-two). */
LT_INLINE __mmask16 lanes16(int64_t count) { return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1); }
LT_INLINE __mmask32 lanes32(int64_t count) { return count >= 32 ? ~0u : count <= 0 ? 0 : (1u << count) - 1; }

/* `count` neighbours along k as sixteen pairs, zeros after. */
LT_INLINE __m512i pairsAlong(const int32_t type, const void *from, int64_t index, int64_t count) {
  if (type == LT_BFLOAT16) return _mm512_maskz_loadu_epi16(lanes32(count), (const bf16 *)from + index);
  const float *at = (const float *)from + index;
  const __m512 low = _mm512_maskz_loadu_ps(lanes16(count), at);
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(lanes16(count - 16), at + 16), low);
}

/* The lanes of two rows of memory as pairs (even, odd). */
LT_INLINE __m512i pairsAcross(const int32_t type, const void *even, const void *odd, __mmask16 lanes, __mmask16 both) {
  const __mmask16 second = lanes & both;
  if (type == LT_BFLOAT16) {
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, even));
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5,
                                         20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512 low = _mm512_maskz_loadu_ps(lanes, even), high = _mm512_maskz_loadu_ps(second, odd);
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

LT_INLINE void packAcross(const int32_t type, uint32_t *to, int64_t width, const void *from, int64_t along, int64_t valid,
                          int64_t k) {
  const int64_t size = type == LT_BFLOAT16 ? 2 : 4;
  for (int64_t d = 0; d < k; d += 2, to += width) {
    const char *even = (const char *)from + d * along * size, *odd = even + along * size;
    const __mmask16 both = d + 1 < k ? 0xffff : 0;
    for (int64_t i = 0; i < width; i += 16) {
      const __m512i pairs = pairsAcross(type, even + i * size, odd + i * size, lanes16(valid - i), both);
      _mm512_mask_storeu_epi32(to + i, lanes16(width - i), pairs);
    }
  }
}

LT_INLINE void packAlong(const int32_t type, uint32_t *to, int64_t width, const void *from, int64_t across, int64_t valid,
                         int64_t k) {
  for (int64_t d = 0; d < k; d += 32, to += 16 * width) {
    for (int64_t i = 0; i < width; i += 8) {
      __m512i rows[8];
      for (int g = 0; g < 8; g++)
        rows[g] = i + g < valid ? pairsAlong(type, from, (i + g) * across + d, k - d) : _mm512_setzero_si512();
      lt_transpose512(to + i, width, rows, k - d >= 32 ? 16 : (k - d + 1) / 2);
    }
  }
}

static bf16 element(int32_t type, const void *from, int64_t index) {
  return type == LT_BFLOAT16 ? ((const bf16 *)from)[index] : lt_to_bf16(((const float *)from)[index]);
}

static void pack(uint32_t *to, int64_t width, const void *from, int32_t type, int64_t across, int64_t along, int64_t valid,
                 int64_t k) {
  if (along == 1 && type == LT_BFLOAT16) return packAlong(LT_BFLOAT16, to, width, from, across, valid, k);
  if (along == 1) return packAlong(LT_FLOAT32, to, width, from, across, valid, k);
  if (across == 1 && type == LT_BFLOAT16) return packAcross(LT_BFLOAT16, to, width, from, along, valid, k);
  if (across == 1) return packAcross(LT_FLOAT32, to, width, from, along, valid, k);
  for (int64_t d = 0; d < k; d += 2, to += width) {
    for (int64_t i = 0; i < width; i++) {
      const uint32_t even = i < valid ? element(type, from, i * across + d * along) : 0;
      const uint32_t odd = i < valid && d + 1 < k ? element(type, from, i * across + (d + 1) * along) : 0;
      to[i] = even | odd << 16;
    }
  }
}

const lt_kernel lt_avx512bf16_bfloat16 = {
    "avx512bf16", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 2, pack, multiply, burn};
