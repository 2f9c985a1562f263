/* attentionBackward.c: the gradients of attention; recomputes the probabilities from the sums of exponentials.

   With p' and ds' the transposed strips (a row per key, a lane per query) of probabilities and of the gradient of q k':
   ds = p * (dout v' - sum(dout * out)) * scale, dv = p' dout, dk = ds' q, dq = ds k. */
#include "attention.h"

enum {
  STRIPS = 4,       /* strips of queries per chunk: the depth of the products for dk and dv */
  STEP_KEYS = 48,   /* keys per step: their strips fit the first-level cache */
  BLOCK_KEYS = 384, /* keys per block: the depth of the product for dq; like STEP_KEYS, a multiple of all tile heights */
  LARGE = 256       /* above this |log of a sum of exponentials|, float32 is too coarse for the probabilities */
};

typedef struct {
  lt_panel_list key_rows, value_rows, key_columns;   /* of a head: left, left and right operands */
  lt_panel_list query_columns, dout_columns;         /* of a chunk: right operands of dk and dv */
  lt_panel_list weights, dlogits_rows, dlogits;      /* left operands of dv, dk (of a step) and dq (of a block) */
  uint32_t *query_rows, *dout_rows;                  /* of a chunk, strip after strip: right operands of p and dp */
  float *logits, *dweights, *slopes;                 /* strips of a step; slopes where there is a cap */
  float *dq, *dk, *dv;                               /* sums: of a chunk; of all keys */
  lt_lanes lanes;                                    /* of a chunk */
  const void *packed_keys, *packed_values;           /* the head's, as they lie in memory; NULL before the first */
  int64_t width, chunk, strip_rows, dq_stride, dv_stride; /* dk_stride is dq_stride */
} buffers;

static lt_panel_list take_list(lt_scratch *scratch, int64_t count, int64_t width, int64_t words) {
  return (lt_panel_list){lt_take(scratch, count), width, width * words};
}

/* Sized for every kernel: one word per element, tiles of up to eight rows, panels of up to LT_PANEL columns. */
static int64_t take_buffers(lt_scratch *scratch, const lt_shape *a, buffers *b) {
  const lt_attention *s = a->s;
  const lt_kernel *kernel = a->kernel;
  b->width = lt_strip_width(s);
  b->chunk = lt_least(STRIPS, (s->queries + b->width - 1) / b->width) * b->width;
  b->strip_rows = lt_round_up(b->width, kernel->rows);
  const int64_t block = lt_least(lt_round_up(s->keys, STEP_KEYS), BLOCK_KEYS), dims = s->dims, value_dims = s->value_dims;
  const int64_t dim_width = lt_panel_width(kernel, dims), value_width = lt_panel_width(kernel, value_dims);
  const int64_t dim_words = lt_words(kernel, dims), value_words = lt_words(kernel, value_dims);
  const int64_t chunk_words = lt_words(kernel, b->chunk), chunk = b->chunk, keys = s->keys, rows = kernel->rows;
  b->dq_stride = lt_round_up(dims, dim_width);
  b->dv_stride = lt_round_up(value_dims, value_width);
  b->key_rows = take_list(scratch, (keys + 8) * (dims + 1), rows, dim_words);
  b->value_rows = take_list(scratch, (keys + 8) * (value_dims + 1), rows, value_words);
  b->key_columns = take_list(scratch, (keys + 1) * (dims + LT_PANEL), dim_width, lt_words(kernel, keys));
  b->query_columns = take_list(scratch, (chunk + 1) * (dims + LT_PANEL), dim_width, chunk_words);
  b->dout_columns = take_list(scratch, (chunk + 1) * (value_dims + LT_PANEL), value_width, chunk_words);
  b->weights = take_list(scratch, STEP_KEYS * (chunk + 1), rows, chunk_words);
  b->dlogits_rows = take_list(scratch, STEP_KEYS * (chunk + 1), rows, chunk_words);
  b->dlogits = take_list(scratch, (chunk + 8 * STRIPS) * (block + 1), rows, lt_words(kernel, block));
  b->query_rows = lt_take(scratch, chunk * (dims + 1));
  b->dout_rows = lt_take(scratch, chunk * (value_dims + 1));
  b->logits = lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->dweights = lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->slopes = s->logit_cap == 0.0f ? NULL : lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->dq = lt_take(scratch, (chunk + 8 * STRIPS) * (dims + LT_PANEL));
  b->dk = lt_take(scratch, (keys + 8) * (dims + LT_PANEL));
  b->dv = lt_take(scratch, (keys + 8) * (value_dims + LT_PANEL));
  b->lanes = (lt_lanes){lt_take(scratch, chunk), lt_take(scratch, chunk), lt_take(scratch, chunk)};
  return scratch->used;
}

typedef struct {
  lt_heads q, k, v, out, dout, dq, dk, dv;
} operands;

/* A chunk of queries of one head. */
typedef struct {
  int64_t batch, head, query, queries;
} place;

/* A strip of a chunk: its index, first query, number of queries and lanes. */
typedef struct {
  int64_t index, query, queries, lanes;
} strip;

static strip strip_of(const buffers *b, const place *at, int64_t index) {
  const int64_t queries = lt_least(b->width, at->queries - index * b->width);
  return (strip){index, at->query + index * b->width, queries, lt_round_up(queries, LT_GROUP_LANES)};
}

static int64_t strips_of(const buffers *b, const place *at) { return (at->queries + b->width - 1) / b->width; }

/* A strip's rows as a right operand, at its position in the chunk's panels. */
static lt_panel_list strip_panels(const lt_shape *a, const buffers *b, uint32_t *words, const strip *at, int64_t k) {
  const int64_t width = lt_strip_panel(a->kernel, at->lanes), size = lt_words(a->kernel, k);
  return (lt_panel_list){words + at->index * b->width * size, width, width * size};
}

static void strip_logits(const lt_shape *a, const buffers *b, const place *in, const strip *of, const lt_strip *at) {
  const lt_panel_list rows = strip_panels(a, b, b->query_rows, of, a->s->dims);
  lt_multiply_strip(a, b->key_rows, rows, lt_words(a->kernel, a->s->dims), at->key, at->keys, at->query, at->lanes,
                    b->logits);
  if (a->finish)
    lt_finish_logits(a, in->batch, in->head, at->key, at->keys, at->query, at->queries, at->lanes, b->logits, b->slopes);
  lt_hide_logits(a, at, b->logits);
}

/* Recomputes maxima and sums where the logarithm of the sum is too coarse, such as for logits near -1e9. */
static void exact_lanes(const lt_shape *a, const buffers *b, const place *in, const strip *of, float *shifts,
                        float *biases) {
  const int64_t seen = lt_visible(a, of->query + of->queries - 1);
  float maxima[LT_STRIP], totals[LT_STRIP] = {0};
  for (int c = 0; c < LT_STRIP; c++) maxima[c] = -FLT_MAX;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t key = 0; key < seen; key += STEP_KEYS) {
      const lt_strip at = {key, lt_least(STEP_KEYS, seen - key), of->query, of->queries, of->lanes};
      strip_logits(a, b, in, of, &at);
      if (pass == 0)
        lt_raise_maxima(a, &at, b->logits, maxima);
      else
        lt_forward_weights(a, &at, b->logits, maxima, totals, NULL);
    }
  }
  for (int64_t c = 0; c < of->queries; c++) {
    if (lt_visible(a, of->query + c) == 0 || totals[c] == 0.0f) continue;
    shifts[c] = maxima[c];
    biases[c] = -1.44269504f * lt_logf(totals[c]);
  }
}

/* Packs a chunk's queries and dout; computes each lane's shift, bias and delta. Idle lanes get weight 0. */
static void begin_chunk(const lt_shape *a, const buffers *b, const place *in, const operands *of, const float *lse) {
  const lt_attention *s = a->s;
  const lt_matrix queries = lt_head_rows(of->q, in->batch, in->head, in->query);
  const lt_matrix douts = lt_head_rows(of->dout, in->batch, in->head, in->query);
  const lt_matrix outs = lt_head_rows(of->out, in->batch, in->head, in->query);
  lt_pack_list(a->kernel, b->query_columns, queries, 1, queries.rs, s->dims, s->dims, in->queries);
  lt_pack_list(a->kernel, b->dout_columns, douts, 1, douts.rs, s->value_dims, s->value_dims, in->queries);
  const float unscale = 1.0f / a->scale;
  lse += (in->batch * s->heads + in->head) * s->queries + in->query;
  for (int64_t index = 0; index < strips_of(b, in); index++) {
    const strip at = strip_of(b, in, index);
    const lt_matrix rows = lt_head_rows(of->q, in->batch, in->head, at.query);
    const lt_matrix drows = lt_head_rows(of->dout, in->batch, in->head, at.query);
    lt_pack_list(a->kernel, strip_panels(a, b, b->query_rows, &at, s->dims), rows, rows.rs, 1, at.queries, at.lanes,
                 s->dims);
    lt_pack_list(a->kernel, strip_panels(a, b, b->dout_rows, &at, s->value_dims), drows, drows.rs, 1, at.queries, at.lanes,
                 s->value_dims);
    int large = 0;
    const int64_t first = index * b->width;
    for (int64_t c = first; c < first + at.lanes; c++) {
      const int seen = c < in->queries && lt_visible(a, in->query + c) > 0 && lse[c] != -LT_INFINITY;
      b->lanes.shifts[c] = seen ? lse[c] * unscale : LT_INFINITY;
      b->lanes.biases[c] = 0.0f;
      b->lanes.deltas[c] = seen ? lt_row_product(outs, douts, c, s->value_dims) : 0.0f;
      large |= seen && lt_absf(lse[c]) > LARGE;
    }
    if (large) exact_lanes(a, b, in, &at, b->lanes.shifts + first, b->lanes.biases + first);
  }
}

/* A strip of a step: packs its probabilities and its logits' gradients as left operands. */
static void strip_weights(const lt_shape *a, const buffers *b, const place *in, const strip *of, int64_t key, int64_t keys,
                          int64_t block) {
  const lt_kernel *kernel = a->kernel;
  const int64_t first = of->index * b->width, rows = kernel->rows;
  const lt_strip at = {key, keys, of->query, of->queries, of->lanes};
  strip_logits(a, b, in, of, &at);
  const lt_panel_list drows = strip_panels(a, b, b->dout_rows, of, a->s->value_dims);
  lt_multiply_strip(a, b->value_rows, drows, lt_words(kernel, a->s->value_dims), key, keys, at.query, at.lanes,
                    b->dweights);
  lt_panel_list weights = b->weights, dlogits_rows = b->dlogits_rows, dlogits = b->dlogits;
  weights.words += lt_words(kernel, first) * rows;
  dlogits_rows.words += lt_words(kernel, first) * rows;
  dlogits.words += of->index * (b->strip_rows / rows) * dlogits.size + lt_words(kernel, key - block) * rows;
  const lt_lanes lanes = {b->lanes.shifts + first, b->lanes.biases + first, b->lanes.deltas + first};
  lt_backward_weights(a, &at, b->logits, b->dweights, b->slopes, lanes, weights, dlogits_rows, dlogits);
}

/* A step: at most STEP_KEYS keys by a chunk of queries. Accumulates dk and dv, and leaves the logits' gradients for
   dq. */
static void step(const lt_shape *a, const buffers *b, const place *in, int64_t key, int64_t keys, int64_t block,
                 int add_dk, int add_dv) {
  const lt_kernel *kernel = a->kernel;
  const int64_t rows = kernel->rows;
  for (int64_t index = 0; index < strips_of(b, in); index++) {
    const strip of = strip_of(b, in, index);
    const int64_t seen = lt_least(lt_visible(a, of.query + of.queries - 1) - key, keys);
    if (seen > 0) strip_weights(a, b, in, &of, key, seen, block);
  }
  const int64_t words = lt_words(kernel, in->queries);
  lt_panel_list weights = b->weights, dlogits = b->dlogits_rows;
  for (int64_t i = 0; i < keys; i += rows, weights.words += weights.size, dlogits.words += dlogits.size) {
    const int64_t first = lt_words(kernel, lt_first_lane(a, key + i, in->query, in->queries));
    lt_multiply_lists(kernel, weights, b->dout_columns, first, words - first, rows, a->s->value_dims,
                      b->dv + (key + i) * b->dv_stride, b->dv_stride, add_dv);
    lt_multiply_lists(kernel, dlogits, b->query_columns, first, words - first, rows, a->s->dims,
                      b->dk + (key + i) * b->dq_stride, b->dq_stride, add_dk);
  }
}

/* dq of a chunk (+)= ds k over a block of keys; each tile of queries stops at its last visible key. */
static void add_dq(const lt_shape *a, const buffers *b, const place *in, int64_t block, int64_t keys) {
  const lt_kernel *kernel = a->kernel;
  lt_panel_list columns = b->key_columns;
  columns.words += lt_words(kernel, block) * columns.width;
  for (int64_t index = 0; index < strips_of(b, in); index++) {
    const strip at = strip_of(b, in, index);
    for (int64_t i = 0; i < at.queries; i += kernel->rows) {
      const int64_t last = at.query + lt_least(i + kernel->rows, at.queries) - 1, row = index * b->strip_rows + i;
      const int64_t seen = lt_least(lt_visible(a, last) - block, keys);
      if (seen <= 0 && block > 0) continue;
      lt_panel_list dlogits = b->dlogits;
      dlogits.words += row / kernel->rows * dlogits.size;
      lt_multiply_lists(kernel, dlogits, columns, 0, lt_words(kernel, seen < 0 ? 0 : seen), kernel->rows, a->s->dims,
                        b->dq + row * b->dq_stride, b->dq_stride, block > 0);
    }
  }
}

static void backward_chunk(const lt_shape *a, const buffers *b, const place *in, lt_heads dq, int add_dk, int add_dv,
                           lt_streams *next) {
  const lt_attention *s = a->s;
  const int64_t seen = in->queries == 0 ? 0 : lt_visible(a, in->query + in->queries - 1);
  /* Rows of keys that no query sees are written as zeros, unless they accumulate. */
  const int64_t end = add_dk && add_dv ? seen : s->keys;
  int64_t block = 0;
  do {
    const int64_t keys = lt_least(BLOCK_KEYS, end - block);
    for (int64_t key = block; key < block + keys; key += STEP_KEYS) {
      step(a, b, in, key, lt_least(STEP_KEYS, block + keys - key), block, add_dk, add_dv);
      lt_fetch_streams(next);
    }
    add_dq(a, b, in, block, keys);
  } while ((block += BLOCK_KEYS) < end);
  for (int64_t index = 0; index < strips_of(b, in); index++) {
    const strip at = strip_of(b, in, index);
    lt_store_rows(lt_head_rows(dq, in->batch, in->head, at.query), b->dq + index * b->strip_rows * b->dq_stride,
                  b->dq_stride, NULL, at.queries, s->dims);
  }
}

int64_t lt_attention_scratch_bytes(int p, const lt_attention *s, int backward) {
  const lt_shape a = lt_shape_of(p, s);
  buffers b;
  lt_scratch scratch = {NULL, 0};
  return backward ? take_buffers(&scratch, &a, &b) : lt_forward_scratch(&a);
}

/* The rows that a head reads and writes, prefetched in shares during the steps of the previous head. */
static lt_streams head_streams(const lt_shape *a, const buffers *b, const operands *of, int64_t item) {
  const lt_attention *s = a->s;
  const int64_t batch = item / s->heads, head = item % s->heads;
  lt_streams next = {.count = 0};
  lt_add_stream(&next, lt_head_rows(of->k, batch, head, 0), s->keys, s->dims, 0);
  lt_add_stream(&next, lt_head_rows(of->v, batch, head, 0), s->keys, s->value_dims, 0);
  lt_add_stream(&next, lt_head_rows(of->q, batch, head, 0), s->queries, s->dims, 0);
  lt_add_stream(&next, lt_head_rows(of->out, batch, head, 0), s->queries, s->value_dims, 0);
  lt_add_stream(&next, lt_head_rows(of->dout, batch, head, 0), s->queries, s->value_dims, 0);
  lt_add_stream(&next, lt_head_rows(of->dq, batch, head, 0), s->queries, s->dims, 1);
  lt_add_stream(&next, lt_head_rows(of->dk, batch, head, 0), s->keys, s->dims, 1);
  lt_add_stream(&next, lt_head_rows(of->dv, batch, head, 0), s->keys, s->value_dims, 1);
  const int64_t steps = strips_of(b, &(place){0, 0, 0, s->queries}) * ((s->keys + STEP_KEYS - 1) / STEP_KEYS) / STRIPS;
  next.share = next.rows / (steps + 1) + 1;
  return next;
}

/* Packs a head's keys and values, unless the previous head had the same. */
static void pack_head(const lt_shape *a, buffers *b, lt_matrix keys, lt_matrix values) {
  const lt_attention *s = a->s;
  if (keys.data != b->packed_keys) {
    lt_pack_list(a->kernel, b->key_rows, keys, keys.rs, 1, s->keys, s->keys, s->dims);
    lt_pack_list(a->kernel, b->key_columns, keys, 1, keys.rs, s->dims, s->dims, s->keys);
  }
  if (values.data != b->packed_values)
    lt_pack_list(a->kernel, b->value_rows, values, values.rs, 1, s->keys, s->keys, s->value_dims);
  b->packed_keys = keys.data;
  b->packed_values = values.data;
}

void lt_attention_backward(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out,
                           lt_heads dout, const float *lse, lt_heads dq, lt_heads dk, lt_heads dv, void *scratch,
                           int thread, int threads) {
  const lt_shape a = lt_shape_of(p, s);
  const operands of = {q, k, v, out, dout, dq, dk, dv};
  buffers b = {.packed_keys = NULL, .packed_values = NULL};
  lt_scratch taken = {scratch, 0};
  take_buffers(&taken, &a, &b);
  const int shared_k = dk.head == 0 && s->heads > 1, shared_v = dv.head == 0 && s->heads > 1;
  /* An item is a head, or all heads that share keys or values, whose gradients are sums over them. */
  const int64_t group = shared_k || shared_v ? s->heads : 1, items = s->batch * s->heads / group;
  const int64_t end = items * (thread + 1) / threads * group;
  for (int64_t i = items * thread / threads * group; i < end; i++) {
    place in = {i / s->heads, i % s->heads, 0, 0};
    const int later = i % group > 0, last = i % group == group - 1;
    pack_head(&a, &b, lt_head_rows(k, in.batch, in.head, 0), lt_head_rows(v, in.batch, in.head, 0));
    lt_streams next = {.count = 0};
    if (i + 1 < end) next = head_streams(&a, &b, &of, i + 1);
    do {
      in.queries = lt_least(b.chunk, s->queries - in.query);
      begin_chunk(&a, &b, &in, &of, lse);
      backward_chunk(&a, &b, &in, dq, in.query > 0 || (later && shared_k), in.query > 0 || (later && shared_v), &next);
    } while ((in.query += b.chunk) < s->queries);
    if (last || !shared_k)
      lt_store_rows(lt_head_rows(dk, in.batch, in.head, 0), b.dk, b.dq_stride, NULL, s->keys, s->dims);
    if (last || !shared_v)
      lt_store_rows(lt_head_rows(dv, in.batch, in.head, 0), b.dv, b.dv_stride, NULL, s->keys, s->value_dims);
  }
}
