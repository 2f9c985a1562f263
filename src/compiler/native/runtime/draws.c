/* draws.c: bulk random numbers with the same bits as src/compiler/draws.ts on every machine. */
/* flags: machine -ffp-contract=off */
#include <math.h>
#include <stdatomic.h>

#include "luthier.h"

/* Uses only operations that IEEE 754 defines to the last bit, each rounded separately, in the order of the
   TypeScript code: results do not depend on the vector width that the compiler chooses. */

enum {
  PAIRS = 512,     /* counters at a time, two numbers each: intermediate results fit the first-level cache */
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

/* The natural logarithm of (word + 1/2) / 2^32. */
static inline double log_of_word(uint32_t word) {
  union {
    double number;
    int64_t bits;
  } w = {.number = word + 0.5};
  int32_t exponent = (int32_t)(w.bits >> 52) - 1023;
  w.bits = (w.bits & 0xfffffffffffff) | (int64_t)1023 << 52;
  const int is_large = w.number > 1.4142135623730951;
  const double mantissa = is_large ? w.number * 0.5 : w.number;
  exponent += is_large;
  const double s = (mantissa - 1) / (mantissa + 1);
  const double z = s * s;
  const double series =
      1.0 / 3 +
      z * (1.0 / 5 +
           z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z * (1.0 / 15 + z * (1.0 / 17 + z / 19)))))));
  return (exponent - 32) * 0.6931471805599453 + 2 * (s + s * z * series);
}

static inline double sine_of(double x, double z) {
  return x * (1 + z * (-1.0 / 6 +
                       z * (1.0 / 120 +
                            z * (-1.0 / 5040 +
                                 z * (1.0 / 362880 +
                                      z * (-1.0 / 39916800 + z * (1.0 / 6227020800 - z / 1307674368000)))))));
}

static inline double cosine_of(double z) {
  return 1 + z * (-1.0 / 2 +
                  z * (1.0 / 24 +
                       z * (-1.0 / 720 +
                            z * (1.0 / 40320 +
                                 z * (-1.0 / 3628800 +
                                      z * (1.0 / 479001600 + z * (-1.0 / 87178291200 + z / 20922789888000)))))));
}

/* Box-Muller pairs: the radius from one word, the angle from the other. */
static void normal_of_words(double scale, const uint32_t *restrict even, const uint32_t *restrict odd,
                            float *restrict firsts, float *restrict seconds) {
  for (int i = 0; i < PAIRS; i++) {
    const double radius = scale * sqrt(-2 * log_of_word(even[i]));
    const uint32_t word = odd[i];
    const uint32_t turns = ((word >> 29) + 1) >> 1;
    const double x = 2 * 3.141592653589793 / 4294967296 * (int32_t)(word - (turns << 30));
    const double z = x * x;
    const double sine = sine_of(x, z), cosine = cosine_of(z);
    const double c = radius * (turns & 1 ? sine : cosine), s = radius * (turns & 1 ? cosine : sine);
    firsts[i] = (float)((turns + 1) & 2 ? -c : c);
    seconds[i] = (float)(turns & 2 ? -s : s);
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
