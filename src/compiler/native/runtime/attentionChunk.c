/* attentionChunk.c: what attention's backward pass needs of a chunk of queries: packed operands, and each lane's shift. */
#include "attentionBackward.h"

enum { LARGE = 256 }; /* above this |log of a sum of exponentials|, float32 is too coarse for the probabilities */

void lt_strip_logits(const lt_shape *a, const buffers *b, const place *in, const strip *of, const lt_strip *at) {
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
  const lt_range seen = in->seen[of->index];
  float maxima[LT_STRIP], totals[LT_STRIP] = {0};
  for (int c = 0; c < LT_STRIP; c++) maxima[c] = -FLT_MAX;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t key = seen.begin; key < seen.end; key += STEP_KEYS) {
      const lt_strip at = {in->batch, in->head, key, lt_least(STEP_KEYS, seen.end - key), of->query, of->queries, of->lanes};
      lt_strip_logits(a, b, in, of, &at);
      if (pass == 0)
        lt_raise_maxima(a, &at, b->logits, maxima);
      else
        lt_forward_weights(a, &at, b->logits, maxima, totals, NULL);
    }
  }
  for (int64_t c = 0; c < of->queries; c++) {
    if (totals[c] == 0.0f) continue;
    shifts[c] = maxima[c];
    biases[c] = -1.44269504f * lt_sink_log(totals[c], lt_sink(a, in->head, maxima[c] * a->scale));
  }
}

void lt_begin_chunk(const lt_shape *a, const buffers *b, const place *in, const operands *of, const float *lse) {
  const lt_attention *s = a->s;
  const lt_matrix queries = lt_head_rows(of->q, in->batch, in->head, in->query);
  const lt_matrix douts = lt_head_rows(of->dout, in->batch, in->head, in->query);
  const lt_matrix outs = lt_head_rows(of->out, in->batch, in->head, in->query);
  lt_pack_list(a->kernel, b->query_columns, queries, 1, queries.rs, s->dims, s->dims, in->queries);
  lt_pack_list(a->kernel, b->dout_columns, douts, 1, douts.rs, s->value_dims, s->value_dims, in->queries);
  const float unscale = 1.0f / a->scale;
  lse += (in->batch * s->heads + in->head) * s->queries + in->query;
  lt_row_products(outs, douts, in->queries, s->value_dims, b->lanes.deltas);
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
      const int seen = c < in->queries && lse[c] != -LT_INFINITY;
      b->lanes.shifts[c] = seen ? lse[c] * unscale : LT_INFINITY;
      b->lanes.biases[c] = 0.0f;
      b->lanes.deltas[c] = seen ? b->lanes.deltas[c] : 0.0f;
      large |= seen && lt_absf(lse[c]) > LARGE;
    }
    if (large) exact_lanes(a, b, in, &at, b->lanes.shifts + first, b->lanes.biases + first);
  }
}
