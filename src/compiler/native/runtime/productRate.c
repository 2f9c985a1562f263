/* productRate.c: how fast products of a shape are on this machine, by which kernels are chosen. */
/* flags: -O2 */
#include <string.h>
#include <time.h>

#include "program.h"

typedef struct {
  int p;
  int64_t m, n, k;
  char *memory;
  int64_t scratch_bytes;
  double limit, shortest; /* seconds; limit 0: enough */
} measurement;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t left_bytes(const measurement *x) { return lt_align(x->m * x->k * 4); }
static int64_t right_bytes(const measurement *x) { return lt_align(lt_packed_bytes(x->p, x->k, x->n)); }

/* Each thread computes its share of the columns; the shortest try counts. */
static void measure(void *arg, int thread, int threads) {
  measurement *x = arg;
  const int64_t panels = lt_panels(x->p, x->n), first = panels * thread / threads, last = panels * (thread + 1) / threads;
  char *const right = x->memory + left_bytes(x), *const result = right + right_bytes(x);
  char *const scratch = result + lt_align(x->m * x->n * 4) + thread * x->scratch_bytes;
  const double start = now();
  /* All threads leave after the same try: the first decides, between two barriers. */
  for (int going = 1; going;) {
    lt_barrier();
    const double before = now();
    lt_gemm(x->p, x->m, x->n, x->k, (lt_matrix){x->memory, LT_FLOAT32, x->k, 1}, right, first, last, result, LT_FLOAT32, x->n,
            1.0f, 0, scratch);
    lt_barrier();
    const double after = now();
    if (thread == 0) {
      if (x->shortest == 0 || after - before < x->shortest) x->shortest = after - before;
      if (after - start > x->limit) x->limit = 0;
    }
    lt_barrier();
    going = x->limit > 0;
  }
}

double lt_product_rate(int p, int64_t m, int64_t n, int64_t k, int threads, double seconds) {
  measurement x = {.p = p, .m = m, .n = n, .k = k, .limit = seconds};
  x.scratch_bytes = lt_align(lt_gemm_scratch_bytes(p, m, k)) + 64;
  const int64_t bytes = left_bytes(&x) + right_bytes(&x) + lt_align(m * n * 4) + threads * x.scratch_bytes;
  x.memory = lt_allocate(bytes);
  if (x.memory == NULL) return 0;
  memset(x.memory, 0, (size_t)bytes); /* touches each page */
  lt_team_run(threads, measure, &x);
  lt_release(x.memory, bytes);
  return 2.0 * (double)m * (double)n * (double)k / x.shortest;
}
