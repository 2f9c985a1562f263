/* bandwidth.c: the rate at which this machine's threads together read memory that is in no cache. */
#define _GNU_SOURCE
#include <time.h>

#include "program.h"

enum {
  BYTES = 1 << 28, /* more than caches hold */
  ROUND = 1 << 24, /* so little that a round passes before another process wants the cores */
};

typedef struct {
  const uint64_t *words;
  double seconds, rate;
  uint64_t sum; /* used, so that reading is not left out */
} measurement;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Every thread reads its part of a round's memory; the best of all rounds counts. */
static void measure(void *arg, int thread, int threads) {
  measurement *m = arg;
  const int64_t count = ROUND / sizeof *m->words;
  const int64_t first = count * thread / threads, last = count * (thread + 1) / threads;
  uint64_t sum = 0;
  lt_barrier();
  const double start = now();
  double before = start;
  /* All leave after the same round: the first thread decides, between two barriers. */
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
  /* Pages that nobody has written to are all the same one. */
  memset(memory, 1, BYTES);
  measurement m = {.words = (const uint64_t *)memory, .seconds = seconds};
  lt_team_run(threads, measure, &m);
  lt_release(memory, BYTES);
  return m.rate + (m.sum == 1 ? 1 : 0);
}
