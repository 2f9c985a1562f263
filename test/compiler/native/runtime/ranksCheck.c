/* ranksCheck.c: collectives of ranks that are threads, with memory as large as they may touch; and the shares of a copy that
   threads of a rank make. Silent where all is well. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { MOST = 8, SIZES = 6 };
static const int64_t sizes[SIZES] = {1, 2, 7, 255, 256, 1000};

const lt_transport *lt_thread_transport(void);
void *lt_thread_world(void);
void *lt_thread_group(void *world, int64_t members);
void *lt_thread_member(void *group, int64_t number);
void lt_thread_end(void *world);
void lt_thread_close(void *world);

/* Not reached: these steps have no barriers. */
void lt_barrier(void) { abort(); }

typedef struct {
  void *world, *group, *self;
  int rank, count;
} rank;

static void fail(const rank *r, const char *what, int64_t size) {
  printf("rank %d of %d: %s of %d\n", r->rank, r->count, what, (int)size);
}

static int32_t value(int rank, int64_t i) { return (int32_t)(1 + i * 7 + 1000 * rank); }

/* The sum over all ranks of value(). */
static int32_t total(int count, int64_t i) {
  int32_t sum = 0;
  for (int r = 0; r < count; r++) sum += value(r, i);
  return sum;
}

static void exchange(const rank *r, int64_t size) {
  const lt_transport *t = lt_thread_transport();
  const int64_t all = size * r->count;
  int32_t *x = malloc(4 * size), *blocks = malloc(4 * all), *others = malloc(4 * all);
  for (int64_t i = 0; i < size; i++) x[i] = value(r->rank, i);
  if (t->all_reduce(r->self, x, size, LT_OF_INTS + LT_SUM)) fail(r, "error in a sum", size);
  for (int64_t i = 0; i < size; i++)
    if (x[i] != total(r->count, i)) fail(r, "sum", size), i = size;
  for (int64_t i = 0; i < all; i++) blocks[i] = value(r->rank, i);
  if (t->reduce_scatter(r->self, blocks, size, LT_OF_INTS + LT_SUM)) fail(r, "error in parts of a sum", size);
  for (int64_t i = size * r->rank; i < size * (r->rank + 1); i++)
    if (blocks[i] != total(r->count, i)) fail(r, "part of a sum", size), i = all;
  for (int64_t i = size * r->rank; i < size * (r->rank + 1); i++) blocks[i] = value(r->rank, i);
  if (t->all_gather(r->self, blocks, 4 * size)) fail(r, "error in a gather", size);
  for (int64_t i = 0; i < all; i++)
    if (blocks[i] != value((int)(i / size), i)) fail(r, "gather", size), i = all;
  for (int64_t i = 0; i < all; i++) blocks[i] = value(r->rank, i);
  if (t->all_to_all(r->self, blocks, others, 4 * size)) fail(r, "error in an exchange", size);
  for (int64_t i = 0; i < all; i++)
    if (others[i] != value((int)(i / size), size * r->rank + i % size)) fail(r, "exchange", size), i = all;
  for (int by = -1; by <= 1; by += 2) {
    const int from = (r->rank - by + r->count) % r->count;
    if (t->permute(r->self, blocks, others, 4 * size, by)) fail(r, "error in a permutation", size);
    for (int64_t i = 0; i < size; i++)
      if (others[i] != value(from, i)) fail(r, "permutation", size), i = size;
  }
  free(x), free(blocks), free(others);
}

static void *work(void *of) {
  const rank *r = of;
  for (int i = 0; i < SIZES; i++) exchange(r, sizes[i]);
  return NULL;
}

/* The last rank ends, at any time, while the others go on: all of them hear of it. */
static void *end(void *of) {
  const rank *r = of;
  int32_t x[4] = {0};
  if (r->rank == r->count - 1) {
    lt_thread_end(r->world);
    return NULL;
  }
  for (int i = 0; i < 1000; i++)
    if (lt_thread_transport()->all_reduce(r->self, x, 4, LT_SUM) != 0) return NULL;
  fail(r, "no error", 4);
  return NULL;
}

static void on_all(int count, void *(*fn)(void *)) {
  pthread_t threads[MOST];
  rank ranks[MOST];
  void *world = lt_thread_world(), *group = lt_thread_group(world, count);
  for (int i = 0; i < count; i++) {
    ranks[i] = (rank){world, group, lt_thread_member(group, i), i, count};
    pthread_create(&threads[i], NULL, fn, &ranks[i]);
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  lt_thread_close(world);
}

/* A rank's own part, copied by several threads, of runs that their shares divide. */
static void parts(void) {
  const int64_t outer = 5, run = 7, members = 3;
  for (int member = 0; member < members; member++)
    for (int threads = 1; threads <= 4; threads++) {
      const lt_group group = {NULL, NULL, member, members};
      lt_ranks all = {.groups = &group};
      char *x = malloc(outer * members * run), *out = calloc(outer, run);
      for (int64_t i = 0; i < outer * members * run; i++) x[i] = (char)i;
      for (int thread = 0; thread < threads; thread++) {
        const lt_frame frame = {.thread = thread, .threads = threads, .ranks = &all};
        lt_own_part(&frame, 0, out, x, outer, run);
      }
      for (int64_t i = 0; i < outer * run; i++)
        if (out[i] != (char)(i / run * members * run + member * run + i % run)) {
          printf("part %d by %d threads\n", member, threads);
          break;
        }
      free(x), free(out);
    }
}

int main(void) {
  for (int count = 1; count <= MOST; count++) on_all(count, work);
  for (int i = 0; i < 20; i++) on_all(2 + i % 3, end);
  parts();
  return 0;
}
