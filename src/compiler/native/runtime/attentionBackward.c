/* attentionBackward.c: the gradients of attention; recomputes the probabilities from the sums of exponentials.

   With p' and ds' the transposed strips (a row per key, a lane per query) of probabilities and of the gradient of q k':
   ds = p * (dout v' - sum(dout * out)) * scale, dv = p' dout, dk = ds' q, dq = ds k. Where weights are dropped, p and dout v'
   are multiplied by what is kept, but for the p that ds begins with. */
#include "attentionBackward.h"

static lt_panel_list take_list(lt_scratch *scratch, int64_t count, int64_t width, int64_t words) {
  return (lt_panel_list){lt_take(scratch, count), width, width * words};
}

/* Sized for every kernel: one word per element, tiles of up to eight rows, panels of up to LT_PANEL columns. */
int64_t lt_backward_buffers(lt_scratch *scratch, const lt_shape *a, buffers *b) {
  const lt_attention *s = a->s;
  const lt_kernel *kernel = a->kernel;
  b->width = lt_strip_width(s);
  b->chunk = lt_least(STRIPS, (s->queries + b->width - 1) / b->width) * b->width;
  b->strip_rows = kernel->multiply != NULL ? b->width : lt_round_up(b->width, kernel->rows);
  const int64_t block = lt_least(lt_round_up(s->keys, STEP_KEYS), BLOCK_KEYS), dims = s->dims, value_dims = s->value_dims;
  const int64_t dim_width = lt_panel_width(kernel, dims), value_width = lt_panel_width(kernel, value_dims);
  const int64_t dim_words = lt_words(kernel, dims), value_words = lt_words(kernel, value_dims);
  const int64_t chunk_words = lt_words(kernel, b->chunk), chunk = b->chunk, keys = s->keys, rows = kernel->rows;
  b->packed_keys = take_list(scratch, (keys + 8) * (dims + 1), rows, dim_words);
  b->packed_values = take_list(scratch, (keys + 8) * (value_dims + 1), rows, value_words);
  b->key_columns = take_list(scratch, (keys + 1) * (dims + LT_PANEL), dim_width, lt_words(kernel, keys));
  b->query_columns = take_list(scratch, (chunk + 1) * (dims + LT_PANEL), dim_width, chunk_words);
  b->dout_columns = take_list(scratch, (chunk + 1) * (value_dims + LT_PANEL), value_width, chunk_words);
  b->stride = chunk + LT_GROUP_LANES;
  b->weights = take_list(scratch, STEP_KEYS * b->stride, rows, chunk_words);
  b->dlogits_rows = take_list(scratch, STEP_KEYS * (chunk + 1), rows, chunk_words);
  b->dlogits = take_list(scratch, (chunk + 8 * STRIPS) * (block + 1), rows, lt_words(kernel, block));
  b->query_rows = lt_take(scratch, chunk * (dims + 1));
  b->dout_rows = lt_take(scratch, chunk * (value_dims + 1));
  b->logits = lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->dweights = lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->slopes = s->logit_cap == 0.0f ? NULL : lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->kept = s->keep == 0.0f ? NULL : lt_take(scratch, STEP_KEYS * LT_STRIP);
  b->dq = (sums){lt_take(scratch, (chunk + 8 * STRIPS) * (dims + LT_PANEL)), lt_round_up(dims, dim_width)};
  b->dk = (sums){lt_take(scratch, (keys + 8) * (dims + LT_PANEL)), b->dq.stride};
  b->dv = (sums){lt_take(scratch, (keys + 8) * (value_dims + LT_PANEL)), lt_round_up(value_dims, value_width)};
  b->lanes = (lt_lanes){lt_take(scratch, chunk), lt_take(scratch, chunk), lt_take(scratch, chunk)};
  return scratch->used;
}

void lt_find_seen(const lt_shape *a, const buffers *b, place *in) {
  const int64_t strips = strips_of(b, in);
  for (int64_t index = 0; index < strips; index++) {
    const strip of = strip_of(b, in, index);
    in->seen[index] = lt_range_of(a, in->batch, of.query, of.queries);
    if (index > 0 && in->seen[index].end < in->seen[index - 1].end) in->seen[index].end = in->seen[index - 1].end;
  }
  for (int64_t index = strips - 1; index > 0; index--)
    in->seen[index - 1].begin = lt_least(in->seen[index - 1].begin, in->seen[index].begin);
}

lt_range lt_strips_seeing(const buffers *b, const place *in, int64_t key, int64_t keys) {
  lt_range strips = {0, strips_of(b, in)};
  while (strips.begin < strips.end && in->seen[strips.begin].end <= key) strips.begin++;
  while (strips.begin < strips.end && in->seen[strips.end - 1].begin >= key + keys) strips.end--;
  return strips;
}

void lt_strip_dweights(const lt_shape *a, const buffers *b, const strip *of, const lt_strip *at) {
  const lt_panel_list rows = strip_panels(a, b, b->dout_rows, of, a->s->value_dims);
  lt_multiply_strip(a, b->value_rows, rows, lt_words(a->kernel, a->s->value_dims), at->key, at->keys, at->query, at->lanes,
                    b->dweights);
  if (a->drops) lt_drop_dweights(a, at, b->dweights, b->kept);
}

/* A strip of a step: leaves its probabilities and its logits' gradients as left operands. `keys` of step_keys are seen. */
static void strip_weights(const lt_shape *a, const buffers *b, const place *in, const strip *of, int64_t key, int64_t keys,
                          int64_t step_keys, int64_t block) {
  const lt_kernel *kernel = a->kernel;
  const int64_t first = of->index * b->width, rows = kernel->rows;
  const lt_strip at = {in->batch, in->head, key, keys, of->query, of->queries, of->lanes};
  lt_strip_logits(a, b, in, of, &at);
  lt_strip_dweights(a, b, of, &at);
  lt_gradients to = {.weights = b->weights, .dlogits_rows = b->dlogits_rows, .dlogits = b->dlogits};
  if (kernel->multiply != NULL) {
    to.p = (float *)to.weights.words + first;
    to.ds = (float *)to.dlogits.words + (key - block) * b->stride + first;
    to.stride = b->stride;
    to.rows = step_keys;
  } else {
    to.weights.words += lt_words(kernel, first) * rows;
    to.dlogits_rows.words += lt_words(kernel, first) * rows;
    to.dlogits.words += of->index * (b->strip_rows / rows) * to.dlogits.size + lt_words(kernel, key - block) * rows;
  }
  const lt_lanes lanes = {b->lanes.shifts + first, b->lanes.biases + first, b->lanes.deltas + first};
  lt_backward_weights(a, &at, b->logits, b->dweights, a->drops ? b->kept : NULL, b->slopes, lanes, &to);
}

/* A step: at most STEP_KEYS keys by a chunk of queries. Accumulates dk and dv, and leaves the logits' gradients for
   dq. */
static void step(const lt_shape *a, const buffers *b, const place *in, int64_t key, int64_t keys, int64_t block,
                 int add_dk, int add_dv) {
  const lt_kernel *kernel = a->kernel;
  const int64_t rows = kernel->rows;
  const lt_range seeing = lt_strips_seeing(b, in, key, keys);
  if (seeing.begin == seeing.end && add_dk && add_dv) return;
  for (int64_t index = seeing.begin; index < seeing.end; index++) {
    const strip of = strip_of(b, in, index);
    const int64_t seen = lt_least(lt_window_end(a, of.query + of.queries - 1) - key, keys);
    if (seen > 0) strip_weights(a, b, in, &of, key, seen, keys, block);
  }
  const int64_t begin = lt_least(seeing.begin * b->width, in->queries), end = lt_least(seeing.end * b->width, in->queries);
  lt_left weights = lt_packed_left(b->weights), dlogits = lt_packed_left(b->dlogits_rows);
  if (kernel->multiply != NULL) {
    weights = lt_left_in_place(kernel, b->weights.words, b->stride, 1);
    dlogits = lt_left_in_place(kernel, b->dlogits.words + (key - block) * b->stride, b->stride, 1);
  }
  int64_t count;
  for (int64_t i = 0; i < keys; i += count) {
    count = lt_same_lanes(a, key + i, keys - i, in->query, in->queries);
    const int64_t unseen = lt_first_lane(a, key + i, in->query, in->queries);
    const int64_t first = lt_words(kernel, unseen > begin ? unseen : begin);
    const int64_t words = lt_words(kernel, end) > first ? lt_words(kernel, end) - first : 0;
    lt_multiply_rows(kernel, weights, b->dout_columns, first, words, count, a->s->value_dims,
                     b->dv.at + (key + i) * b->dv.stride, b->dv.stride, add_dv);
    lt_multiply_rows(kernel, dlogits, b->query_columns, first, words, count, a->s->dims,
                     b->dk.at + (key + i) * b->dk.stride, b->dk.stride, add_dk);
    weights.words += (count + rows - 1) / rows * weights.size;
    dlogits.words += (count + rows - 1) / rows * dlogits.size;
  }
}

/* dq of a chunk (+)= ds k over a block of keys, of which each tile of queries takes those that it may see. */
static void add_dq(const lt_shape *a, const buffers *b, const place *in, int64_t block, int64_t keys, int accumulate) {
  const lt_kernel *kernel = a->kernel;
  lt_panel_list columns = b->key_columns;
  columns.words += lt_words(kernel, block) * columns.width;
  for (int64_t index = 0; index < strips_of(b, in); index++) {
    const strip at = strip_of(b, in, index);
    const int64_t at_once = a->s->after == LT_ALL ? at.queries : kernel->rows;
    const int64_t steps_end = lt_round_up(in->seen[index].end, STEP_KEYS);
    const int64_t begin = in->seen[index].begin > block ? in->seen[index].begin - block : 0;
    for (int64_t i = 0; i < at.queries; i += at_once) {
      const int64_t count = lt_least(at_once, at.queries - i), last = at.query + i + count - 1;
      const int64_t row = index * b->strip_rows + i;
      const int64_t seen = lt_least(lt_least(lt_window_end(a, last), steps_end) - block, keys);
      if (seen <= begin && accumulate) continue;
      const int64_t first = lt_words(kernel, begin), words = seen <= begin ? 0 : lt_words(kernel, seen) - first;
      lt_left dlogits = lt_packed_left(b->dlogits);
      dlogits.words += row / kernel->rows * dlogits.size;
      if (kernel->multiply != NULL)
        dlogits = lt_left_in_place(kernel, b->dlogits.words + index * b->width + i, 1, b->stride);
      lt_multiply_rows(kernel, dlogits, columns, first, words, count, a->s->dims, b->dq.at + row * b->dq.stride,
                       b->dq.stride, accumulate);
    }
  }
}

/* Stores sums, unless they are where they belong. */
static void store_sums(lt_matrix to, sums from, int64_t rows, int64_t columns) {
  if (from.at != to.data) lt_store_rows(to, from.at, from.stride, NULL, rows, columns);
}

/* Zeroes the rows of keys that are not valid. */
static void clear_rows(const lt_shape *a, sums of, int64_t columns) {
  for (int64_t row = a->keys; row < a->s->keys; row++) memset(of.at + row * of.stride, 0, (size_t)columns * sizeof(float));
}

static void backward_chunk(const lt_shape *a, const buffers *b, const place *in, lt_heads dq, int add_dk, int add_dv,
                           lt_streams *next) {
  const lt_attention *s = a->s;
  const lt_range seen = in->queries == 0 ? (lt_range){0, 0} : (lt_range){in->seen[0].begin, in->seen[strips_of(b, in) - 1].end};
  /* Rows of keys that no query sees are written as zeros, unless they accumulate. */
  const int adds = add_dk && add_dv;
  const int64_t first = adds ? seen.begin / BLOCK_KEYS * BLOCK_KEYS : 0, end = adds ? seen.end : a->keys;
  int64_t block = first;
  do {
    const int64_t keys = lt_least(BLOCK_KEYS, end - block);
    for (int64_t key = block; key < block + keys; key += STEP_KEYS) {
      step(a, b, in, key, lt_least(STEP_KEYS, block + keys - key), block, add_dk, add_dv);
      lt_fetch_streams(next);
    }
    add_dq(a, b, in, block, keys, block > first);
  } while ((block += BLOCK_KEYS) < end);
  for (int64_t index = 0; index < strips_of(b, in); index++) {
    const strip at = strip_of(b, in, index);
    const sums from = {b->dq.at + index * b->strip_rows * b->dq.stride, b->dq.stride};
    store_sums(lt_head_rows(dq, in->batch, in->head, at.query), from, at.queries, s->dims);
  }
}

int64_t lt_attention_scratch_bytes(int p, const lt_attention *s, int backward) {
  const lt_shape a = lt_shape_of(p, s);
  buffers b;
  lt_scratch scratch = {NULL, 0};
  return backward ? lt_backward_buffers(&scratch, &a, &b) : lt_forward_scratch(&a);
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
  const int64_t steps = strips_of(b, &(place){.queries = s->queries}) * ((s->keys + STEP_KEYS - 1) / STEP_KEYS) / STRIPS;
  next.share = next.rows / (steps + 1) + 1;
  return next;
}

void lt_pack_head(const lt_shape *a, buffers *b, lt_matrix keys, lt_matrix values, int columns) {
  const lt_attention *s = a->s;
  const int others = a->keys != b->count;
  if (others || keys.data != b->keys) {
    b->key_rows = lt_keys_as_left(a, b->packed_keys, keys, s->dims);
    if (columns) lt_pack_list(a->kernel, b->key_columns, keys, 1, keys.rs, s->dims, s->dims, a->keys);
  }
  if (others || values.data != b->values) b->value_rows = lt_keys_as_left(a, b->packed_values, values, s->value_dims);
  b->keys = keys.data;
  b->values = values.data;
  b->count = a->keys;
}

/* The rows themselves as places of sums, where whole vectors of float32 fit them and each is written once: sums over
   several chunks stay in scratch memory, which is dense. */
static sums sums_in(const lt_shape *a, const buffers *b, sums scratch, lt_matrix rows, int64_t columns) {
  if (a->kernel->multiply == NULL || rows.type != LT_FLOAT32 || columns % a->kernel->lanes != 0) return scratch;
  return a->s->queries <= b->chunk ? (sums){(float *)rows.data, rows.rs} : scratch;
}

void lt_attention_backward(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out,
                           lt_heads dout, const float *lse, lt_heads dq, lt_heads dk, lt_heads dv, void *scratch,
                           int thread, int threads) {
  lt_shape a = lt_shape_of(p, s);
  const operands of = {q, k, v, out, dout, dq, dk, dv};
  buffers b = {.keys = NULL, .values = NULL};
  lt_scratch taken = {scratch, 0};
  lt_backward_buffers(&taken, &a, &b);
  const sums dq_scratch = b.dq, dk_scratch = b.dk, dv_scratch = b.dv;
  const int shared_k = dk.head == 0 && s->heads > 1, shared_v = dv.head == 0 && s->heads > 1;
  /* An item is a head, or all heads that share keys or values, whose gradients are sums over them. */
  const int64_t group = shared_k || shared_v ? s->heads : 1, items = s->batch * s->heads / group;
  const int64_t end = items * (thread + 1) / threads * group;
  for (int64_t i = items * thread / threads * group; i < end; i++) {
    place in = {.batch = i / s->heads, .head = i % s->heads};
    const int later = i % group > 0, last = i % group == group - 1;
    lt_turn_to(&a, in.batch);
    lt_pack_head(&a, &b, lt_head_rows(k, in.batch, in.head, 0), lt_head_rows(v, in.batch, in.head, 0), 1);
    const lt_matrix dq_rows = lt_head_rows(dq, in.batch, in.head, 0);
    const lt_matrix dk_rows = lt_head_rows(dk, in.batch, in.head, 0), dv_rows = lt_head_rows(dv, in.batch, in.head, 0);
    b.dq = sums_in(&a, &b, dq_scratch, dq_rows, s->dims);
    b.dk = sums_in(&a, &b, dk_scratch, dk_rows, s->dims);
    b.dv = sums_in(&a, &b, dv_scratch, dv_rows, s->value_dims);
    clear_rows(&a, b.dk, s->dims);
    clear_rows(&a, b.dv, s->value_dims);
    lt_streams next = {.count = 0};
    if (i + 1 < end) next = head_streams(&a, &b, &of, i + 1);
    do {
      in.queries = lt_least(b.chunk, s->queries - in.query);
      lt_find_seen(&a, &b, &in);
      lt_begin_chunk(&a, &b, &in, &of, lse);
      backward_chunk(&a, &b, &in, dq, in.query > 0 || (later && shared_k), in.query > 0 || (later && shared_v), &next);
    } while ((in.query += b.chunk) < s->queries);
    if (last || !shared_k) store_sums(dk_rows, b.dk, s->keys, s->dims);
    if (last || !shared_v) store_sums(dv_rows, b.dv, s->keys, s->value_dims);
  }
}
