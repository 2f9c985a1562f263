/* integerPortable.c: integer products of rounded rows by weights of few bits in compiler vectors of four words, for every CPU. */
/* flags: -O3 -ffp-contract=off */
#include <stdint.h>

#define LT_LANES 4
#define LT_TILE_ROWS 2
#define LT_TILE_VECTORS 1
#define LT_FEW_ROWS 2
#define LT_DOT(bits, sums, w, x) dotOf(sums, w, (uint32_t)(x))
#define LT_QUADS(to, from, stride) quadsAt(to, from, stride)

typedef int32_t lt_four __attribute__((vector_size(16)));
typedef uint32_t lt_fourwords __attribute__((vector_size(16)));
static inline void quadsAt(lt_fourwords *to, const char *from, int64_t stride) {
  uint32_t words[4][4];
  for (int i = 0; i < 4; i++) __builtin_memcpy(words[i], from + i * stride, 16);
  for (int j = 0; j < 4; j++) to[j] = (lt_fourwords){words[0][j], words[1][j], words[2][j], words[3][j]};
}
static inline lt_four dotOf(lt_four sums, lt_fourwords w, uint32_t x) {
  for (int i = 0; i < 4; i++) sums += (lt_four)(w >> (8 * i) & 255) * (int8_t)(x >> (8 * i));
  return sums;
}
#include "integerKernel.h"

const lt_quantized_kernel lt_integer_portable = LT_INTEGER_KERNEL;
