/* bandwidth.c: the rate at which all threads together read uncached memory. */
#define _GNU_SOURCE
#include <time.h>

#include "program.h"

enum {
  BYTES = 1 << 28, /* exceeds the caches */
  ROUND = 1 << 24, /* small enough that most rounds are not preempted */
};

typedef struct {
  const uint64_t *words;
  double seconds, rate;
  uint64_t sum; /* keeps the compiler from dropping the reads */
} measurement;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Each thread reads its share of a round's memory; the best round counts. */
static void measure(void *arg, int thread, int threads) {
  measurement *m = arg;
  const int64_t count = ROUND / sizeof *m->words;
  const int64_t first = count * thread / threads, last = count * (thread + 1) / threads;
  uint64_t sum = 0;
  lt_barrier();
  const double start = now();
  double before = start;
  /* All threads leave after the same round: the first decides, between two barriers. */
  for (int64_t going = 1, round = 0; going; round++) {
    const uint64_t *words = m->words + round % (BYTES / ROUND) * count;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; i++) sum += words[i];
    lt_barrier();
    const double after = now();
    if (thread == 0) {
      if (ROUND / (after - before) > m->rate) m->rate = ROUND / (after - before);
      if (after - start > m->seconds) m->seconds = 0;
    }
    lt_barrier();
    going = m->seconds > 0;
    before = now();
  }
  __atomic_fetch_add(&m->sum, sum, __ATOMIC_RELAXED);
}

double lt_read_bandwidth(int threads, double seconds) {
  char *memory = lt_allocate(BYTES);
  if (memory == NULL) return 0;
  /* Untouched pages would all map to one zero page. */
  memset(memory, 1, BYTES);
  measurement m = {.words = (const uint64_t *)memory, .seconds = seconds};
  lt_team_run(threads, measure, &m);
  lt_release(memory, BYTES);
  return m.rate + (m.sum == 1 ? 1 : 0);
}
