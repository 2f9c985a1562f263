/* lanes.h: internal to the runtime: vectors of an image's channels. */
#ifndef LUTHIER_LANES_H
#define LUTHIER_LANES_H

#include <string.h>

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

/* `count` channels, as the precision p rounds them; zeros in place of those that a whole vector has more. */
INLINE vector load(int p, const float *from, int64_t count) {
  vector x = {0};
  if (count >= LANES)
    x = *(const loose *)from;
  else
    memcpy(&x, from, (size_t)count * 4);
  return p != LT_FLOAT32 ? toBfloat16(x) : x;
}

INLINE void store(float *to, vector x, int64_t count) {
  if (count >= LANES)
    *(loose *)to = x;
  else
    memcpy(to, &x, (size_t)count * 4);
}

#endif
