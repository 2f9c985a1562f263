/* drawnBits.c: a sum of the bits of drawn numbers, to compare machines by. */
#include <stdio.h>

#include "luthier.h"

enum { COUNT = 100003 };
static float normal[COUNT], even[COUNT];

static uint64_t add(uint64_t sum, const float *x) {
  for (int i = 0; i < COUNT; i++) sum = (sum ^ lt_bits(x[i])) * 0x100000001b3u;
  return sum;
}

int main(void) {
  const lt_draw draws[] = {{normal, COUNT, 0.02, {7, 9}, LT_NORMAL}, {even, COUNT, 1.5, {1, 2}, LT_UNIFORM}};
  lt_fill(2, draws, 2);
  printf("%llx\n", (unsigned long long)add(add(0xcbf29ce484222325u, normal), even));
  return 0;
}
