/* attention.h: shapes, strips and loops of all passes of attention. Strips of logits are transposed: a row a key, a lane a
   query, so that a softmax runs down the lanes of vectors, and its result is both the left operand of p v and, transposed,
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
  LT_FEW = 4           /* queries up to which attention is products of vectors by matrices (attentionFew.c) */
};

/* One call of attention, for one thread. */
typedef struct {
  const lt_attention *s;
  const lt_kernel *kernel;
  int p;
  int64_t offset;  /* the last key that query t sees is t + offset, where causal */
  int64_t grain;   /* lanes that are computed or left out together, where causality hides them: a power of two */
  float scale;     /* of the logits of a strip: 1 once lt_finish_logits has multiplied them */
  int finish;      /* whether it must: there is a mask, a cap, or a scale that one can't divide by */
} lt_shape;

static inline int64_t lt_round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
static inline int64_t lt_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* How a matrix of packed panels is laid out. */
typedef struct {
  uint32_t *words;
  int64_t width; /* of a panel, in vectors */
  int64_t size;  /* of a panel, in words */
} lt_panel_list;

/* Keys that the query sees: the first so many. */
static inline int64_t lt_visible(const lt_shape *a, int64_t query) {
  if (!a->s->causal) return a->s->keys;
  const int64_t count = query + a->offset + 1;
  return count < 0 ? 0 : count > a->s->keys ? a->s->keys : count;
}

/* Lanes of the strips: even, and as few of them idle as can be. */
static inline int64_t lt_strip_width(const lt_attention *s) {
  const int64_t strips = (s->queries + LT_STRIP - 1) / LT_STRIP;
  return strips == 0 ? LT_GROUP_LANES : lt_round_up((s->queries + strips - 1) / strips, LT_GROUP_LANES);
}

static inline lt_shape lt_shape_of(int p, const lt_attention *s) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int finish = s->mask != NULL || s->logit_cap != 0.0f || !(s->scale > 1e-6f && s->scale < 1e6f);
  /* A tile whose rows are lanes must not reach over two grains. */
  const int64_t grain = LT_GROUP_LANES % kernel->rows == 0 ? LT_GROUP_LANES : lt_strip_width(s);
  return (lt_shape){s, kernel, p, s->keys - s->queries, grain, finish ? 1.0f : s->scale, finish};
}

/* The first lane of those from `query` on whose grain sees a tile of keys from `key` on; at most `lanes`. */
static inline int64_t lt_first_lane(const lt_shape *a, int64_t key, int64_t query, int64_t lanes) {
  const int64_t first = key - query - a->offset;
  return !a->s->causal || first <= 0 ? 0 : lt_least(first & -a->grain, lanes);
}

/* The same the other way round: how many of `keys` keys from `key` on are computed for a strip's lane. */
static inline int64_t lt_lane_keys(const lt_shape *a, int64_t key, int64_t keys, int64_t query, int64_t lane) {
  if (!a->s->causal) return keys;
  const int64_t seen = query + (lane & -a->grain) + a->grain + a->offset - key;
  return seen <= 0 ? 0 : lt_least(lt_round_up(seen, a->kernel->rows), keys);
}

/* The rows of one head, from row `first` on, as a matrix. */
static inline lt_matrix lt_head_rows(lt_heads x, int64_t batch, int64_t head, int64_t first) {
  const int64_t at = batch * x.batch + head * x.head + first * x.time;
  return (lt_matrix){(const char *)x.data + at * (x.type == LT_BFLOAT16 ? 2 : 4), x.type, x.time, 1};
}

/* Rows that the next item reads or writes. They lie apart in memory, a head's among all heads', in strides that no
   prefetcher of a CPU follows: they are asked for a few at a time while this item is worked on. */
enum { LT_STREAMS = 8 };

typedef struct {
  struct {
    const char *at;
    int64_t rows, stride, bytes; /* of a row: stride and length in bytes */
    int write;
  } of[LT_STREAMS];
  int count;
  int64_t row, rows, share; /* rows asked for so far, of how many at most, and how many each time */
} lt_streams;

/* Adds a head's rows, if the whole is not too much for the second cache. */
void lt_add_stream(lt_streams *streams, lt_matrix rows, int64_t count, int64_t columns, int write);

/* Asks for another share. */
void lt_fetch_streams(lt_streams *streams);

/* The sum of sixteen, halves to halves. */
static inline float lt_sum_lanes(const float *lanes) {
  float eight[8], four[4];
#pragma omp simd
  for (int c = 0; c < 8; c++) eight[c] = lanes[c] + lanes[c + 8];
#pragma omp simd
  for (int c = 0; c < 4; c++) four[c] = eight[c] + eight[c + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/* Scratch is handed out from its start on; with a NULL base it is only measured. */
typedef struct {
  char *base;
  int64_t used;
} lt_scratch;

static inline void *lt_take(lt_scratch *scratch, int64_t count) { /* of 32-bit words */
  const int64_t at = scratch->used;
  scratch->used += lt_round_up(count * 4, 64);
  return scratch->base == NULL ? NULL : scratch->base + at;
}

/* Packs the vectors of a matrix (its rows where across is rs, its columns where across is cs), k elements each; zeros
   are packed from `vectors` to `room`. */
void lt_pack_list(const lt_kernel *kernel, lt_panel_list to, lt_matrix from, int64_t across, int64_t along,
                  int64_t vectors, int64_t room, int64_t k);

/* c[m, n] = a b (+ c) over `words` words of both operands' panels from word `first` on; c has room for whole tiles. */
void lt_multiply_lists(const lt_kernel *kernel, lt_panel_list a, lt_panel_list b, int64_t first, int64_t words, int64_t m,
                       int64_t n, float *c, int64_t ldc, int accumulate);

/* A strip's products: to[r, lane] of the left operand's rows from `key` on and the lanes, without those that
   lt_first_lane leaves out. */
void lt_multiply_strip(const lt_shape *a, lt_panel_list left, lt_panel_list strip, int64_t words, int64_t key,
                       int64_t keys, int64_t query, int64_t lanes, float *to);

/* Caps, scales and masks the logits of `keys` keys from `key` on by `lanes` lanes, `queries` of which are queries, from
   `query` on; slopes, where not NULL, gets the derivatives by the products. Only where a->finish. */
void lt_finish_logits(const lt_shape *a, int64_t batch, int64_t head, int64_t key, int64_t keys, int64_t query,
                      int64_t queries, int64_t lanes, float *logits, float *slopes);

/* sum(x[row, c] * y[row, c]) over the columns. */
float lt_row_product(lt_matrix x, lt_matrix y, int64_t row, int64_t columns);

/* to[row, c] = from[row * stride + c] * scales[row] (scales NULL: 1), rounded where stored as bf16. */
void lt_store_rows(lt_matrix to, const float *from, int64_t stride, const float *scales, int64_t rows, int64_t columns);

/* ---- Softmax over strips (attentionSoftmax.c) ------------------------------------------------------------------ */
/* A strip is [keys from `key` on, lanes from `query` on]; lane by lane no more than lt_lane_keys rows count. */

typedef struct {
  int64_t key, keys, query, queries, lanes; /* lanes: queries and as many idle ones as make groups full */
} lt_strip;

/* Sets what causality hides to -infinity. */
void lt_hide_logits(const lt_shape *a, const lt_strip *at, float *logits);

/* maxima[lane] = the greatest of it and its logits; NaN is passed over. */
void lt_raise_maxima(const lt_shape *a, const lt_strip *at, const float *logits, float *maxima);

/* Adds exp(scale * (logit - maximum)) to totals. Where weights is not NULL, they are packed there as left operand: the
   panels' rows are lanes, and each panel is as deep as the last of its queries sees. */
void lt_forward_weights(const lt_shape *a, const lt_strip *at, float *logits, const float *maxima, float *totals,
                        const lt_panel_list *weights);

/* What a lane's probabilities are: p = 2^(scale log2(e) (logit - shift) + bias), 0 with an infinite shift; and its
   delta, the sum over p of p's gradients. */
typedef struct {
  float *shifts, *biases, *deltas;
} lt_lanes;

/* Probabilities p and their gradients become ds = p (dweights - delta) slope, packed as left operands: p and ds with
   keys as rows, from `first` words on, and ds with lanes as rows. slopes NULL: a->s->scale for all. */
void lt_backward_weights(const lt_shape *a, const lt_strip *at, float *logits, float *dweights, const float *slopes,
                         lt_lanes lanes, lt_panel_list weights, lt_panel_list dlogits_rows, lt_panel_list dlogits);

/* ---- The passes ------------------------------------------------------------------------------------------------ */

/* Bytes of a thread's scratch. */
int64_t lt_forward_scratch(const lt_shape *a);

/* Attention of few queries; a->s->queries <= LT_FEW. */
int64_t lt_few_scratch(const lt_attention *s);
void lt_few_forward(const lt_shape *a, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse, void *scratch,
                    int thread, int threads);

#endif
