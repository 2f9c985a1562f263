/* drawsCheck.c: arrays of random numbers under sanitizers, filled alone and together; run by draws.test.ts. Silent where
   all is well; test/compiler/draws.test.ts looks at the numbers themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

enum { LONGEST = 3000, ARRAYS = 60, LARGE = 1200001 };

static lt_draw draw(int64_t count, int64_t distribution, uint32_t seed) {
  /* Exactly as long as asked for: the sanitizer sees what is written behind. */
  return (lt_draw){.out = malloc((size_t)count * 4), .count = count, .scale = 0.5, .key = {7, seed}, .distribution = distribution};
}

static int same(const lt_draw *a, const lt_draw *b, int64_t count) {
  return memcmp(a->out, b->out, (size_t)count * 4) == 0;
}

static void check(int threads) {
  lt_draw draws[ARRAYS];
  for (int i = 0; i < ARRAYS; i++)
    draws[i] = draw(i == 18 ? LARGE : i < 40 ? i : (int64_t)i * 997 % LONGEST, i % 3, (uint32_t)i);
  lt_fill(threads, draws, ARRAYS);
  for (int i = 0; i < ARRAYS; i++) {
    lt_draw longer = draw(draws[i].count + LONGEST, i % 3, (uint32_t)i);
    lt_fill(1, &longer, 1);
    if (!same(&draws[i], &longer, draws[i].count)) printf("array %d on %d threads differs\n", i, threads);
    free(longer.out);
    free(draws[i].out);
  }
}

int main(void) {
  lt_fill(2, NULL, 0);
  for (int threads = 1; threads <= 4; threads++) check(threads);
  return 0;
}
