/* gemmAvx512Bf16.c: the microkernel for AVX512-BF16, which adds two products of bf16 to each float32 at once. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mprfchw -mprefer-vector-width=512 */
#include "gemmAvx512.h"

/* The instructions round to nearest even, keep NaN, and flush subnormal numbers to zero. */
#define LT_NAME(x) x
#define LT_DEPTH 2
#define LT_OPERAND __m512i
#define LT_LOAD(p) _mm512_loadu_si512(p)
#define LT_SPREAD(w) _mm512_set1_epi32((int)(w))
#define LT_MULADD(c, a, b) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define LT_NARROW(x) (lt_halves) _mm512_cvtneps_pbh(x)
#include "gemmKernel.h"

/* ---- Packing --------------------------------------------------------------------------------------------------- */

LT_INLINE __mmask32 lanes32(int64_t count) { return count >= 32 ? ~0u : count <= 0 ? 0 : (1u << count) - 1; }
LT_INLINE int64_t bytesOf(const int32_t type) { return type == LT_BFLOAT16 ? 2 : 4; }

/* Of thirty-two neighbours, those selected by `lanes` as bf16, zeros elsewhere. */
LT_INLINE __m512i halvesAt(const int32_t type, const char *from, __mmask32 lanes) {
  if (type == LT_BFLOAT16) return _mm512_maskz_loadu_epi16(lanes, from);
  const __m512 low = _mm512_maskz_loadu_ps((__mmask16)lanes, from);
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps((__mmask16)(lanes >> 16), from + 64), low);
}

LT_INLINE void fetch32(const int32_t type, const char *from) {
  __builtin_prefetch(from, 0, 2);
  if (type != LT_BFLOAT16) __builtin_prefetch(from + 64, 0, 2);
}

/* Thirty-two columns of `rows` <= 4 rows of memory: one or two words of each of `panels` <= 4 panels of eight. */
LT_INLINE void packFour(const int32_t type, uint32_t *to, int64_t size, const char *from, int64_t stride, const int rows,
                        __mmask32 lanes, int64_t panels) {
  __m512i row[4], pairs[4], halves[4];
  for (int r = 0; r < 4; r++) row[r] = r < rows ? halvesAt(type, from + r * stride, lanes) : _mm512_setzero_si512();
  for (int r = 0; r < 4; r += 2) {
    /* a quarter of a vector is half a word of the panel of the same number */
    pairs[r] = _mm512_unpacklo_epi16(row[r], row[r + 1]);
    pairs[r + 1] = _mm512_unpackhi_epi16(row[r], row[r + 1]);
    halves[r] = _mm512_shuffle_i64x2(pairs[r], pairs[r + 1], 0x44);
    halves[r + 1] = _mm512_shuffle_i64x2(pairs[r], pairs[r + 1], 0xee);
  }
  const __m512i words[4] = {
      _mm512_shuffle_i64x2(halves[0], halves[2], 0x88), _mm512_shuffle_i64x2(halves[0], halves[2], 0xdd),
      _mm512_shuffle_i64x2(halves[1], halves[3], 0x88), _mm512_shuffle_i64x2(halves[1], halves[3], 0xdd)};
  for (int q = 0; q < 4 && q < panels; q++, to += size) {
    if (rows > 2)
      _mm512_storeu_si512(to, words[q]);
    else
      _mm256_storeu_si256((__m256i *)to, _mm512_castsi512_si256(words[q]));
  }
}

/* Panels of eight from rows of memory, four rows at a time in order: fills whole cache lines of the panels. */
LT_INLINE void packNarrow(const int32_t type, uint32_t *to, int64_t size, const char *from, int64_t along, int64_t vectors,
                          int64_t k) {
  const int64_t stride = along * bytesOf(type);
  for (int64_t d = 0; d < k; d += 4, to += 2 * LT_ROWS, from += 4 * stride) {
    const char *at = from;
    uint32_t *place = to;
    for (int64_t i = 0; i < vectors; i += 32, at += 32 * bytesOf(type), place += 4 * size) {
      const __mmask32 lanes = lanes32(vectors - i);
      const int64_t panels = (vectors - i + 7) / 8, rows = k - d;
      if (rows >= 4) {
        for (int r = 4; r < 8; r++) fetch32(type, at + r * stride);
        if (lanes == ~0u)
          packFour(type, place, size, at, stride, 4, ~0u, 4);
        else
          packFour(type, place, size, at, stride, 4, lanes, panels);
      } else if (rows == 3) {
        packFour(type, place, size, at, stride, 3, lanes, panels);
      } else if (rows == 2) {
        packFour(type, place, size, at, stride, 2, lanes, panels);
      } else {
        packFour(type, place, size, at, stride, 1, lanes, panels);
      }
    }
  }
}

/* Panels of multiples of sixteen from rows of memory, two rows at a time in order. */
LT_INLINE void packWide(const int32_t type, uint32_t *to, int64_t size, int64_t width, const char *from, int64_t along,
                        int64_t vectors, int64_t k) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5,
                                       36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const int64_t stride = along * bytesOf(type), columns = (vectors + width - 1) / width * width;
  for (int64_t d = 0; d < k; d += 2, to += width, from += 2 * stride) {
    const __mmask32 both = d + 1 < k ? ~0u : 0;
    const char *even = from;
    uint32_t *panel = to;
    for (int64_t i = 0, place = 0; i < columns; i += 32, even += 32 * bytesOf(type)) {
      const __mmask32 lanes = lanes32(vectors - i);
      const __m512i first = halvesAt(type, even, lanes), second = halvesAt(type, even + stride, lanes & both);
      fetch32(type, even + 4 * stride);
      fetch32(type, even + 5 * stride);
      _mm512_storeu_si512(panel + place, _mm512_permutex2var_epi16(first, low, second));
      if ((place += 16) == width) panel += size, place = 0;
      if (i + 16 == columns) break;
      _mm512_storeu_si512(panel + place, _mm512_permutex2var_epi16(first, high, second));
      if ((place += 16) == width) panel += size, place = 0;
    }
  }
}

/* Eight vectors, contiguous in memory, of which `valid` exist; prefetches the next eight. */
LT_INLINE void packEight(const int32_t type, uint32_t *to, int64_t width, const char *from, int64_t stride, int64_t valid,
                         int64_t k) {
  for (int64_t d = 0; d < k; d += 32, to += 16 * width, from += 32 * bytesOf(type)) {
    __m512i rows[8];
    if (valid >= 8 && k - d >= 32) {
      for (int g = 0; g < 8 && valid >= 16; g++) fetch32(type, from + (8 + g) * stride);
      for (int g = 0; g < 8; g++) rows[g] = halvesAt(type, from + g * stride, ~0u);
      lt_transpose512(to, width, rows, 16);
    } else {
      for (int g = 0; g < 8; g++)
        rows[g] = g < valid ? halvesAt(type, from + g * stride, lanes32(k - d)) : _mm512_setzero_si512();
      lt_transpose512(to, width, rows, k - d >= 32 ? 16 : (k - d + 1) / 2);
    }
  }
}

/* Panels of vectors that are contiguous in memory, eight at a time, in stretches short enough that the panel stays
   in the cache until its other columns are written, and long enough for sequential reads. */
LT_INLINE void packAlong(const int32_t type, uint32_t *to, int64_t size, int64_t width, const char *from, int64_t across,
                         int64_t vectors, int64_t k) {
  enum { AT_ONCE = 1024 };
  const int64_t stride = across * bytesOf(type);
  for (int64_t j = 0; j < vectors; j += width, to += size)
    for (int64_t d = 0; d < k; d += AT_ONCE)
      for (int64_t i = 0; i < width; i += 8)
        packEight(type, to + d / 2 * width + i, width, from + (j + i) * stride + d * bytesOf(type), stride,
                  vectors - j - i, k - d < AT_ONCE ? k - d : AT_ONCE);
}

LT_INLINE void packRows(const int32_t type, uint32_t *to, int64_t size, int64_t width, const char *from, int64_t across,
                        int64_t along, int64_t vectors, int64_t k) {
  if (along == 1)
    packAlong(type, to, size, width, from, across, vectors, k);
  else if (width == LT_ROWS)
    packNarrow(type, to, size, from, along, vectors, k);
  else
    packWide(type, to, size, width, from, along, vectors, k);
}

static bf16 element(int32_t type, const void *from, int64_t index) {
  return type == LT_BFLOAT16 ? ((const bf16 *)from)[index] : lt_to_bf16(((const float *)from)[index]);
}

static void pack(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across, int64_t along,
                 int64_t vectors, int64_t k) {
  if (along == 1 || across == 1) {
    if (type == LT_BFLOAT16) return packRows(LT_BFLOAT16, to, size, width, from, across, along, vectors, k);
    return packRows(LT_FLOAT32, to, size, width, from, across, along, vectors, k);
  }
  for (int64_t j = 0; j < vectors; j += width, to += size) {
    for (int64_t d = 0; d < k; d += 2) {
      for (int64_t i = 0; i < width; i++) {
        const int64_t at = (j + i) * across + d * along;
        const uint32_t even = j + i < vectors ? element(type, from, at) : 0;
        const uint32_t odd = j + i < vectors && d + 1 < k ? element(type, from, at + along) : 0;
        to[d / 2 * width + i] = even | odd << 16;
      }
    }
  }
}

const lt_kernel lt_avx512bf16_bfloat16 = {
    "avx512bf16", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 2, pack, choose, NULL, burn, NULL, NULL, 2};
