/* gemmPeak.c: peak multiply-add rate of the machine's registers. */
/* flags: -O2 */
#include <time.h>

#include "kernels.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { THREADS = 1024 };

typedef struct {
  const lt_kernel *kernel;
  double seconds, rate[THREADS];
} measurement;

/* The best of short bursts: other processes slow down the rest. */
static void measure(void *arg, int thread, int threads) {
  measurement *m = arg;
  const lt_kernel *kernel = m->kernel;
  const double work = 2.0 * kernel->rows * kernel->columns * kernel->depth;
  const int64_t rounds = 20000;
  double best = 0;
  lt_barrier();
  for (double start = now(), before = start, after; before - start < m->seconds; before = after) {
    kernel->burn(rounds);
    after = now();
    if (work * (double)rounds / (after - before) > best) best = work * (double)rounds / (after - before);
  }
  if (thread < THREADS) m->rate[thread] = best;
  (void)threads;
}

double lt_peak_flops(int p, int threads, double seconds) {
  measurement m = {.kernel = lt_kernel_of(p), .seconds = seconds};
  double sum = 0;
  lt_team_run(threads, measure, &m);
  for (int t = 0; t < threads && t < THREADS; t++) sum += m.rate[t];
  return sum;
}
