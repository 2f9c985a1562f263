/* attentionMask.c: the gradients of attention by the mask that is added to its logits, tile by tile, and by its sinks: the
   weights of all pairs are never in memory. */
#include "attentionBackward.h"

/* Adds a strip's gradients of its logits. Rows of keys are added along memory, where the mask has keys. */
static void add_strip(const lt_shape *a, const buffers *b, const lt_strip *at, lt_mask_gradient to, int64_t head) {
  float *first = to.data + at->batch * to.batch + head * to.head + at->query * to.query + at->key * to.key;
  for (int64_t c = 0; c < at->queries; c++) {
    const int64_t keys = lt_lane_keys(a, at->key, at->keys, at->query, c);
    float *row = first + c * to.query;
    if (to.key == 0) {
      float sum = 0.0f;
      for (int64_t r = 0; r < keys; r++) sum += b->dweights[r * at->lanes + c];
      row[0] += sum;
    } else {
      for (int64_t r = 0; r < keys; r++) row[r * to.key] += b->dweights[r * at->lanes + c];
    }
  }
}

static void add_chunk(const lt_shape *a, const buffers *b, const place *in, lt_mask_gradient to) {
  const lt_range seen = {in->seen[0].begin, in->seen[strips_of(b, in) - 1].end};
  for (int64_t key = seen.begin; key < seen.end; key += STEP_KEYS) {
    const int64_t keys = lt_least(STEP_KEYS, seen.end - key);
    const lt_range seeing = lt_strips_seeing(b, in, key, keys);
    for (int64_t index = seeing.begin; index < seeing.end; index++) {
      const strip of = strip_of(b, in, index);
      const int64_t count = lt_least(lt_window_end(a, of.query + of.queries - 1) - key, keys), lane = index * b->width;
      if (count <= 0) continue;
      const lt_strip at = {in->batch, in->head, key, count, of.query, of.queries, of.lanes};
      lt_strip_logits(a, b, in, &of, &at);
      lt_strip_dweights(a, b, &of, &at);
      const lt_lanes lanes = {b->lanes.shifts + lane, b->lanes.biases + lane, b->lanes.deltas + lane};
      lt_logit_gradients(a, &at, b->logits, b->dweights, lanes);
      add_strip(a, b, &at, to, in->head);
    }
  }
}

void lt_attention_mask_gradient(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out,
                                lt_heads dout, const float *lse, lt_mask_gradient dmask, void *scratch, int thread,
                                int threads) {
  lt_shape a = lt_shape_of(p, s);
  const operands of = {.q = q, .k = k, .v = v, .out = out, .dout = dout};
  buffers b = {.keys = NULL, .values = NULL};
  lt_scratch taken = {scratch, 0};
  lt_backward_buffers(&taken, &a, &b);
  /* What threads divide: no two of them add to one element, and each element is added to in one order. */
  const int64_t batches = dmask.batch == 0 ? 1 : s->batch, heads = dmask.head == 0 ? 1 : s->heads, items = batches * heads;
  const int64_t chunks = s->queries == 0 ? 0 : (s->queries + b.chunk - 1) / b.chunk;
  const int by_queries = items < threads && dmask.query != 0;
  const int64_t all = by_queries ? chunks : items, from = all * thread / threads, end = all * (thread + 1) / threads;
  for (int64_t i = 0; i < s->batch * s->heads; i++) {
    place in = {.batch = i / s->heads, .head = i % s->heads};
    const int64_t item = (dmask.batch == 0 ? 0 : in.batch) * heads + (dmask.head == 0 ? 0 : in.head);
    if (from == end || (!by_queries && (item < from || item >= end))) continue;
    lt_turn_to(&a, in.batch);
    lt_pack_head(&a, &b, lt_head_rows(k, in.batch, in.head, 0), lt_head_rows(v, in.batch, in.head, 0), 0);
    for (int64_t chunk = by_queries ? from : 0; chunk < (by_queries ? end : chunks); chunk++) {
      in.query = chunk * b.chunk;
      in.queries = lt_least(b.chunk, s->queries - in.query);
      lt_find_seen(&a, &b, &in);
      lt_begin_chunk(&a, &b, &in, &of, lse);
      add_chunk(&a, &b, &in, dmask);
    }
  }
}

void lt_attention_sink_gradient(const lt_attention *s, lt_heads out, lt_heads dout, const float *lse, float *dsinks,
                                int64_t stride, int thread, int threads) {
  enum { ROWS = 64 };
  const int64_t end = s->heads * (thread + 1) / threads;
  float deltas[ROWS];
  for (int64_t head = s->heads * thread / threads; head < end; head++) {
    const float sink = s->sinks[head * s->sink_stride];
    double sum = 0.0;
    for (int64_t batch = 0; batch < s->batch; batch++) {
      const float *logs = lse + (batch * s->heads + head) * s->queries;
      for (int64_t query = 0; query < s->queries; query += ROWS) {
        const int64_t rows = lt_least(ROWS, s->queries - query);
        lt_row_products(lt_head_rows(out, batch, head, query), lt_head_rows(dout, batch, head, query), rows, s->value_dims,
                        deltas);
        for (int64_t r = 0; r < rows; r++)
          if (logs[query + r] != -LT_INFINITY) sum -= (double)(lt_expf(sink - logs[query + r]) * deltas[r]);
      }
    }
    dsinks[head * stride] = (float)sum;
  }
}
