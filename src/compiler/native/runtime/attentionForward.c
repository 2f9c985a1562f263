/* attentionForward.c: softmax(q k' scale + mask) v, by strips of queries and blocks of keys. */
#include "attention.h"

enum {
  WHOLE_KEYS = 576, /* up to this many keys, a strip's softmax sees all keys at once */
  BLOCK_KEYS = 288  /* keys at a time in longer contexts; both are multiples of all tile heights */
};

typedef struct {
  lt_left keys;
  lt_panel_list packed_keys, values, queries, weights;
  float *logits, *sums;              /* [keys of a block, lanes], [lanes, value_dims] */
  float *plain_keys, *plain_values;  /* those of a head, where memory has codes: [keys, dims], [keys, value_dims] */
  int64_t sums_stride, block, width; /* width: queries per strip */
} buffers;

/* Sized for every kernel: one word per element, tiles of up to eight rows, panels of up to LT_PANEL columns. */
static int64_t take_buffers(lt_scratch *scratch, const lt_shape *a, buffers *b) {
  const lt_attention *s = a->s;
  const lt_kernel *kernel = a->kernel;
  b->width = lt_strip_width(s);
  b->block = a->keys <= WHOLE_KEYS ? a->keys : BLOCK_KEYS;
  const int64_t value_width = lt_panel_width(kernel, s->value_dims);
  const int64_t dim_words = lt_words(kernel, s->dims), block_words = lt_words(kernel, b->block);
  b->sums_stride = lt_round_up(s->value_dims, value_width);
  b->packed_keys = (lt_panel_list){lt_take(scratch, (a->keys + 8) * (s->dims + 1)), kernel->rows, kernel->rows * dim_words};
  b->values = (lt_panel_list){lt_take(scratch, (a->keys + 1) * (s->value_dims + LT_PANEL)), value_width,
                              value_width * lt_words(kernel, a->keys)};
  b->queries = (lt_panel_list){lt_take(scratch, LT_STRIP * (s->dims + 1)), 0, 0};
  b->weights = (lt_panel_list){lt_take(scratch, (LT_STRIP + 8) * (b->block + 1)), kernel->rows, kernel->rows * block_words};
  b->logits = lt_take(scratch, LT_STRIP * (b->block + 8));
  b->sums = lt_take(scratch, (LT_STRIP + 8) * (s->value_dims + LT_PANEL));
  b->plain_keys = s->coded ? lt_take(scratch, a->keys * s->dims) : NULL;
  b->plain_values = s->coded ? lt_take(scratch, a->keys * s->value_dims) : NULL;
  return scratch->used;
}

/* Adds the products of a strip's weights and values to its sums. A tile of queries stops at its last visible key. */
static void add_values(const lt_shape *a, const buffers *b, const lt_strip *at, int accumulate) {
  const int64_t rows = a->kernel->rows, lanes = at->lanes;
  lt_panel_list values = b->values;
  values.words += lt_words(a->kernel, at->key) * values.width;
  lt_left left = lt_packed_left(b->weights);
  if (a->kernel->multiply != NULL) left = lt_left_in_place(a->kernel, b->logits, 1, lanes);
  const int64_t at_once = a->s->after == LT_ALL ? at->queries : rows;
  for (int64_t i = 0; i < at->queries; i += at_once, left.words += left.size) {
    const int64_t queries = lt_least(at_once, at->queries - i), last = at->query + i + queries - 1;
    const int64_t count = lt_least(lt_window_end(a, last) - at->key, at->keys);
    lt_multiply_rows(a->kernel, left, values, 0, lt_words(a->kernel, count < 0 ? 0 : count), queries, a->s->value_dims,
                     b->sums + i * b->sums_stride, b->sums_stride, accumulate);
  }
}

static void rescale_sums(const buffers *b, int64_t queries, const float *factors) {
  for (int64_t i = 0; i < queries; i++) {
    float *row = b->sums + i * b->sums_stride;
#pragma omp simd
    for (int64_t c = 0; c < b->sums_stride; c++) row[c] *= factors[i];
  }
}

/* Stores out and lse of a strip from its sums; 0 for a query that sees no key. */
static void finish_strip(const lt_shape *a, const buffers *b, lt_matrix out, float *lse, int64_t head, int64_t queries,
                         const float *maxima, const float *totals) {
  float factors[LT_STRIP], logs[LT_STRIP];
#pragma omp simd
  for (int i = 0; i < LT_STRIP; i++) {
    factors[i] = a->weight / totals[i];
    logs[i] = maxima[i] * a->scale + lt_logf(totals[i]);
  }
  for (int64_t i = 0; i < queries && a->s->sinks != NULL; i++) {
    const float maximum = maxima[i] * a->scale;
    factors[i] = a->weight / lt_sink_total(totals[i], lt_sink(a, head, maximum));
    logs[i] = lt_log_sum(a, head, maximum, totals[i]);
  }
  for (int64_t i = 0; i < queries; i++) {
    if (totals[i] != 0.0f) continue;
    memset(b->sums + i * b->sums_stride, 0, (size_t)a->s->value_dims * sizeof(float));
    factors[i] = 0.0f;
    logs[i] = -LT_INFINITY;
  }
  if (lse != NULL) memcpy(lse, logs, (size_t)queries * sizeof(float));
  lt_store_rows(out, b->sums, b->sums_stride, factors, queries, a->s->value_dims);
}

/* One strip: `queries` queries from `query` on. */
static void forward_strip(const lt_shape *a, const buffers *b, lt_heads q, lt_heads out, float *lse, int64_t batch,
                          int64_t head, int64_t query, int64_t queries) {
  const lt_attention *s = a->s;
  const lt_kernel *kernel = a->kernel;
  const lt_range seen = lt_range_of(a, batch, query, queries);
  const int64_t lanes = lt_round_up(queries, LT_GROUP_LANES);
  const int64_t dim_words = lt_words(kernel, s->dims), right = lt_strip_panel(kernel, lanes);
  const lt_panel_list packed = {b->queries.words, right, right * dim_words};
  const lt_matrix rows = lt_head_rows(q, batch, head, query);
  lt_pack_list(kernel, packed, rows, rows.rs, rows.cs, queries, lanes, s->dims);
  float maxima[LT_STRIP], totals[LT_STRIP] = {0}, factors[LT_STRIP];
  for (int c = 0; c < LT_STRIP; c++) maxima[c] = -FLT_MAX;
  for (int64_t key = seen.begin; key < seen.end; key += b->block) {
    const lt_strip at = {batch, head, key, lt_least(b->block, seen.end - key), query, queries, lanes};
    lt_multiply_strip(a, b->keys, packed, dim_words, key, at.keys, query, lanes, b->logits);
    if (a->finish) lt_finish_logits(a, batch, head, key, at.keys, query, queries, lanes, b->logits, NULL);
    lt_hide_logits(a, &at, b->logits);
    memcpy(factors, maxima, sizeof factors);
    lt_raise_maxima(a, &at, b->logits, maxima);
    if (key > seen.begin) {
      for (int64_t c = 0; c < lanes; c++) factors[c] = lt_expf((factors[c] - maxima[c]) * a->scale);
      for (int64_t c = 0; c < lanes; c++) totals[c] *= factors[c];
      rescale_sums(b, queries, factors);
    }
    lt_forward_weights(a, &at, b->logits, maxima, totals, &b->weights);
    add_values(a, b, &at, key > seen.begin);
  }
  const int64_t row = (batch * s->heads + head) * s->queries + query;
  finish_strip(a, b, lt_head_rows(out, batch, head, query), lse == NULL ? NULL : lse + row, head, queries, maxima, totals);
}

/* A head's rows, in codes as numbers of scratch. */
static lt_matrix plain_rows(lt_heads x, int64_t batch, int64_t head, int64_t count, int64_t columns, float *to) {
  const lt_matrix rows = lt_head_rows(x, batch, head, 0);
  const float *scales = lt_head_scales(x, batch, head, 0);
  if (scales == NULL) return rows;
  for (int64_t r = 0; r < count; r++) {
    float *restrict row = to + r * columns;
    const float scale = scales[r * x.scales_time];
    const int8_t *bytes = (const int8_t *)rows.data + r * rows.rs;
    const int32_t *words = (const int32_t *)rows.data + r * rows.rs;
    if (rows.type == LT_INT8)
#pragma omp simd
      for (int64_t c = 0; c < columns; c++) row[c] = (float)bytes[c] * scale;
    else
#pragma omp simd
      for (int64_t c = 0; c < columns; c++) row[c] = (float)words[c] * scale;
  }
  return (lt_matrix){to, LT_FLOAT32, columns, 1};
}

/* Cost of a strip: the keys in its windows, plus one for constant work. */
static int64_t strip_cost(const lt_shape *a, int64_t width, int64_t strip) {
  const int64_t begin = strip * width + a->first, end = lt_window_end(a, lt_least((strip + 1) * width, a->s->queries) - 1);
  return end - (begin < 0 ? 0 : lt_least(begin, end)) + 1;
}

/* Cost of a head of a batch item, which a turns to. */
static int64_t head_cost(lt_shape *a, int64_t width, int64_t strips, int64_t batch) {
  int64_t cost = 0;
  lt_turn_to(a, batch);
  for (int64_t i = 0; i < strips; i++) cost += strip_cost(a, width, i);
  return cost;
}

/* The first strip, over all items, whose cost begins at or after `share` of the total. */
static int64_t strip_at(lt_shape a, int64_t width, int64_t strips, int64_t share, int64_t shares) {
  const int64_t heads = a.s->heads;
  int64_t total = 0, before = 0, batch = 0, cost = 0;
  for (int64_t b = 0; b < a.s->batch; b++) total += heads * head_cost(&a, width, strips, b);
  const int64_t target = total * share / shares;
  for (; batch < a.s->batch; batch++, before += heads * cost)
    if (before + heads * (cost = head_cost(&a, width, strips, batch)) > target) break;
  if (batch == a.s->batch) return batch * heads * strips;
  const int64_t head = (target - before) / cost;
  int64_t strip = 0;
  for (before += head * cost; strip < strips && before < target; strip++) before += strip_cost(&a, width, strip);
  return (batch * heads + head) * strips + strip;
}

int64_t lt_forward_scratch(const lt_shape *a) {
  if (a->s->queries <= LT_FEW) return lt_few_scratch(a->s);
  buffers b;
  lt_scratch scratch = {NULL, 0}, fewer = {NULL, 0};
  const int64_t bytes = take_buffers(&scratch, a, &b);
  if (a->keys <= WHOLE_KEYS) return bytes;
  /* A partly filled cache has fewer keys, so more of them fit at once. */
  lt_shape part = *a;
  lt_set_keys(&part, WHOLE_KEYS, 0);
  const int64_t whole = take_buffers(&fewer, &part, &b);
  return whole > bytes ? whole : bytes;
}

/* Rows that the next item reads and writes; none after the last. */
static lt_streams next_item(const lt_shape *a, int64_t strips, int64_t item, int64_t last, lt_heads q, lt_heads k,
                            lt_heads v, lt_heads out) {
  const lt_attention *s = a->s;
  lt_streams next = {.count = 0};
  if (item > last) return next;
  const int64_t batch = item / s->heads, head = item % s->heads;
  lt_add_stream(&next, lt_head_rows(k, batch, head, 0), a->keys, s->dims, 0);
  lt_add_stream(&next, lt_head_rows(v, batch, head, 0), a->keys, s->value_dims, 0);
  lt_add_stream(&next, lt_head_rows(q, batch, head, 0), s->queries, s->dims, 0);
  lt_add_stream(&next, lt_head_rows(out, batch, head, 0), s->queries, s->value_dims, 1);
  next.share = (next.rows + strips - 1) / strips;
  return next;
}

void lt_attention_forward(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse,
                          void *scratch, int thread, int threads) {
  lt_shape a = lt_shape_of(p, s);
  if (s->queries <= LT_FEW) {
    lt_few_forward(&a, q, k, v, out, lse, scratch, thread, threads);
    return;
  }
  buffers b;
  const int64_t width = lt_strip_width(s), strips = (s->queries + width - 1) / width;
  const int64_t first = strip_at(a, width, strips, thread, threads), last = strip_at(a, width, strips, thread + 1, threads);
  const void *packed_keys = NULL, *packed_values = NULL;
  int64_t turned_to = -1, laid_out = -1; /* the batch item; the keys that buffers are for */
  lt_streams next = {.count = 0};
  for (int64_t at = first; at < last; at++) {
    const int64_t item = at / strips, batch = item / s->heads, head = item % s->heads, query = at % strips * width;
    if (batch != turned_to) lt_turn_to(&a, turned_to = batch);
    if (a.keys != laid_out) {
      lt_scratch taken = {scratch, 0};
      take_buffers(&taken, &a, &b);
      laid_out = a.keys;
      packed_keys = packed_values = NULL;
    }
    const lt_matrix keys = lt_head_rows(k, batch, head, 0), values = lt_head_rows(v, batch, head, 0);
    /* Heads that share keys are consecutive. */
    if (keys.data != packed_keys)
      b.keys = lt_keys_as_left(&a, b.packed_keys, plain_rows(k, batch, head, a.keys, s->dims, b.plain_keys), s->dims);
    if (values.data != packed_values) {
      const lt_matrix plain = plain_rows(v, batch, head, a.keys, s->value_dims, b.plain_values);
      lt_pack_list(a.kernel, b.values, plain, plain.cs, plain.rs, s->value_dims, s->value_dims, a.keys);
    }
    if (at == first || query == 0) next = next_item(&a, strips, item + 1, (last - 1) / strips, q, k, v, out);
    packed_keys = keys.data;
    packed_values = values.data;
    lt_fetch_streams(&next);
    forward_strip(&a, &b, q, out, lse, batch, head, query, lt_least(width, s->queries - query));
  }
}
