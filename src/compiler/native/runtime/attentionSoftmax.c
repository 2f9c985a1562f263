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

/* Keys behind the windows' ends. */
static void hide_after(const lt_shape *a, const lt_strip *at, float *logits) {
  const int64_t first = lt_sight(a, at->query) - at->key; /* the first row that the first query does not see */
  const int64_t rows = a->kernel->rows, start = first < 0 ? 0 : first;
  for (int64_t tile = start - start % rows; tile < at->keys; tile += rows) {
    const int64_t skipped = lt_first_lane(a, at->key + tile, at->query, at->lanes);
    for (int64_t r = tile < start ? start : tile; r < lt_least(tile + rows, at->keys); r++) {
      const int64_t hidden = lt_least(lt_first_query(a, at->key + r) - at->query, at->lanes);
      for (int64_t g = skipped; g < hidden; g += GROUP) {
        float *row = logits + r * at->lanes + g;
        const int32_t count = (int32_t)(hidden - g);
#pragma omp simd
        for (int32_t c = 0; c < GROUP; c++) row[c] = c < count ? -LT_INFINITY : row[c];
      }
    }
  }
}

/* Keys before the windows' beginnings. */
static void hide_before(const lt_shape *a, const lt_strip *at, float *logits) {
  const int64_t begin = at->query + a->first - at->key; /* of the first query, in rows */
  const int64_t rows = lt_least(begin + at->lanes - 1, at->keys);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = r < begin ? 0 : r - begin + 1; c < at->lanes; c++) logits[r * at->lanes + c] = -LT_INFINITY;
}

static void hide_segments(const lt_shape *a, const lt_strip *at, float *logits) {
  const lt_attention *s = a->s;
  const int32_t *keys = s->key_segments + at->batch * s->key_segments_batch + at->key;
  int32_t own[LT_STRIP] = {0};
  memcpy(own, s->query_segments + at->batch * s->query_segments_batch + at->query, (size_t)at->queries * sizeof(int32_t));
  for (int64_t r = 0; r < at->keys; r++) {
    const int32_t key = keys[r];
    float *row = logits + r * at->lanes;
#pragma omp simd
    for (int64_t c = 0; c < at->lanes; c++) row[c] = own[c] == key ? row[c] : -LT_INFINITY;
  }
}

void lt_hide_logits(const lt_shape *a, const lt_strip *at, float *logits) {
  if (a->s->after != LT_ALL) hide_after(a, at, logits);
  if (a->s->before != LT_ALL) hide_before(a, at, logits);
  if (a->s->query_segments != NULL) hide_segments(a, at, logits);
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

enum { COUNT, KEEP, ROUND, PAIRS }; /* destination of a strip's weights; ROUND: kept as bf16 rounds them */

/* lt_from_bf16(lt_to_bf16(x)), in lanes of one size and without conditions, which keep loops from becoming vectors. */
INLINE float rounded(float x) {
  const uint32_t u = lt_bits(x), nan = 0u - (uint32_t)((int32_t)(u & 0x7fffffffu) > 0x7f800000);
  return lt_from_bits(((~nan & (u + 0x7fffu + ((u >> 16) & 1u))) | (nan & (u | 0x400000u))) & 0xffff0000u);
}

/* Zeros of a group in the rows [from, to). */
INLINE void clear_rows(float *group, int64_t stride, int64_t from, int64_t to) {
  for (; from < to; from++) memset(group + from * stride, 0, GROUP * sizeof(float));
}

/* Whether products round their left operands as they are packed, so that others must be rounded before. */
static int rounds_in_place(const lt_shape *a) { return a->kernel->multiply != NULL && a->p != LT_FLOAT32; }

/* weights may be logits. */
INLINE void weigh_row(const int rounding, float *weights, const float *logits, const float *restrict shift, float scale,
                      float *restrict total) {
#pragma omp simd
  for (int c = 0; c < GROUP; c++) {
    const float e = power_of_two((logits[c] - shift[c]) * scale);
    weights[c] = rounding ? rounded(e) : e;
    total[c] += e;
  }
}

/* Zeroes the weights of a row's group that are dropped. */
static void drop_row(const lt_shape *a, const lt_strip *at, int64_t r, int64_t g, float *restrict weights) {
  const uint32_t first = lt_weight_position(a, at->batch, at->head, at->query + g, at->key + r);
  const uint32_t step = (uint32_t)a->s->drop_row;
#pragma omp simd
  for (uint32_t c = 0; c < GROUP; c++) weights[c] = lt_is_kept(a, first + c * step) ? weights[c] : 0.0f;
}

INLINE void weigh(const int what, const lt_shape *a, const lt_strip *at, float *logits, const float *maxima, float *totals,
                  const lt_panel_list *panels) {
  const float scale = a->scale * LOG2_E;
  const int64_t lanes = at->lanes;
  for (int64_t g = 0; g < lanes; g += GROUP) {
    const int64_t keys = lt_lane_keys(a, at->key, at->keys, at->query, g);
    const float *shift = maxima + g;
    float *row = logits + g, *total = totals + g, even[GROUP], odd[GROUP];
    if (what == PAIRS) {
      uint32_t *words = panels->words + g / 8 * panels->size;
      for (int64_t r = 0; r < keys; r += 2, row += 2 * lanes, words += 8) {
        weigh_row(0, even, row, shift, scale, total);
        if (r + 1 < keys)
          weigh_row(0, odd, row + lanes, shift, scale, total);
        else
          memset(odd, 0, sizeof odd);
        if (a->drops) drop_row(a, at, r, g, even), drop_row(a, at, r + 1, g, odd);
        store_pairs(words, panels->size, even, odd);
      }
    } else {
      for (int64_t r = 0; r < keys; r++, row += lanes) {
        weigh_row(what == ROUND, what == COUNT ? even : row, row, shift, scale, total);
        if (what != COUNT && a->drops) drop_row(a, at, r, g, row);
      }
      if (what != COUNT) clear_rows(logits + g, lanes, keys, lt_read_keys(a, at->key, at->keys, at->query, g));
    }
  }
}

void lt_forward_weights(const lt_shape *a, const lt_strip *at, float *logits, const float *maxima, float *totals,
                        const lt_panel_list *weights) {
  if (weights == NULL) return weigh(COUNT, a, at, logits, maxima, totals, NULL);
  if (packs_pairs(a->kernel)) return weigh(PAIRS, a, at, logits, maxima, totals, weights);
  if (rounds_in_place(a)) return weigh(ROUND, a, at, logits, maxima, totals, NULL);
  weigh(KEEP, a, at, logits, maxima, totals, NULL);
  if (a->kernel->multiply != NULL) return;
  lt_panel_list panels = *weights;
  for (int64_t i = 0; i < at->queries; i += panels.width, panels.words += panels.size) {
    const int64_t last = at->query + lt_least(i + panels.width, at->queries) - 1;
    const int64_t count = lt_least(lt_window_end(a, last) - at->key, at->keys);
    const lt_matrix from = {logits + i, LT_FLOAT32, 1, at->lanes};
    if (count > 0)
      lt_pack_list(a->kernel, panels, from, 1, at->lanes, lt_least(panels.width, at->lanes - i), panels.width, count);
  }
}

/* ---- Backward ---------------------------------------------------------------------------------------------------- */

typedef struct {
  float shift[GROUP], bias[GROUP], delta[GROUP], scale, slope;
} group_lanes;

void lt_drop_dweights(const lt_shape *a, const lt_strip *at, float *dweights, float *kept) {
  const uint32_t step = (uint32_t)a->s->drop_row;
  for (int64_t r = 0; r < at->keys; r++) {
    const uint32_t first = lt_weight_position(a, at->batch, at->head, at->query, at->key + r);
    float *restrict row = kept + r * at->lanes, *restrict drow = dweights + r * at->lanes;
#pragma omp simd
    for (uint32_t c = 0; c < (uint32_t)at->lanes; c++) {
      row[c] = lt_is_kept(a, first + c * step) ? a->weight : 0.0f;
      drow[c] *= row[c];
    }
  }
}

/* p may be logits, and ds dweights. */
INLINE void differentiate_row(const int rounding, const int drops, const group_lanes *of, const float *logits,
                              const float *dweights, const float *kept, float *p, float *ds) {
#pragma omp simd
  for (int c = 0; c < GROUP; c++) {
    const float e = power_of_two((logits[c] - of->shift[c]) * of->scale + of->bias[c]);
    const float d = e * (dweights[c] * of->slope - of->delta[c]), weight = drops ? e * kept[c] : e;
    p[c] = rounding ? rounded(weight) : weight;
    ds[c] = rounding ? rounded(d) : d;
  }
}

enum { IN_PLACE, IN_PAIRS, ELSEWHERE, ELSEWHERE_ROUNDED }; /* destination of p and ds */

/* IN_PLACE overwrites both strips; with IN_PAIRS their rows become bf16 at the same byte offsets. */
INLINE void differentiate_as(const int what, const int drops, const lt_shape *a, const lt_strip *at, float *logits,
                             float *dweights, const float *kept, float slope, lt_lanes lanes, const lt_gradients *to) {
  const int elsewhere = what == ELSEWHERE || what == ELSEWHERE_ROUNDED;
  const int64_t stride = at->lanes, to_stride = elsewhere ? to->stride : stride;
  for (int64_t g = 0; g < at->lanes; g += GROUP) {
    const int64_t keys = lt_lane_keys(a, at->key, at->keys, at->query, g);
    group_lanes of;
    of.scale = a->scale * LOG2_E;
    of.slope = slope;
    memcpy(of.shift, lanes.shifts + g, sizeof of.shift);
    memcpy(of.bias, lanes.biases + g, sizeof of.bias);
    for (int c = 0; c < GROUP; c++) of.delta[c] = lanes.deltas[g + c] * slope;
    float *row = logits + g, *drow = dweights + g;
    const float *krow = drops ? kept + g : NULL;
    if (what == IN_PAIRS) {
      uint32_t *words = to->dlogits.words + g / 8 * to->dlogits.size;
      for (int64_t r = 0; r < keys; r += 2, words += 8) {
        float p[GROUP], ds[2][GROUP];
        const int rows = r + 1 < keys ? 2 : 1;
        for (int i = 0; i < rows; i++, row += stride, drow += stride) {
          differentiate_row(0, drops, &of, row, drow, drops ? krow + (r + i) * stride : NULL, p, ds[i]);
          store_group((bf16 *)(row - g) + g, p);
          store_group((bf16 *)(drow - g) + g, ds[i]);
        }
        if (rows == 1) memset(ds[1], 0, sizeof ds[1]);
        store_pairs(words, to->dlogits.size, ds[0], ds[1]);
      }
    } else {
      float *p = elsewhere ? to->p + g : row, *ds = elsewhere ? to->ds + g : drow;
      for (int64_t r = 0; r < keys; r++)
        differentiate_row(what == ELSEWHERE_ROUNDED, drops, &of, row + r * stride, drow + r * stride,
                          drops ? krow + r * stride : NULL, p + r * to_stride, ds + r * to_stride);
      if (!elsewhere) continue;
      const int64_t end = lt_read_keys(a, at->key, to->rows, at->query, g);
      clear_rows(p, to_stride, keys, end);
      clear_rows(ds, to_stride, keys, end);
    }
  }
}

INLINE void differentiate(const int what, const lt_shape *a, const lt_strip *at, float *logits, float *dweights,
                          const float *kept, float slope, lt_lanes lanes, const lt_gradients *to) {
  if (kept != NULL)
    differentiate_as(what, 1, a, at, logits, dweights, kept, slope, lanes, to);
  else
    differentiate_as(what, 0, a, at, logits, dweights, NULL, slope, lanes, to);
}

void lt_logit_gradients(const lt_shape *a, const lt_strip *at, float *logits, float *dweights, lt_lanes lanes) {
  differentiate(IN_PLACE, a, at, logits, dweights, NULL, 1.0f, lanes, NULL);
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

void lt_backward_weights(const lt_shape *a, const lt_strip *at, float *logits, float *dweights, const float *kept,
                         const float *slopes, lt_lanes lanes, const lt_gradients *to) {
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
  if (rounds_in_place(a)) return differentiate(ELSEWHERE_ROUNDED, a, at, logits, dweights, kept, slope, lanes, to);
  if (a->kernel->multiply != NULL) return differentiate(ELSEWHERE, a, at, logits, dweights, kept, slope, lanes, to);
  const int pairs = packs_pairs(a->kernel);
  if (pairs)
    differentiate(IN_PAIRS, a, at, logits, dweights, kept, slope, lanes, to);
  else
    differentiate(IN_PLACE, a, at, logits, dweights, kept, slope, lanes, to);
  pack_rows(a, at, pairs ? LT_BFLOAT16 : LT_FLOAT32, logits, to->weights);
  pack_rows(a, at, pairs ? LT_BFLOAT16 : LT_FLOAT32, dweights, to->dlogits_rows);
  if (pairs) return;
  const lt_matrix ds = {dweights, LT_FLOAT32, at->lanes, 1};
  lt_pack_list(a->kernel, to->dlogits, ds, 1, at->lanes, at->queries, at->queries, at->keys);
}
