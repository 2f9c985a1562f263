/* attention.h: shapes, strips and loops of all attention passes. Strips of logits are transposed (a row per key, a
   lane per query): the softmax runs along vector lanes, and its result is the left operand of p v and, transposed,
   of p' dout. */
#ifndef LUTHIER_ATTENTION_H
#define LUTHIER_ATTENTION_H

#include <float.h>
#include <string.h>

#include "kernels.h"

enum {
  LT_STRIP = 32,       /* the most queries of a strip */
  LT_PANEL = 48,       /* the greatest width of panels */
  LT_GROUP_LANES = 16, /* lanes that the softmax's loops work on: a constant, which makes them one vector */
  LT_FEW = 4,          /* queries up to which attention is products of vectors by matrices (attentionFew.c) */
  LT_KEY_STEP = 48     /* keys that are skipped together: a multiple of all tile heights */
};

/* One thread's view of an attention call. */
typedef struct {
  const lt_attention *s;
  const lt_kernel *kernel;
  int p;
  int64_t keys;          /* those of the batch item that are valid */
  int64_t first, last;   /* its query t sees the keys from t + first to t + last, */
  int64_t prefix, reach; /* and of its first `prefix` keys those to t + reach, which is `last` or more */
  float scale;     /* applied to a strip's logits: 1 if lt_finish_logits has applied it already */
  int finish;      /* whether lt_finish_logits is needed: for a mask, a cap, or a scale that one can't divide by */
  int drops;       /* whether weights are dropped */
  uint32_t words[2], kept; /* of the key; how many of 2^24 uniform numbers are below keep */
  float weight;    /* factor of the weights that are kept */
} lt_shape;

static inline int64_t lt_round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
static inline int64_t lt_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Layout of a matrix of packed panels. */
typedef struct {
  uint32_t *words;
  int64_t width; /* of a panel, in vectors */
  int64_t size;  /* of a panel, in words */
} lt_panel_list;

/* A left operand in tiles of the kernel's rows, `size` words apart: element (i, w) of a tile is words[i * row + w * step].
   Kernels that take pairs need packed ones; others multiply keys and strips where they lie. */
typedef struct {
  const lt_word *words;
  int64_t row, step, size;
} lt_left;

/* The place behind all that the query may see, of any number of keys. */
static inline int64_t lt_sight(const lt_shape *a, int64_t query) {
  const int64_t own = query + a->last + 1, leading = lt_least(a->prefix, query + a->reach + 1);
  return own > leading ? own : leading;
}

/* The end of the keys in the query's window. */
static inline int64_t lt_window_end(const lt_shape *a, int64_t query) {
  const int64_t end = lt_sight(a, query);
  return end < 0 ? 0 : lt_least(end, a->keys);
}

/* The first query that may see a key; it may be negative. */
static inline int64_t lt_first_query(const lt_shape *a, int64_t key) {
  return key - (key < a->prefix ? a->reach : a->last);
}

/* Keys from begin to end. */
typedef struct {
  int64_t begin, end;
} lt_range;

/* The keys that some of `queries` queries from `query` on may see: those in a window, less steps of LT_KEY_STEP keys at
   either end that are of other segments. begin is a multiple of LT_KEY_STEP. */
lt_range lt_range_of(const lt_shape *a, int64_t batch, int64_t query, int64_t queries);

/* Lanes per strip: even, with as few idle ones as possible. */
static inline int64_t lt_strip_width(const lt_attention *s) {
  const int64_t strips = (s->queries + LT_STRIP - 1) / LT_STRIP;
  return strips == 0 ? LT_GROUP_LANES : lt_round_up((s->queries + strips - 1) / strips, LT_GROUP_LANES);
}

/* Width of the panels of a strip's lanes: the greatest that the lanes are a multiple of. */
static inline int64_t lt_strip_panel(const lt_kernel *kernel, int64_t lanes) {
  int64_t width = lt_least(lanes, kernel->columns);
  while (lanes % width != 0) width -= kernel->lanes;
  return width;
}

/* Turns to a batch item with `keys` keys and a prefix. */
static inline void lt_set_keys(lt_shape *a, int64_t keys, int64_t prefix) {
  const int64_t offset = keys - a->s->queries;
  a->keys = keys;
  a->first = offset - a->s->before;
  a->last = offset + a->s->after;
  a->prefix = prefix;
  a->reach = offset + a->s->prefix_after;
}

static inline void lt_turn_to(lt_shape *a, int64_t batch) {
  const lt_attention *s = a->s;
  const int64_t visible = s->visible == NULL ? s->keys : s->visible[batch * s->visible_batch];
  lt_set_keys(a, visible < 0 ? 0 : lt_least(visible, s->keys), s->prefix == NULL ? 0 : s->prefix[batch * s->prefix_batch]);
}

/* The shape of batch items of all keys. */
static inline lt_shape lt_shape_of(int p, const lt_attention *s) {
  const lt_kernel *kernel = lt_attention_kernel_of(p);
  const int finish = s->mask != NULL || s->logit_cap != 0.0f || !(s->scale > 1e-6f && s->scale < 1e6f);
  lt_shape a = {.s = s, .kernel = kernel, .p = p};
  lt_set_keys(&a, s->keys, 0);
  a.scale = finish ? 1.0f : s->scale;
  a.finish = finish;
  a.drops = s->keep != 0.0f && s->drop_key != NULL;
  a.weight = a.drops ? 1.0f / s->keep : 1.0f;
  if (!a.drops) return a;
  a.words[0] = (uint32_t)s->drop_key[0];
  a.words[1] = (uint32_t)s->drop_key[s->drop_stride];
  const float below = s->keep * 0x1p24f;
  a.kept = (uint32_t)below + (below > (float)(uint32_t)below);
  return a;
}

/* A head's sink, as its logit exceeds `maximum`; -infinity without one. */
static inline float lt_sink(const lt_shape *a, int64_t head, float maximum) {
  return a->s->sinks == NULL ? -LT_INFINITY : a->s->sinks[head * a->s->sink_stride] - maximum;
}

/* Beyond this a sink leaves nothing to the keys. */
#define LT_ALL_OF_IT 80.0f

/* `total`, the sum of exponentials above a maximum, with the sink's. */
static inline float lt_sink_total(float total, float sink) {
  return sink == -LT_INFINITY ? total : total + lt_expf(sink > LT_ALL_OF_IT ? LT_ALL_OF_IT : sink);
}

/* The total's logarithm, above the maximum; it does not overflow. */
static inline float lt_sink_log(float total, float sink) {
  return sink > LT_ALL_OF_IT ? sink : lt_logf(lt_sink_total(total, sink));
}

/* The same above 0: a sink that leaves nothing to the keys is all of it, however far below the maximum is. */
static inline float lt_log_sum(const lt_shape *a, int64_t head, float maximum, float total) {
  const float sink = lt_sink(a, head, maximum);
  return sink > LT_ALL_OF_IT ? a->s->sinks[head * a->s->sink_stride] : maximum + lt_sink_log(total, sink);
}

/* The position of a weight among all. */
static inline uint32_t lt_weight_position(const lt_shape *a, int64_t batch, int64_t head, int64_t query, int64_t key) {
  return (uint32_t)(((batch * a->s->heads + head) * a->s->queries + query) * a->s->drop_row + key);
}

static inline int lt_is_kept(const lt_shape *a, uint32_t position) {
  return (int32_t)(lt_random_word(position, a->words[0], a->words[1]) >> 8) < (int32_t)a->kept;
}

/* The first lane from `query` on whose group sees a tile of keys from `key` on; at most `lanes`. */
static inline int64_t lt_first_lane(const lt_shape *a, int64_t key, int64_t query, int64_t lanes) {
  const int64_t first = lt_first_query(a, key) - query;
  return first <= 0 ? 0 : lt_least(first & -LT_GROUP_LANES, lanes);
}

/* How many of `keys` keys from `key` on are in consecutive tiles with the same first lane. */
static inline int64_t lt_same_lanes(const lt_shape *a, int64_t key, int64_t keys, int64_t query, int64_t lanes) {
  const int64_t first = lt_first_lane(a, key, query, lanes);
  int64_t count = a->kernel->rows;
  while (count < keys && lt_first_lane(a, key + count, query, lanes) == first) count += a->kernel->rows;
  return lt_least(count, keys);
}

/* Conversely: how many of `keys` keys from `key` on a strip's lane computes. */
static inline int64_t lt_lane_keys(const lt_shape *a, int64_t key, int64_t keys, int64_t query, int64_t lane) {
  const int64_t seen = lt_sight(a, query + (lane & -LT_GROUP_LANES) + LT_GROUP_LANES - 1) - key;
  return seen <= 0 ? 0 : lt_least(lt_round_up(seen, a->kernel->rows), keys);
}

/* How many of them products may read of the lane's group: their tiles also hold rows and lanes of the next one. */
static inline int64_t lt_read_keys(const lt_shape *a, int64_t key, int64_t keys, int64_t query, int64_t lane) {
  return lt_lane_keys(a, key, keys, query + a->kernel->rows - 1, lane);
}

static inline int64_t lt_size_of(int32_t type) { return type == LT_INT8 ? 1 : type == LT_BFLOAT16 ? 2 : 4; }

/* The place in memory of one of the heads. */
static inline int64_t lt_held_head(lt_heads x, int64_t head) { return x.shared > 1 ? head / x.shared : head; }

/* The rows of one head, from row `first` on, as a matrix. */
static inline lt_matrix lt_head_rows(lt_heads x, int64_t batch, int64_t head, int64_t first) {
  const int64_t at = batch * x.batch + lt_held_head(x, head) * x.head + first * x.time;
  return (lt_matrix){(const char *)x.data + at * lt_size_of(x.type), x.type, x.time, 1};
}

/* The factors of these rows, scales_time apart; NULL where they are no integers. */
static inline const float *lt_head_scales(lt_heads x, int64_t batch, int64_t head, int64_t first) {
  if (x.scales == NULL) return NULL;
  return x.scales + batch * x.scales_batch + lt_held_head(x, head) * x.scales_head + first * x.scales_time;
}

/* Rows that the next item reads or writes. A head's rows are strided among those of all heads, further apart than
   hardware prefetchers follow, so a few at a time are prefetched while the current item is computed. */
enum { LT_STREAMS = 8 };

typedef struct {
  struct {
    const char *at;
    int64_t rows, stride, bytes; /* of a row: stride and length in bytes */
    int write;
  } of[LT_STREAMS];
  int count;
  int64_t row, rows, share; /* rows prefetched so far, their total, and how many per call */
} lt_streams;

/* Adds a head's rows, if the total fits the second-level cache. */
void lt_add_stream(lt_streams *streams, lt_matrix rows, int64_t count, int64_t columns, int write);

/* Prefetches another share. */
void lt_fetch_streams(lt_streams *streams);

/* The sum of sixteen lanes, by halving. */
static inline float lt_sum_lanes(const float *lanes) {
  float eight[8], four[4];
#pragma omp simd
  for (int c = 0; c < 8; c++) eight[c] = lanes[c] + lanes[c + 8];
#pragma omp simd
  for (int c = 0; c < 4; c++) four[c] = eight[c] + eight[c + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/* Scratch is a bump allocator; with a NULL base it only measures. */
typedef struct {
  char *base;
  int64_t used;
} lt_scratch;

static inline void *lt_take(lt_scratch *scratch, int64_t count) { /* count: 32-bit words */
  const int64_t at = scratch->used;
  scratch->used += lt_round_up(count * 4, 64);
  return scratch->base == NULL ? NULL : scratch->base + at;
}

/* Packs the vectors of a matrix (rows if across is rs, columns if across is cs), k elements each, with zeros from
   `vectors` to `room`. */
void lt_pack_list(const lt_kernel *kernel, lt_panel_list to, lt_matrix from, int64_t across, int64_t along,
                  int64_t vectors, int64_t room, int64_t k);

/* c[m, n] = a b (+ c) over `words` words, from word `first` on; c has room for whole tiles. */
void lt_multiply_rows(const lt_kernel *kernel, lt_left a, lt_panel_list b, int64_t first, int64_t words, int64_t m,
                      int64_t n, float *c, int64_t ldc, int accumulate);

static inline lt_left lt_packed_left(lt_panel_list list) {
  return (lt_left){list.words, 1, list.width, list.size};
}
static inline lt_left lt_left_in_place(const lt_kernel *kernel, const void *words, int64_t row, int64_t step) {
  return (lt_left){words, row, step, kernel->rows * row};
}

/* A head's keys or values as left operands, in place or packed. */
lt_left lt_keys_as_left(const lt_shape *a, lt_panel_list packed, lt_matrix rows, int64_t dims);

/* Products of a strip: to[r, lane] of the left operand's rows from `key` on, for all lanes that lt_first_lane does
   not skip. */
void lt_multiply_strip(const lt_shape *a, lt_left left, lt_panel_list strip, int64_t words, int64_t key,
                       int64_t keys, int64_t query, int64_t lanes, float *to);

/* Caps, scales and masks the logits of `keys` keys from `key` on by `lanes` lanes, of which `queries` are queries
   from `query` on; slopes, if not NULL, gets the logits' derivatives by the products. Only called if a->finish. */
void lt_finish_logits(const lt_shape *a, int64_t batch, int64_t head, int64_t key, int64_t keys, int64_t query,
                      int64_t queries, int64_t lanes, float *logits, float *slopes);

/* to[row] = sum(x[row, c] * y[row, c]) over the columns c. */
void lt_row_products(lt_matrix x, lt_matrix y, int64_t rows, int64_t columns, float *to);

/* to[row, c] = from[row * stride + c] * scales[row] (1 if scales is NULL), rounded if stored as bf16. */
void lt_store_rows(lt_matrix to, const float *from, int64_t stride, const float *scales, int64_t rows, int64_t columns);

/* ---- Softmax over strips (attentionSoftmax.c) ------------------------------------------------------------------ */
/* A strip is [keys from `key` on, lanes from `query` on]; each lane uses at most lt_lane_keys rows. */

typedef struct {
  int64_t batch, head, key, keys, query, queries, lanes; /* lanes: the queries, padded to whole groups */
} lt_strip;

/* Sets logits to -infinity that a window or segments hide. */
void lt_hide_logits(const lt_shape *a, const lt_strip *at, float *logits);

/* maxima[lane] = the maximum of itself and its logits, ignoring NaN. */
void lt_raise_maxima(const lt_shape *a, const lt_strip *at, const float *logits, float *maxima);

/* Adds exp(scale * (logit - maximum)) to totals. If weights is not NULL, keeps those that are not dropped as left operands
   whose rows are lanes: packed there, each panel as deep as its last query sees, or where the logits were if the kernel can multiply
   them in place. */
void lt_forward_weights(const lt_shape *a, const lt_strip *at, float *logits, const float *maxima, float *totals,
                        const lt_panel_list *weights);

/* kept: a->weight, or 0 for weights that are dropped; dweights are multiplied by it. */
void lt_drop_dweights(const lt_shape *a, const lt_strip *at, float *dweights, float *kept);

/* Per lane: probabilities are p = 2^(scale log2(e) (logit - shift) + bias), 0 for an infinite shift; delta is the
   sum of p times its gradient. */
typedef struct {
  float *shifts, *biases, *deltas;
} lt_lanes;

/* Where a strip's p and ds go: packed as left operands, p and ds with keys as rows and ds with lanes as rows; or as
   they are, `stride` words from key to key, if the kernel can multiply them so. */
typedef struct {
  lt_panel_list weights, dlogits_rows, dlogits;
  float *p, *ds;
  int64_t stride, rows; /* rows: of keys that products read; those beyond at->keys become zeros */
} lt_gradients;

/* Computes weights p kept, of probabilities p, and ds = p (dweights - delta) slope. kept NULL: 1 for all; slopes NULL:
   a->s->scale for all. */
void lt_backward_weights(const lt_shape *a, const lt_strip *at, float *logits, float *dweights, const float *kept,
                         const float *slopes, lt_lanes lanes, const lt_gradients *to);

/* dweights = p (dweights - delta), the gradients of the logits behind scale and cap, of the rows that a lane computes. */
void lt_logit_gradients(const lt_shape *a, const lt_strip *at, float *logits, float *dweights, lt_lanes lanes);

/* ---- The passes ------------------------------------------------------------------------------------------------ */

/* Scratch bytes per thread. */
int64_t lt_forward_scratch(const lt_shape *a);

/* Attention of few queries: requires a->s->queries <= LT_FEW. */
int64_t lt_few_scratch(const lt_attention *s);
void lt_few_forward(const lt_shape *a, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse, void *scratch,
                    int thread, int threads);

#endif
