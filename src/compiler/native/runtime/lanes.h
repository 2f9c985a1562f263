/* lanes.h: internal to the runtime: vectors of an image's channels. */
#ifndef LUTHIER_LANES_H
#define LUTHIER_LANES_H

#include <string.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "kernels.h"

enum { LANES = 8 };

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t words __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

static inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* bf16 of the elements, as floats. */
INLINE vector toBfloat16(vector x) {
  words u;
  memcpy(&u, &x, sizeof u);
  const words nan = (u & 0x7fffffff) > 0x7f800000;
  u = ((~nan & (u + 0x7fff + ((u >> 16) & 1))) | (nan & (u | 0x400000))) & (int32_t)0xffff0000;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* The first `count` elements, fewer than a vector has, and zeros. A vector that is read right after a copy of its parts has to
   wait until these are in the cache, many times as long as a multiply-add takes: masks do without. */
#if defined(__AVX512VL__)
INLINE vector loadPart(const float *from, int64_t count) {
  return (vector)_mm256_maskz_loadu_ps((__mmask8)((1u << count) - 1), from);
}

INLINE void storePart(float *to, vector x, int64_t count) {
  _mm256_mask_storeu_ps(to, (__mmask8)((1u << count) - 1), (__m256)x);
}
#else
INLINE vector loadPart(const float *from, int64_t count) {
  vector x = {0};
#if defined(__AVX__)
  static const int32_t ones[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
  x = (vector)_mm256_maskload_ps(from, _mm256_loadu_si256((const __m256i *)(ones + LANES - count)));
#else
  memcpy(&x, from, (size_t)count * 4);
#endif
  return x;
}

INLINE void storePart(float *to, vector x, int64_t count) { memcpy(to, &x, (size_t)count * 4); }
#endif

/* `count` channels, as the precision p rounds them; zeros in place of those that a whole vector has more. */
INLINE vector load(int p, const float *from, int64_t count) {
  vector x;
  if (count >= LANES)
    x = *(const loose *)from;
  else
    x = loadPart(from, count);
  return p != LT_FLOAT32 ? toBfloat16(x) : x;
}

INLINE void store(float *to, vector x, int64_t count) {
  if (count >= LANES)
    *(loose *)to = x;
  else
    storePart(to, x, count);
}

#endif
