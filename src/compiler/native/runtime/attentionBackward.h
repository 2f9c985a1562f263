/* attentionBackward.h: shapes and buffers of attention's backward pass. */
#ifndef LUTHIER_ATTENTION_BACKWARD_H
#define LUTHIER_ATTENTION_BACKWARD_H

#include "attention.h"

enum {
  STRIPS = 4,       /* strips of queries per chunk: the depth of the products for dk and dv */
  STEP_KEYS = LT_KEY_STEP, /* keys per step: their strips fit the first-level cache */
  BLOCK_KEYS = 384  /* keys per block: the depth of the product for dq; like STEP_KEYS, a multiple of all tile heights */
};

/* Rows of sums. */
typedef struct {
  float *at;
  int64_t stride;
} sums;

typedef struct {
  lt_left key_rows, value_rows;                      /* of a head: left operands */
  lt_panel_list packed_keys, packed_values;          /* their places where they are packed */
  lt_panel_list key_columns;                         /* of a head: right operand */
  lt_panel_list query_columns, dout_columns;         /* of a chunk: right operands of dk and dv */
  lt_panel_list weights, dlogits_rows, dlogits;      /* left operands of dv, dk (of a step) and dq (of a block) */
  uint32_t *query_rows, *dout_rows;                  /* of a chunk, strip after strip: right operands of p and dp */
  float *logits, *dweights, *slopes, *kept;          /* strips of a step; slopes with a cap, kept where weights are dropped */
  sums dq, dk, dv;                                   /* of a chunk; of all keys */
  lt_lanes lanes;                                    /* of a chunk */
  const void *keys, *values;                         /* the head's, as they lie in memory; NULL before the first */
  int64_t count;                                     /* of these keys */
  int64_t width, chunk, strip_rows;                  /* queries of a strip, of a chunk; rows of dq from strip to strip */
  int64_t stride; /* words from key to key of weights [keys of a step, queries of a chunk] and dlogits [keys of a block,
                     queries of a chunk] that aren't packed: no power of two */
} buffers;

typedef struct {
  lt_heads q, k, v, out, dout, dq, dk, dv;
} operands;

/* A chunk of queries of one head, and what keys each strip may see: of two strips, the later one begins and ends no
   earlier. */
typedef struct {
  int64_t batch, head, query, queries;
  lt_range seen[STRIPS];
} place;

/* A strip of a chunk: its index, first query, number of queries and lanes. */
typedef struct {
  int64_t index, query, queries, lanes;
} strip;

static inline strip strip_of(const buffers *b, const place *at, int64_t index) {
  const int64_t queries = lt_least(b->width, at->queries - index * b->width);
  return (strip){index, at->query + index * b->width, queries, lt_round_up(queries, LT_GROUP_LANES)};
}

static inline int64_t strips_of(const buffers *b, const place *at) { return (at->queries + b->width - 1) / b->width; }

/* A strip's rows as a right operand, at its position in the chunk's panels. */
static inline lt_panel_list strip_panels(const lt_shape *a, const buffers *b, uint32_t *words, const strip *at, int64_t k) {
  const int64_t width = lt_strip_panel(a->kernel, at->lanes), size = lt_words(a->kernel, k);
  return (lt_panel_list){words + at->index * b->width * size, width, width * size};
}

/* Sized for every kernel. @returns bytes */
int64_t lt_backward_buffers(lt_scratch *scratch, const lt_shape *a, buffers *b);

/* The keys that each strip of a chunk may see. */
void lt_find_seen(const lt_shape *a, const buffers *b, place *in);

/* The strips of a chunk that may see some of the keys: from begin to end. */
lt_range lt_strips_seeing(const buffers *b, const place *in, int64_t key, int64_t keys);

/* Packs a head's keys and values, unless the previous head had the same; `columns`: keys as a right operand, too. */
void lt_pack_head(const lt_shape *a, buffers *b, lt_matrix keys, lt_matrix values, int columns);

/* Gradients by the weights before some are dropped, in b->dweights. */
void lt_strip_dweights(const lt_shape *a, const buffers *b, const strip *of, const lt_strip *at);

/* The logits of a strip's keys and lanes, in b->logits. */
void lt_strip_logits(const lt_shape *a, const buffers *b, const place *in, const strip *of, const lt_strip *at);

/* Packs a chunk's queries and dout; computes each lane's shift, bias and delta. Idle lanes get weight 0. */
void lt_begin_chunk(const lt_shape *a, const buffers *b, const place *in, const operands *of, const float *lse);

#endif
