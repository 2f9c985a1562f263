/* drawsCheck.c: arrays of random numbers, filled alone and together; run by kernels.test.ts and kernels.long.ts. Silent where
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

/* Numbers inside programs: threads together write all of them, each as in a longer array. */
static void check_random(int distribution) {
  const int64_t counts[] = {1, 2, 511, 1023, 1024, 1025, 2047, 3001};
  const int32_t key[] = {5, 0, -7};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const int64_t count = counts[i];
    float *const longer = malloc((size_t)(count + LONGEST) * 4), *const out = malloc((size_t)count * 4);
    lt_random(distribution, key, 2, longer, count + LONGEST, 0, 1);
    for (int threads = 1; threads <= 3; threads++) {
      memset(out, 0xff, (size_t)count * 4);
      for (int thread = 0; thread < threads; thread++) lt_random(distribution, key, 2, out, count, thread, threads);
      if (memcmp(out, longer, (size_t)count * 4) != 0)
        printf("%d numbers of distribution %d on %d threads differ\n", (int)count, distribution, threads);
    }
    free(longer), free(out);
  }
}

int main(void) {
  lt_fill(2, NULL, 0);
  for (int threads = 1; threads <= 4; threads++) check(threads);
  for (int distribution = LT_RANDOM_NORMAL; distribution <= LT_RANDOM_GUMBEL; distribution++) check_random(distribution);
  return 0;
}
