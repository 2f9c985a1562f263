/* gemmPortable.c: the microkernel in compiler vectors of four floats, for every CPU. */
/* flags: -O3 */
#include "kernels.h"

#define LT_NAME(x) x
#define LT_LANES 4
#define LT_DEPTH 1
#define LT_ROWS 4
#define LT_VECTORS 2
#define LT_OPERAND lt_vector
#define LT_LOAD(p) (*(const lt_loose *)(p))
#define LT_SPREAD(w) spread(w)
#define LT_MULADD(c, a, b) ((c) + (a) * (b))

typedef float spreadVector __attribute__((vector_size(16)));
static inline __attribute__((always_inline)) spreadVector spread(uint32_t word) {
  const float x = lt_from_bits(word);
  return (spreadVector){x, x, x, x};
}

#include "gemmKernel.h"

#define LT_GROUP 4
#define LT_TRANSPOSE(to, width, stored, rows)                                                                          \
  for (int w = 0; w < LT_LANES; w++)                                                                                   \
    for (int g = 0; g < (stored); g++) (to)[w * (width) + g] = (rows)[g][w]
#include "gemmPack.h"

const lt_kernel lt_portable_float32 = {
    "portable", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packFloat32, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_portable_bfloat16 = {
    "portable", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_portable_kept = {
    "portable", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choosePairs, NULL, burn, packPairs, NULL, 2};
