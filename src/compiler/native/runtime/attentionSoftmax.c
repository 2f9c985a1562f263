/* attentionSoftmax.c: loops over strips of logits: maxima, weights and their gradients, packed for the products. */
#include "attention.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

enum { GROUP = LT_GROUP_LANES };

#define LOG2_E 1.44269504f

/* 2^x for x up to about 1, to 2e-7 relative; 0 from 2^-126 down. A softmax needs none of the range checks that make
   a general exponential twice as expensive. */
INLINE float power_of_two(float x) {
  const float y = x < -126.0f ? -126.0f : x;
  const float shifted = y + 12583039.0f; /* 1.5 * 2^23 + 127: the lowest bits are the exponent's */
  const float f = y - (shifted - 12583039.0f);
  float p = 1.326472731e-03f; /* (2^f - 1) / f, |f| <= 1/2: minimax for the relative error of 2^f */
  p = p * f + 9.671512991e-03f;
  p = p * f + 5.550733581e-02f;
  p = p * f + 2.402224243e-01f;
  p = p * f + 6.931470037e-01f;
  const float result = (p * f + 1.0f) * lt_from_bits(lt_bits(shifted) << 23);
  return x < -126.0f ? 0.0f : result;
}

void lt_hide_logits(const lt_shape *a, const lt_strip *at, float *logits) {
  if (!a->s->causal) return;
  const int64_t first = at->query + a->offset + 1 - at->key; /* the first row that the first query does not see */
  const int64_t rows = a->kernel->rows, start = first < 0 ? 0 : first;
  for (int64_t tile = start - start % rows; tile < at->keys; tile += rows) {
    const int64_t skipped = lt_first_lane(a, at->key + tile, at->query, at->lanes);
    for (int64_t r = tile < start ? start : tile; r < lt_least(tile + rows, at->keys); r++) {
      const int64_t hidden = lt_least(r - first + 1, at->lanes);
      for (int64_t g = skipped; g < hidden; g += GROUP) {
        float *row = logits + r * at->lanes + g;
        const int32_t count = (int32_t)(hidden - g);
#pragma omp simd
        for (int32_t c = 0; c < GROUP; c++) row[c] = c < count ? -LT_INFINITY : row[c];
      }
    }
  }
}

void lt_raise_maxima(const lt_shape *a, const lt_strip *at, const float *logits, float *maxima) {
  const int64_t lanes = at->lanes;
  for (int64_t g = 0; g < lanes; g += GROUP) {
    const int64_t keys = lt_lane_keys(a, at->key, at->keys, at->query, g);
    float most[GROUP];
    memcpy(most, maxima + g, sizeof most);
    const float *row = logits + g;
    int64_t r = 0;
    for (; r + 4 <= keys; r += 4, row += 4 * lanes) {
#pragma omp simd
      for (int c = 0; c < GROUP; c++) {
        const float x = row[c] > row[lanes + c] ? row[c] : row[lanes + c];
        const float y = row[2 * lanes + c] > row[3 * lanes + c] ? row[2 * lanes + c] : row[3 * lanes + c];
        /* NaN may win in x and y and lose here: that lowers the maximum, but the weights are NaN anyway. */
        const float z = x > y ? x : y;
        most[c] = z > most[c] ? z : most[c];
      }
    }
    for (; r < keys; r++, row += lanes)
      for (int c = 0; c < GROUP; c++) most[c] = row[c] > most[c] ? row[c] : most[c];
    memcpy(maxima + g, most, sizeof most);
  }
}

/* ---- Packing from registers ------------------------------------------------------------------------------------ */
/* Where the products take pairs of bf16 in tiles of eight rows, two rows of a group become panel words directly,
   without a detour through memory and the kernel's general packing. */

INLINE int packs_pairs(const lt_kernel *kernel) {
#ifdef __AVX512BF16__
  return kernel->depth == 2 && kernel->rows == 8;
#else
  (void)kernel;
  return 0;
#endif
}

#ifdef __AVX512BF16__
/* Stores a group's pairs (even, odd) at one word of two panels. */
INLINE void store_pairs(uint32_t *words, int64_t panel, const float *even, const float *odd) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5,
                                         20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(odd), _mm512_loadu_ps(even));
  const __m512i pairs = _mm512_permutexvar_epi16(order, halves);
  _mm256_storeu_si256((__m256i *)words, _mm512_castsi512_si256(pairs));
  _mm256_storeu_si256((__m256i *)(words + panel), _mm512_extracti64x4_epi64(pairs, 1));
}

INLINE void store_group(bf16 *to, const float *from) {
  _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from)));
}
#else
INLINE void store_pairs(uint32_t *words, int64_t panel, const float *even, const float *odd) {
  (void)words, (void)panel, (void)even, (void)odd;
}
INLINE void store_group(bf16 *to, const float *from) { (void)to, (void)from; }
#endif

/* ---- Forward ---------------------------------------------------------------------------------------------------- */

enum { COUNT, KEEP, PAIRS }; /* destination of a strip's weights */

INLINE void weigh_row(float *restrict weights, const float *restrict logits, const float *restrict shift, float scale,
                      float *restrict total) {
#pragma omp simd
  for (int c = 0; c < GROUP; c++) {
    const float e = power_of_two((logits[c] - shift[c]) * scale);
    weights[c] = e;
    total[c] += e;
  }
}

INLINE void weigh(const int what, const lt_shape *a, const lt_strip *at, float *logits, const float *maxima, float *totals,
                  const lt_panel_list *panels) {
  const float scale = a->scale * LOG2_E;
  for (int64_t g = 0; g < at->lanes; g += GROUP) {
    const int64_t keys = lt_lane_keys(a, at->key, at->keys, at->query, g);
    float shift[GROUP], total[GROUP], even[GROUP], odd[GROUP];
    memcpy(shift, maxima + g, sizeof shift);
    memcpy(total, totals + g, sizeof total);
    float *row = logits + g;
    uint32_t *words = what == PAIRS ? panels->words + g / 8 * panels->size : NULL;
    for (int64_t r = 0; r + 2 <= keys; r += 2, row += 2 * at->lanes) {
      weigh_row(even, row, shift, scale, total);
      weigh_row(odd, row + at->lanes, shift, scale, total);
      if (what == KEEP) {
        memcpy(row, even, sizeof even);
        memcpy(row + at->lanes, odd, sizeof odd);
      } else if (what == PAIRS) {
        store_pairs(words, panels->size, even, odd);
        words += 8;
      }
    }
    if (keys % 2 == 1) {
      weigh_row(even, row, shift, scale, total);
      if (what == KEEP) memcpy(row, even, sizeof even);
      if (what == PAIRS) store_pairs(words, panels->size, even, (const float[GROUP]){0});
    }
    memcpy(totals + g, total, sizeof total);
  }
}

void lt_forward_weights(const lt_shape *a, const lt_strip *at, float *logits, const float *maxima, float *totals,
                        const lt_panel_list *weights) {
  if (weights == NULL) return weigh(COUNT, a, at, logits, maxima, totals, NULL);
  if (packs_pairs(a->kernel)) return weigh(PAIRS, a, at, logits, maxima, totals, weights);
  weigh(KEEP, a, at, logits, maxima, totals, NULL);
  lt_panel_list panels = *weights;
  for (int64_t i = 0; i < at->queries; i += panels.width, panels.words += panels.size) {
    const int64_t last = at->query + lt_least(i + panels.width, at->queries) - 1;
    const int64_t count = lt_least(lt_visible(a, last) - at->key, at->keys);
    const lt_matrix from = {logits + i, LT_FLOAT32, 1, at->lanes};
    if (count > 0)
      lt_pack_list(a->kernel, panels, from, 1, at->lanes, lt_least(panels.width, at->lanes - i), panels.width, count);
  }
}

/* ---- Backward ---------------------------------------------------------------------------------------------------- */

typedef struct {
  float shift[GROUP], bias[GROUP], delta[GROUP], scale, slope;
} group_lanes;

/* Overwrites logits with p and dweights with ds. */
INLINE void differentiate_row(const group_lanes *of, const float *logits, const float *dweights, float *restrict p,
                              float *restrict ds) {
#pragma omp simd
  for (int c = 0; c < GROUP; c++) {
    const float e = power_of_two((logits[c] - of->shift[c]) * of->scale + of->bias[c]);
    p[c] = e;
    ds[c] = e * (dweights[c] * of->slope - of->delta[c]);
  }
}

/* In place; with pairs, rows of both strips become bf16 at the same byte offsets. */
INLINE void differentiate(const int pairs, const lt_shape *a, const lt_strip *at, float *logits, float *dweights,
                          float slope, lt_lanes lanes, lt_panel_list dlogits) {
  for (int64_t g = 0; g < at->lanes; g += GROUP) {
    const int64_t keys = lt_lane_keys(a, at->key, at->keys, at->query, g), stride = at->lanes;
    group_lanes of;
    of.scale = a->scale * LOG2_E;
    of.slope = slope;
    memcpy(of.shift, lanes.shifts + g, sizeof of.shift);
    memcpy(of.bias, lanes.biases + g, sizeof of.bias);
    for (int c = 0; c < GROUP; c++) of.delta[c] = lanes.deltas[g + c] * slope;
    uint32_t *words = dlogits.words + g / 8 * dlogits.size;
    for (int64_t r = 0; r < keys; r += 2, words += 8) {
      float *row = logits + r * stride, *drow = dweights + r * stride, p[2][GROUP], ds[2][GROUP] = {{0}};
      const int both = r + 1 < keys;
      differentiate_row(&of, row + g, drow + g, p[0], ds[0]);
      if (both) differentiate_row(&of, row + stride + g, drow + stride + g, p[1], ds[1]);
      for (int i = 0; i < 1 + both; i++, row += stride, drow += stride) {
        if (pairs) {
          store_group((bf16 *)row + g, p[i]);
          store_group((bf16 *)drow + g, ds[i]);
        } else {
          memcpy(row + g, p[i], sizeof p[i]);
          memcpy(drow + g, ds[i], sizeof ds[i]);
        }
      }
      if (pairs) store_pairs(words, dlogits.size, ds[0], ds[1]);
    }
  }
}

/* Packs rows of keys as a left operand, each tile from its first lane on. */
static void pack_rows(const lt_shape *a, const lt_strip *at, int32_t type, const float *strip, lt_panel_list to) {
  const int64_t across = type == LT_BFLOAT16 ? 2 * at->lanes : at->lanes, bytes = type == LT_BFLOAT16 ? 2 : 4;
  for (int64_t i = 0; i < at->keys; i += to.width, to.words += to.size) {
    const int64_t first = lt_first_lane(a, at->key + i, at->query, at->lanes);
    if (first < at->queries)
      a->kernel->pack(to.words + lt_words(a->kernel, first) * to.width, to.size, to.width,
                      (const char *)(strip + i * at->lanes) + first * bytes, type, across, 1,
                      lt_least(to.width, at->keys - i), at->queries - first);
  }
}

void lt_backward_weights(const lt_shape *a, const lt_strip *at, float *logits, float *dweights, const float *slopes,
                         lt_lanes lanes, lt_panel_list weights, lt_panel_list dlogits_rows, lt_panel_list dlogits) {
  float slope = a->s->scale;
  float none[LT_STRIP] = {0};
  if (slopes != NULL) {
    for (int64_t r = 0; r < at->keys; r++)
#pragma omp simd
      for (int64_t c = 0; c < at->lanes; c++) {
        const int64_t i = r * at->lanes + c;
        dweights[i] = (dweights[i] - lanes.deltas[c]) * slopes[i];
      }
    lanes.deltas = none;
    slope = 1.0f;
  }
  const int pairs = packs_pairs(a->kernel);
  if (pairs)
    differentiate(1, a, at, logits, dweights, slope, lanes, dlogits);
  else
    differentiate(0, a, at, logits, dweights, slope, lanes, dlogits);
  pack_rows(a, at, pairs ? LT_BFLOAT16 : LT_FLOAT32, logits, weights);
  pack_rows(a, at, pairs ? LT_BFLOAT16 : LT_FLOAT32, dweights, dlogits_rows);
  if (pairs) return;
  const lt_matrix ds = {dweights, LT_FLOAT32, at->lanes, 1};
  lt_pack_list(a->kernel, dlogits, ds, 1, at->lanes, at->queries, at->queries, at->keys);
}
