/* quantizedPortable.c: products by weights of few bits in compiler vectors of four floats, for every CPU. */
/* flags: -O3 */
#include <stdint.h>

#define LT_LANES 4
#define LT_TILE_ROWS 2
#define LT_TILE_CHANNELS 2

typedef int8_t lt_bytes __attribute__((vector_size(4)));
typedef int32_t lt_signedwords __attribute__((vector_size(16)));
typedef float lt_floats __attribute__((vector_size(16)));
static inline lt_floats bytesAt(const char *from) {
  lt_bytes bytes;
  __builtin_memcpy(&bytes, from, 4);
  return __builtin_convertvector(bytes, lt_floats);
}
#define LT_BYTES(p) bytesAt(p)
#define LT_NIBBLES(words, i) __builtin_convertvector((lt_signedwords)((words) >> (4 * (i)) & 15) - 8, lt_vector)
#include "quantizedKernel.h"

const lt_quantized_kernel lt_quantized_portable = LT_QUANTIZED_KERNEL;
