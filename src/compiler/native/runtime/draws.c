/* draws.c: bulk random numbers with the same bits as src/compiler/draws.ts on every machine. */
/* flags: machine -ffp-contract=off */
#include <stdatomic.h>

#include "distributions.h"

enum {
  PIECE = 1 << 19, /* counters per work item: threads that share a large page would both clear it */
};

#define MIX(by) x0 += x1, x1 = (x1 << by | x1 >> (32 - by)) ^ x0
#define FOUR_ROUNDS(a, b, c, d) MIX(a), MIX(b), MIX(c), MIX(d)

/* Threefry-2x32 with 20 rounds for the counters first, first + 1, ... */
static void draw_words(const uint32_t *key, uint32_t first, uint32_t *restrict even, uint32_t *restrict odd) {
  const uint32_t k0 = key[0], k1 = key[1], k2 = k0 ^ k1 ^ 0x1bd11bda;
  for (uint32_t i = 0; i < PAIRS; i++) {
    uint32_t x0 = k0, x1 = first + i + k1;
    FOUR_ROUNDS(13, 15, 26, 6);
    x0 += k1, x1 += k2 + 1;
    FOUR_ROUNDS(17, 29, 16, 24);
    x0 += k2, x1 += k0 + 2;
    FOUR_ROUNDS(13, 15, 26, 6);
    x0 += k0, x1 += k1 + 3;
    FOUR_ROUNDS(17, 29, 16, 24);
    x0 += k1, x1 += k2 + 4;
    FOUR_ROUNDS(13, 15, 26, 6);
    x0 += k2, x1 += k0 + 5;
    even[i] = x0, odd[i] = x1;
  }
}

static void uniform_of_words(double scale, const uint32_t *restrict words, float *restrict out) {
  for (int i = 0; i < PAIRS; i++) out[i] = (float)(scale * (2 * ((int32_t)(words[i] >> 8) * 0x1p-24) - 1));
}

static void fill_pairs(const lt_draw *draw, int64_t first, int64_t count, float *restrict out) {
  uint32_t even[PAIRS], odd[PAIRS];
  float firsts[PAIRS], seconds[PAIRS];
  draw_words(draw->key, (uint32_t)first, even, odd);
  if (draw->distribution == LT_NORMAL) {
    normal_of_words(draw->scale, even, odd, firsts, seconds);
  } else {
    uniform_of_words(draw->scale, even, firsts);
    uniform_of_words(draw->scale, odd, seconds);
  }
  for (int64_t i = 0; i < count / 2; i++) out[2 * i] = firsts[i], out[2 * i + 1] = seconds[i];
  if (count & 1) out[count - 1] = firsts[count / 2];
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Fills the numbers of the counters from `first` to `last`. */
static void fill(const lt_draw *draw, int64_t first, int64_t last) {
  const int64_t end = smaller(2 * last, draw->count);
  if (draw->distribution == LT_SAME) {
    const float value = (float)draw->scale;
    for (int64_t i = 2 * first; i < end; i++) draw->out[i] = value;
    return;
  }
  for (int64_t at = first; at < last; at += PAIRS)
    fill_pairs(draw, at, smaller(end - 2 * at, 2 * PAIRS), draw->out + 2 * at);
}

typedef struct {
  const lt_draw *draws;
  int64_t count;
  int64_t counters; /* of all arrays, concatenated */
  _Atomic int64_t taken;
} filling;

static int64_t counters_of(const lt_draw *draw) { return (draw->count + 1) / 2; }

/* Fills the pieces of all arrays between two counters. */
static void fill_piece(const filling *all, int64_t from, int64_t to) {
  for (int64_t i = 0, first = 0; i < all->count && first < to; i++) {
    const lt_draw *draw = &all->draws[i];
    const int64_t last = first + counters_of(draw);
    if (last > from) fill(draw, from > first ? from - first : 0, smaller(to, last) - first);
    first = last;
  }
}

/* Threads take pieces dynamically: a number depends on its counter alone. */
static void work(void *argument, int thread, int threads) {
  (void)thread, (void)threads;
  filling *all = argument;
  for (;;) {
    const int64_t from = atomic_fetch_add(&all->taken, PIECE);
    if (from >= all->counters) return;
    fill_piece(all, from, smaller(from + PIECE, all->counters));
  }
}

void lt_fill(int threads, const lt_draw *draws, int64_t count) {
  filling all = {.draws = draws, .count = count};
  for (int64_t i = 0; i < count; i++) all.counters += counters_of(&draws[i]);
  lt_team_run(threads, work, &all);
}
