/* attentionFew.c: attention of few queries, as in decoding: keys and values are read once, in place, as they stream in. */
#include "attention.h"

enum {
  KEYS = 128, /* of a block: its keys and values stay in the first two caches for all queries */
  LANES = 16
};

int64_t lt_few_scratch(const lt_attention *s) {
  lt_scratch scratch = {NULL, 0};
  lt_take(&scratch, lt_round_up(s->dims, 2 * LANES));
  lt_take(&scratch, s->value_dims + 2 * LANES);
  return scratch.used * (s->queries < 1 ? 1 : s->queries);
}

typedef struct {
  float *query; /* in pairs of LANES: even elements, then odd ones, as a vector of bf16 pairs takes them apart */
  float *sums;  /* [value_dims], in the order of memory */
  float maximum, total;
  int64_t seen;
} few_query;

static float rounded(int round, float x) { return round ? lt_from_bf16(lt_to_bf16(x)) : x; }

/* The product of a query in the order of memory and a key. Sixteen sums, however few the elements: one order for all. */
static float dot_f32(const float *restrict query, const float *restrict key, int64_t dims, int round) {
  float sums[LANES] = {0};
  int64_t d = 0;
  if (round) {
    for (; d + LANES <= dims; d += LANES)
#pragma omp simd
      for (int c = 0; c < LANES; c++) sums[c] += query[d + c] * rounded(1, key[d + c]);
  } else {
    for (; d + LANES <= dims; d += LANES)
#pragma omp simd
      for (int c = 0; c < LANES; c++) sums[c] += query[d + c] * key[d + c];
  }
  for (int c = 0; d < dims; d++, c++) sums[c] += query[d] * rounded(round, key[d]);
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int c = 0; c < LANES; c++) total += sums[c];
  return total;
}

typedef uint32_t loose_word __attribute__((aligned(2), may_alias));

/* The same where keys are stored as bf16: two to a word, the query's even and odd elements apart. */
static float dot_bf16(const float *restrict query, const bf16 *restrict key, int64_t dims) {
  float sums[LANES] = {0};
  int64_t d = 0;
  for (; d + 2 * LANES <= dims; d += 2 * LANES) {
    const loose_word *words = (const loose_word *)(key + d);
#pragma omp simd
    for (int c = 0; c < LANES; c++)
      sums[c] += query[d + c] * lt_from_bits(words[c] << 16) +
                 query[d + LANES + c] * lt_from_bits(words[c] & 0xffff0000u);
  }
  for (int64_t c = 0; d + c < dims; c++)
    sums[c / 2] += query[d + c / 2 + (c % 2) * LANES] * lt_from_bf16(key[d + c]);
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int c = 0; c < LANES; c++) total += sums[c];
  return total;
}

static void load_query(const lt_shape *a, lt_matrix q, int apart, float *query) {
  const int64_t dims = a->s->dims;
  for (int64_t d = 0; d < lt_round_up(dims, 2 * LANES); d++) {
    const int64_t pair = d % (2 * LANES);
    const int64_t to = apart ? d - pair + pair / 2 + (pair % 2) * LANES : d;
    float x = 0;
    if (d < dims) x = q.type == LT_BFLOAT16 ? lt_from_bf16(((const bf16 *)q.data)[d]) : ((const float *)q.data)[d];
    query[to] = rounded(a->p == LT_BFLOAT16, x);
  }
}

/* sums[c] += weights[r] values[r, c] over a block's rows, a group of columns at a time, in registers. */
static void add_values_f32(const float *weights, const float *values, int64_t rs, int64_t rows, int64_t columns, int round,
                           float *sums) {
  enum { WIDE = 4 * LANES };
  for (int64_t at = 0; at < columns; at += WIDE) {
    float group[WIDE] = {0};
    const int64_t count = lt_least(WIDE, columns - at);
    if (count == WIDE && !round) {
      for (int64_t r = 0; r < rows; r++)
#pragma omp simd
        for (int c = 0; c < WIDE; c++) group[c] += weights[r] * values[r * rs + at + c];
    } else {
      for (int64_t r = 0; r < rows; r++)
#pragma omp simd
        for (int c = 0; c < count; c++) group[c] += weights[r] * rounded(round, values[r * rs + at + c]);
    }
    for (int c = 0; c < count; c++) sums[at + c] += group[c];
  }
}

static void add_values_bf16(const float *weights, const bf16 *values, int64_t rs, int64_t rows, int64_t columns,
                            float *sums) {
  enum { WIDE = 4 * LANES };
  for (int64_t at = 0; at < columns; at += WIDE) {
    float group[WIDE] = {0};
    const int64_t count = lt_least(WIDE, columns - at);
    if (count == WIDE) {
      for (int64_t r = 0; r < rows; r++)
#pragma omp simd
        for (int c = 0; c < WIDE; c++) group[c] += weights[r] * lt_from_bf16(values[r * rs + at + c]);
    } else {
      for (int64_t r = 0; r < rows; r++)
#pragma omp simd
        for (int c = 0; c < count; c++) group[c] += weights[r] * lt_from_bf16(values[r * rs + at + c]);
    }
    for (int c = 0; c < count; c++) sums[at + c] += group[c];
  }
}

/* One block of keys for one query. */
static void few_block(const lt_shape *a, few_query *state, int64_t batch, int64_t head, int64_t query, int64_t key,
                      int64_t keys, lt_matrix k, lt_matrix v) {
  const lt_attention *s = a->s;
  const int round = a->p == LT_BFLOAT16;
  float weights[KEYS];
  if (k.type == LT_BFLOAT16)
    for (int64_t r = 0; r < keys; r++) weights[r] = dot_bf16(state->query, (const bf16 *)k.data + r * k.rs, s->dims);
  else
    for (int64_t r = 0; r < keys; r++) weights[r] = dot_f32(state->query, (const float *)k.data + r * k.rs, s->dims, round);
  if (a->finish) lt_finish_logits(a, batch, head, key, keys, query, 1, 1, weights, NULL);
  const float before = state->maximum;
  float most = -FLT_MAX;
  for (int64_t r = 0; r < keys; r++) most = weights[r] > most ? weights[r] : most;
  if (most * a->scale > before) state->maximum = most * a->scale;
  const float factor = lt_expf(before - state->maximum), shift = state->maximum, scale = a->scale;
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t r = 0; r < keys; r++) {
    const float e = lt_expf(weights[r] * scale - shift);
    weights[r] = rounded(round, e);
    total += e;
  }
  state->total = state->total * factor + total;
  for (int64_t c = 0; c < s->value_dims; c++) state->sums[c] *= factor;
  if (v.type == LT_BFLOAT16)
    add_values_bf16(weights, v.data, v.rs, keys, s->value_dims, state->sums);
  else
    add_values_f32(weights, v.data, v.rs, keys, s->value_dims, round, state->sums);
}

static void few_item(const lt_shape *a, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse, lt_scratch scratch,
                     int64_t batch, int64_t head) {
  const lt_attention *s = a->s;
  few_query states[LT_FEW];
  for (int64_t t = 0; t < s->queries; t++) {
    states[t] = (few_query){lt_take(&scratch, lt_round_up(s->dims, 2 * LANES)),
                            lt_take(&scratch, s->value_dims + 2 * LANES), -FLT_MAX, 0, lt_visible(a, t)};
    load_query(a, lt_head_rows(q, batch, head, t), k.type == LT_BFLOAT16, states[t].query);
    memset(states[t].sums, 0, (size_t)s->value_dims * sizeof(float));
  }
  for (int64_t key = 0; key < s->keys; key += KEYS) {
    for (int64_t t = 0; t < s->queries; t++) {
      const int64_t keys = lt_least(KEYS, states[t].seen - key);
      if (keys > 0)
        few_block(a, &states[t], batch, head, t, key, keys, lt_head_rows(k, batch, head, key),
                  lt_head_rows(v, batch, head, key));
    }
  }
  for (int64_t t = 0; t < s->queries; t++) {
    const few_query *state = &states[t];
    const float share = state->seen > 0 ? 1.0f / state->total : 0.0f;
    lt_store_rows(lt_head_rows(out, batch, head, t), state->sums, 0, &share, 1, s->value_dims);
    if (lse != NULL)
      lse[(batch * s->heads + head) * s->queries + t] =
          state->seen > 0 ? state->maximum + lt_logf(state->total) : -LT_INFINITY;
  }
}

void lt_few_forward(const lt_shape *a, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse, void *scratch,
                    int thread, int threads) {
  const int64_t items = a->s->batch * a->s->heads;
  for (int64_t item = items * thread / threads; item < items * (thread + 1) / threads; item++)
    few_item(a, q, k, v, out, lse, (lt_scratch){scratch, 0}, item / a->s->heads, item % a->s->heads);
}
