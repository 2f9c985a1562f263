/* attentionFew.c: attention of few queries, as in decoding; streams keys and values once, in place. */
#include "attentionFew.h"

#include "attention.h"

enum {
  KEYS = 128, /* per block: its keys and values stay in the first two cache levels for all queries */
  LANES = LT_GROUP_LANES,
  WIDE = 4 * LANES /* columns of values summed in registers */
};

#if defined(LT_HAVE_ATTENTIONFEWAVX512BF16) && defined(LT_HAVE_GEMMAVX512BF16)
#define LT_MULTIPLIES_BF16
#endif

/* Whether a kernel's instructions multiply bf16 keys and values as stored. */
static int multiplies_bf16(const lt_shape *a) {
#ifdef LT_MULTIPLIES_BF16
  extern const lt_kernel lt_avx512bf16_bfloat16;
  return a->kernel == &lt_avx512bf16_bfloat16;
#else
  (void)a;
  return 0;
#endif
}

typedef struct {
  float *query; /* where keys are bf16: of each 2 * LANES elements the even ones, then the odd ones, as words hold them;
                   all of them as bf16 where a->kernel multiplies them so */
  float *sums;  /* [value_dims] */
  float maximum, total;
  int64_t seen;
} few_query;

static few_query take_query(lt_scratch *scratch, const lt_attention *s) {
  return (few_query){lt_take(scratch, lt_round_up(s->dims, 2 * LANES)), lt_take(scratch, s->value_dims), -FLT_MAX, 0, 0};
}

int64_t lt_few_scratch(const lt_attention *s) {
  lt_scratch scratch = {NULL, 0};
  for (int64_t t = 0; t < s->queries; t++) take_query(&scratch, s);
  return scratch.used;
}

static float rounded(int round, float x) { return round ? lt_from_bf16(lt_to_bf16(x)) : x; }

/* Dot product of a query, in memory order, and a key. */
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
  for (int c = 0; d + c < dims; c++) sums[c] += query[d + c] * rounded(round, key[d + c]);
  return lt_sum_lanes(sums);
}

/* Dot product of a query, in memory order, and the codes of a key. */
#define LT_DOT_CODES(name, TYPE)                                                            \
  static float name(const float *restrict query, const TYPE *restrict key, int64_t dims) { \
    float sums[LANES] = {0};                                                                \
    int64_t d = 0;                                                                          \
    for (; d + LANES <= dims; d += LANES)                                                   \
      _Pragma("omp simd") for (int c = 0; c < LANES; c++) sums[c] += query[d + c] * (float)key[d + c]; \
    for (int c = 0; d + c < dims; c++) sums[c] += query[d + c] * (float)key[d + c];         \
    return lt_sum_lanes(sums);                                                              \
  }
LT_DOT_CODES(dot_i8, int8_t)
LT_DOT_CODES(dot_i32, int32_t)

typedef uint32_t loose_word __attribute__((aligned(2), may_alias));

/* The same for bf16 keys: two to a word, so the query's even and odd elements are separate. */
static float dot_bf16(const float *restrict query, const bf16 *restrict key, int64_t dims) {
  float sums[LANES] = {0};
  int64_t d = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  for (; d + 2 * LANES <= dims; d += 2 * LANES) {
    const loose_word *words = (const loose_word *)(key + d);
#pragma omp simd
    for (int c = 0; c < LANES; c++)
      sums[c] += query[d + c] * lt_from_bits(words[c] << 16) +
                 query[d + LANES + c] * lt_from_bits(words[c] & 0xffff0000u);
  }
#endif
  for (; d < dims; d++) {
    const int64_t pair = d % (2 * LANES);
    sums[pair / 2] += query[d - pair + pair / 2 + pair % 2 * LANES] * lt_from_bf16(key[d]);
  }
  return lt_sum_lanes(sums);
}

static void load_query(const lt_shape *a, lt_matrix q, int apart, float *query) {
  if (apart && multiplies_bf16(a)) {
    bf16 *to = (bf16 *)query;
    memset(to, 0, (size_t)lt_round_up(a->s->dims, 2 * LANES) * sizeof(bf16));
    for (int64_t d = 0; d < a->s->dims; d++)
      to[d] = q.type == LT_BFLOAT16 ? ((const bf16 *)q.data)[d] : lt_to_bf16(((const float *)q.data)[d]);
    return;
  }
  for (int64_t d = 0; d < a->s->dims; d++) {
    const int64_t pair = d % (2 * LANES), to = apart ? d - pair + pair / 2 + pair % 2 * LANES : d;
    const float x = q.type == LT_BFLOAT16 ? lt_from_bf16(((const bf16 *)q.data)[d]) : ((const float *)q.data)[d];
    query[to] = rounded(a->p != LT_FLOAT32, x);
  }
}

/* sums[c] += weights[r] values[r, c], four rows at a time to save loads and stores of sums. */
#define LT_ADD_VALUES(name, TYPE, FROM)                                                                                 \
  static void name(const float *weights, const TYPE *values, int64_t rs, int64_t rows, int64_t columns, float *sums) {  \
    for (int64_t at = 0; at < columns; at += WIDE) {                                                                    \
      float group[WIDE] = {0};                                                                                          \
      const int64_t count = lt_least(WIDE, columns - at);                                                               \
      const TYPE *row = values + at;                                                                                    \
      int64_t r = 0;                                                                                                    \
      for (; count == WIDE && r + 4 <= rows; r += 4, row += 4 * rs) {                                                   \
        const TYPE *restrict v0 = row, *restrict v1 = row + rs, *restrict v2 = row + 2 * rs, *restrict v3 = row + 3 * rs; \
        const float w0 = weights[r], w1 = weights[r + 1], w2 = weights[r + 2], w3 = weights[r + 3];                     \
        _Pragma("omp simd") for (int c = 0; c < WIDE; c++)                                                              \
          group[c] += (w0 * FROM(v0[c]) + w1 * FROM(v1[c])) + (w2 * FROM(v2[c]) + w3 * FROM(v3[c]));                    \
      }                                                                                                                 \
      for (; r < rows; r++, row += rs)                                                                                  \
        _Pragma("omp simd") for (int64_t c = 0; c < count; c++) group[c] += weights[r] * FROM(row[c]);                  \
      for (int64_t c = 0; c < count; c++) sums[at + c] += group[c];                                                     \
    }                                                                                                                   \
  }
#define ROUNDED(x) rounded(1, x)
LT_ADD_VALUES(add_values_exact, float, )
LT_ADD_VALUES(add_values_rounded, float, ROUNDED)
LT_ADD_VALUES(add_values_bf16, bf16, lt_from_bf16)
LT_ADD_VALUES(add_values_i8, int8_t, (float))
LT_ADD_VALUES(add_values_i32, int32_t, (float))

/* Rows of a head, and of codes their factors. */
typedef struct {
  lt_matrix rows;
  const float *scales;
  int64_t step;
} held_rows;

static held_rows held(lt_heads x, int64_t batch, int64_t head, int64_t first) {
  return (held_rows){lt_head_rows(x, batch, head, first), lt_head_scales(x, batch, head, first), x.scales_time};
}

/* Dot products of a query with keys in codes. */
static void dot_codes(const float *query, held_rows of, int64_t keys, int64_t dims, float *logits) {
  const lt_matrix k = of.rows;
  if (k.type == LT_INT8)
    for (int64_t r = 0; r < keys; r++) logits[r] = of.scales[r * of.step] * dot_i8(query, (const int8_t *)k.data + r * k.rs, dims);
  else
    for (int64_t r = 0; r < keys; r++) logits[r] = of.scales[r * of.step] * dot_i32(query, (const int32_t *)k.data + r * k.rs, dims);
}

/* Adds values in codes. */
static void add_codes(const float *weights, held_rows of, int64_t keys, int64_t columns, float *sums) {
  const lt_matrix v = of.rows;
  float scaled[KEYS];
  for (int64_t r = 0; r < keys; r++) scaled[r] = weights[r] * of.scales[r * of.step];
  if (v.type == LT_INT8)
    add_values_i8(scaled, v.data, v.rs, keys, columns, sums);
  else
    add_values_i32(scaled, v.data, v.rs, keys, columns, sums);
}

/* Dot products of a query with keys. */
static void dot_keys(const lt_shape *a, const float *query, held_rows of, int64_t keys, float *logits) {
  const int64_t dims = a->s->dims;
  const lt_matrix k = of.rows;
  if (of.scales != NULL) {
    dot_codes(query, of, keys, dims, logits);
    return;
  }
#ifdef LT_MULTIPLIES_BF16
  if (k.type == LT_BFLOAT16 && multiplies_bf16(a)) {
    lt_few_dots_avx512bf16((const bf16 *)query, k.data, k.rs, keys, dims, logits);
    return;
  }
#endif
  if (k.type == LT_BFLOAT16)
    for (int64_t r = 0; r < keys; r++) logits[r] = dot_bf16(query, (const bf16 *)k.data + r * k.rs, dims);
  else
    for (int64_t r = 0; r < keys; r++)
      logits[r] = dot_f32(query, (const float *)k.data + r * k.rs, dims, a->p != LT_FLOAT32);
}

static void add_values(const lt_shape *a, const float *weights, held_rows of, int64_t keys, float *sums) {
  const int64_t columns = a->s->value_dims;
  const lt_matrix v = of.rows;
  if (of.scales != NULL) {
    add_codes(weights, of, keys, columns, sums);
    return;
  }
#ifdef LT_MULTIPLIES_BF16
  if (v.type == LT_BFLOAT16 && multiplies_bf16(a)) {
    lt_few_values_avx512bf16(weights, v.data, v.rs, keys, columns, sums);
    return;
  }
#endif
  if (v.type == LT_BFLOAT16)
    add_values_bf16(weights, v.data, v.rs, keys, columns, sums);
  else if (a->p != LT_FLOAT32)
    add_values_rounded(weights, v.data, v.rs, keys, columns, sums);
  else
    add_values_exact(weights, v.data, v.rs, keys, columns, sums);
}

/* Prefetches a row: a head's rows are too far apart for hardware prefetchers. */
static void fetch_row(lt_matrix x, int64_t row, int64_t columns) {
  const int64_t size = lt_size_of(x.type);
  const char *at = (const char *)x.data + row * x.rs * size, *last = at + columns * size - 1;
  for (; at < last; at += 64) __builtin_prefetch(at, 0, 2);
  __builtin_prefetch(last, 0, 2);
}

/* A block of one head's keys, and the blocks that follow. */
typedef struct {
  int64_t batch, head, key, keys, next_keys;
  held_rows k, v;
  lt_matrix next_k;
} block;

/* Sets the logits of a block's keys to -infinity that are before a query's window or of other segments. */
static void hide(const lt_shape *a, const block *of, int64_t query, int64_t keys, float *logits) {
  const lt_attention *s = a->s;
  for (int64_t r = 0; r < lt_least(query + a->first - of->key, keys); r++) logits[r] = -LT_INFINITY;
  if (s->query_segments == NULL) return;
  const int32_t own = s->query_segments[of->batch * s->query_segments_batch + query];
  const int32_t *ids = s->key_segments + of->batch * s->key_segments_batch + of->key;
#pragma omp simd
  for (int64_t r = 0; r < keys; r++) logits[r] = ids[r] == own ? logits[r] : -LT_INFINITY;
}

/* One block for one query; the first query prefetches the next block. */
static void few_block(const lt_shape *a, few_query *state, const block *of, int64_t query, int64_t keys) {
  const lt_attention *s = a->s;
  const int round = a->p != LT_FLOAT32;
  const int64_t fetched = query == 0 ? of->keys : 0, next = query == 0 ? of->next_keys : 0;
  float weights[KEYS];
  for (int64_t r = 0; r < fetched; r++) fetch_row(of->v.rows, r, s->value_dims);
  dot_keys(a, state->query, of->k, keys, weights);
  for (int64_t r = 0; r < next; r++) fetch_row(of->next_k, r, s->dims);
  if (a->finish) lt_finish_logits(a, of->batch, of->head, of->key, keys, query, 1, 1, weights, NULL);
  hide(a, of, query, keys, weights);
  const float before = state->maximum;
  float most = -FLT_MAX;
#pragma omp simd reduction(max : most)
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
  if (a->drops) {
    const uint32_t first = lt_weight_position(a, of->batch, of->head, query, of->key);
    for (int64_t r = 0; r < keys; r++) weights[r] = lt_is_kept(a, first + (uint32_t)r) ? weights[r] : 0.0f;
  }
  state->total = state->total * factor + total;
  for (int64_t c = 0; c < s->value_dims; c++) state->sums[c] *= factor;
  add_values(a, weights, of->v, keys, state->sums);
}

static void few_item(const lt_shape *a, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse, lt_scratch scratch,
                     int64_t item, int64_t next_item) {
  const lt_attention *s = a->s;
  const int64_t batch = item / s->heads, head = item % s->heads;
  const lt_range range = lt_range_of(a, batch, 0, s->queries);
  few_query states[LT_FEW];
  for (int64_t t = 0; t < s->queries; t++) {
    states[t] = take_query(&scratch, s);
    states[t].seen = lt_least(lt_window_end(a, t), range.end);
    load_query(a, lt_head_rows(q, batch, head, t), k.type == LT_BFLOAT16, states[t].query);
    memset(states[t].sums, 0, (size_t)s->value_dims * sizeof(float));
  }
  for (int64_t key = range.begin; key < range.end; key += KEYS) {
    block of = {batch, head, key, lt_least(KEYS, range.end - key), 0, held(k, batch, head, key),
                held(v, batch, head, key), {NULL, 0, 0, 0}};
    if (key + KEYS < range.end) {
      of.next_k = lt_head_rows(k, batch, head, key + KEYS);
      of.next_keys = lt_least(KEYS, range.end - key - KEYS);
    } else if (next_item >= 0) {
      of.next_k = lt_head_rows(k, next_item / s->heads, next_item % s->heads, range.begin);
      of.next_keys = lt_least(KEYS, a->keys - range.begin);
    }
    for (int64_t t = 0; t < s->queries; t++) {
      const int64_t keys = lt_least(KEYS, states[t].seen - key);
      if (keys > 0) few_block(a, &states[t], &of, t, keys);
    }
  }
  for (int64_t t = 0; t < s->queries; t++) {
    const few_query *state = &states[t];
    const float sink = lt_sink(a, head, state->maximum);
    const float share = state->total != 0.0f ? a->weight / lt_sink_total(state->total, sink) : 0.0f;
    if (state->total == 0.0f) memset(state->sums, 0, (size_t)s->value_dims * sizeof(float));
    lt_store_rows(lt_head_rows(out, batch, head, t), state->sums, 0, &share, 1, s->value_dims);
    if (lse != NULL)
      lse[item * s->queries + t] = state->total != 0.0f ? lt_log_sum(a, head, state->maximum, state->total) : -LT_INFINITY;
  }
}

void lt_few_forward(const lt_shape *a, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse, void *scratch,
                    int thread, int threads) {
  const int64_t heads = a->s->heads, items = a->s->batch * heads, end = items * (thread + 1) / threads;
  lt_shape own = *a;
  for (int64_t item = items * thread / threads; item < end; item++) {
    lt_turn_to(&own, item / heads);
    few_item(&own, q, k, v, out, lse, (lt_scratch){scratch, 0}, item, item + 1 < end ? item + 1 : -1);
  }
}
