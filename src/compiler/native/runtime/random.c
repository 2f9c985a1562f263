/* random.c: random numbers inside programs, from a key and their position. */
/* flags: machine -ffp-contract=off */
#include "distributions.h"

enum { NUMBERS = 2 * PAIRS };

/* The words of PAIRS positions, `step` apart. */
static void words_at(const uint32_t *key, uint32_t first, uint32_t step, uint32_t *restrict words) {
  for (uint32_t i = 0; i < PAIRS; i++) words[i] = lt_random_word(first + i * step, key[0], key[1]);
}

static void normal_block(const uint32_t *key, uint32_t first, float *restrict out) {
  uint32_t even[PAIRS], odd[PAIRS];
  float firsts[PAIRS], seconds[PAIRS];
  words_at(key, first, 2, even);
  words_at(key, first + 1, 2, odd);
  normal_of_words(1, even, odd, firsts, seconds);
  for (int i = 0; i < PAIRS; i++) out[2 * i] = firsts[i], out[2 * i + 1] = seconds[i];
}

static void truncated_block(const uint32_t *key, uint32_t first, float *restrict out) {
  uint32_t words[PAIRS];
  for (int half = 0; half < NUMBERS; half += PAIRS) {
    words_at(key, first + half, 1, words);
    for (int i = 0; i < PAIRS; i++) out[half + i] = truncated_of_word(words[i]);
  }
}

static void gumbel_block(const uint32_t *key, uint32_t first, float *restrict out) {
  uint32_t words[PAIRS];
  for (int half = 0; half < NUMBERS; half += PAIRS) {
    words_at(key, first + half, 1, words);
    for (int i = 0; i < PAIRS; i++) out[half + i] = gumbel_of_word(words[i]);
  }
}

void lt_random(int distribution, const int32_t *key, int64_t stride, float *out, int64_t count, int thread,
               int threads) {
  const uint32_t words[2] = {(uint32_t)key[0], (uint32_t)key[stride]};
  const int64_t blocks = (count + NUMBERS - 1) / NUMBERS;
  const int64_t last = blocks * (thread + 1) / threads;
  for (int64_t block = blocks * thread / threads; block < last; block++) {
    float last_block[NUMBERS];
    const int64_t first = block * NUMBERS;
    const int is_whole = first + NUMBERS <= count;
    float *to = is_whole ? out + first : last_block;
    switch (distribution) {
      case LT_RANDOM_NORMAL: normal_block(words, (uint32_t)first, to); break;
      case LT_RANDOM_TRUNCATED: truncated_block(words, (uint32_t)first, to); break;
      default: gumbel_block(words, (uint32_t)first, to);
    }
    for (int64_t i = 0; !is_whole && first + i < count; i++) out[first + i] = last_block[i];
  }
}
