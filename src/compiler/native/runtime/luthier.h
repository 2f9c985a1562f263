/* luthier.h: the runtime's interface for compiled programs: thread team, products, attention. */
#ifndef LUTHIER_H
#define LUTHIER_H

#include <pthread.h>
#include <stdint.h>

typedef uint16_t bf16; /* upper half of a float32 */

#include "vectormath.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types of stored matrices, and precisions of products. */
enum { LT_FLOAT32 = 0, LT_BFLOAT16 = 1, LT_INT8 = 2, LT_INT32 = 3 };

/* A matrix in memory: element (i, j) lies at data[i * rs + j * cs]; strides count elements. */
typedef struct {
  const void *data;
  int32_t type;
  int64_t rs, cs;
} lt_matrix;

/* ---- Team (team.c) ------------------------------------------------------------------------------------------- */

/* Runs fn(arg, thread, threads) on `threads` threads, the caller being thread 0, and returns when all are done.
   Concurrent callers wait for each other. Idle workers spin briefly, then sleep in the kernel. */
void lt_team_run(int threads, void (*fn)(void *arg, int thread, int threads), void *arg);

/* Starts the threads that runs of `threads` need; returns how many the system grants. lt_team_run starts missing
   threads, and runs with fewer if it must: fn must use its own `threads`. */
int lt_team_reserve(int threads);

/* Starts a thread without signals, with a stack for kernels; returns 0 where the system has none. */
int lt_start_thread(pthread_t *id, void *(*fn)(void *), void *arg);

/* Runs fn(arg, 0, 1) on the caller's thread, which may wait for other such runs. */
void lt_run_alone(void (*fn)(void *arg, int thread, int threads), void *arg);

/* Inside fn only: waits for all threads of the run. */
void lt_barrier(void);

/* Inside fn only: the tasks 0 to count - 1 of a list that all threads of the run go through, each task by one of them. A
   thread begins with its own share, which is contiguous and the same for lists of equal length; then it takes the tasks of
   threads that are behind. Results may not depend on who does a task. */
typedef struct {
  int64_t count;
  uint32_t list;
  int32_t thread, threads, from; /* the share that the next task is taken from */
} lt_tasks;
lt_tasks lt_list_tasks(int64_t count, int thread, int threads);
/* The next task, or -1 where all are taken, though others may not be done with theirs. */
int64_t lt_next_task(lt_tasks *tasks);
#define LT_TASKS(task, count, self, all)                                                              \
  for (lt_tasks tasks_ = lt_list_tasks(count, self, all); tasks_.threads > 0; tasks_.threads = 0) \
    for (int64_t task; (task = lt_next_task(&tasks_)) >= 0;)

/* ---- Products (gemm*.c) -------------------------------------------------------------------------------------- */
/* p is the precision: LT_FLOAT32, or one of the others, which round operands to nearest even when packing (bf16 operands
   are taken as they are) and sum their products in float32. They differ in the order of the sums:
   LT_BFLOAT16       as the machine's instruction for bf16 adds, if it has one; else as LT_ROUNDED
   LT_ROUNDED        one after another, as in LT_FLOAT32, by float32 instructions
   LT_ROUNDED_KEPT   the same sums, to the bit; packed right operands take half the memory. Not for lt_products and attention
   Packed operands are aligned to 64 bytes. */
enum { LT_ROUNDED = 2, LT_ROUNDED_KEPT = 3 };

/* Bytes of a packed right operand of k rows and n columns, and the number of its panels of columns. */
int64_t lt_packed_bytes(int p, int64_t k, int64_t n);
int64_t lt_panels(int p, int64_t n);

/* Packs the panels [first, last) of b, all of its rows, for any strides. */
void lt_pack_panels(int p, void *packed, lt_matrix b, int64_t k, int64_t n, int64_t first, int64_t last);

/* Packs the rows [k0, k1) of b into all panels, k0 a multiple of 16 and k1 too unless it is k: for contiguous rows
   (cs == 1), which are read in memory order. `b` is the whole matrix. */
void lt_pack_slab(int p, void *packed, lt_matrix b, int64_t k, int64_t n, int64_t k0, int64_t k1);

/* Bytes of scratch that lt_gemm needs for m rows. */
int64_t lt_gemm_scratch_bytes(int p, int64_t m, int64_t k);

/* The panels [first_panel, last_panel) of c[m, n] = alpha * a b (+ c if accumulate; float32 c only), with ldc
   elements between rows of c; single-threaded. c points at its first column, whichever panels are computed. With few
   rows (m <= 8), the packed operand is streamed from memory. c is written even if alpha == 0 or k == 0. If a.data is
   NULL, the left operand is that of the previous call with the same p (LT_ROUNDED and LT_ROUNDED_KEPT count as one), m (at most LT_BLOCK_ROWS), k and scratch. */
enum { LT_BLOCK_ROWS = 128 };
void lt_gemm(int p, int64_t m, int64_t n, int64_t k, lt_matrix a, const void *packed_b, int64_t first_panel,
             int64_t last_panel, void *c, int32_t c_type, int64_t ldc, float alpha, int accumulate, void *scratch);

/* A product that packs both operands, a slab of k at a time. If a.data (b.data) is NULL, another product of the list with the same
   operand fills packed_a (packed_b). Or, if `parts` is not 0, a product whose k is split in so many parts, which are
   independent and added in their order at the end: packed_a has room for their sums. */
typedef struct {
  int64_t m, n, k;
  lt_matrix a, b;
  void *c;
  int32_t c_type;
  int64_t ldc;
  float alpha;
  int32_t accumulate;
  void *packed_a, *packed_b;
  int64_t parts;
} lt_product;

/* Bytes of packed_a and packed_b. */
int64_t lt_slabs_left_bytes(int p, int32_t c_type, int64_t m, int64_t k);
int64_t lt_slabs_bytes(int p, int32_t c_type, int64_t k, int64_t n);

/* Bytes of packed_a of a product in parts, and of the scratch of each thread. */
int64_t lt_parts_bytes(int p, int64_t m, int64_t n, int64_t k, int64_t parts);
int64_t lt_parts_scratch_bytes(int p, int64_t m, int64_t n, int64_t k, int64_t parts);

/* Bytes of the scratch of each thread for a product without parts, which packs its part of the larger operand there. */
int64_t lt_products_scratch_bytes(int p, int32_t c_type, int64_t k);

/* Every thread of a team calls lt_products, and a barrier of its own before c is read or its operands' places are used
   again. c is none of the operands. Shapes alone determine how sums are split: every run gives the same bits. Scratch is
   per thread, aligned to 64 bytes; where no product has parts, it may be NULL: then both operands are packed for all. */
void lt_products(int p, const lt_product *products, int64_t count, void *scratch, int thread, int threads);

/* Groups of consecutive rows, by their sizes; the rows behind them are in none. */
typedef struct {
  int64_t count, rows;
  const int32_t *sizes;
} lt_groups;

/* The rows of x [rows, k] of each group times its matrix of w, [k, n] and `next` elements apart, to those of y; 0 where there is no
   group. And the gradient by the matrices: for each group the product of its rows of x [rows, m], transposed, and dy [rows, n],
   to dw [count, m, n]. Every thread of a team calls them, as lt_products; bits and barriers are its. The workspace is that of all
   threads. */
int64_t lt_group_rows_bytes(int p, int32_t y_type, int64_t groups, int64_t rows, int64_t k, int64_t n);
int64_t lt_group_sums_bytes(int p, int64_t groups, int64_t rows, int64_t m, int64_t n);
void lt_group_rows(int p, const lt_groups *g, lt_matrix x, lt_matrix w, int64_t next, int64_t k, int64_t n, lt_matrix y,
                   void *workspace, int thread, int threads);
void lt_group_sums(int p, const lt_groups *g, lt_matrix x, lt_matrix dy, int64_t m, int64_t n, float *dw, void *workspace,
                   int thread, int threads);

/* The selected microkernel: "avx512bf16", "avx512", "avx2", "neon" or "portable". */
const char *lt_gemm_kernel(int p);

/* All selected kernels, for display: a library without an optional one gives other bits. p is how bfloat16 is multiplied. */
const char *lt_kernels(int p);

/* Selects the named microkernel for both precisions (avx512bf16: float32 by avx512), "auto" for the best; returns 0,
   changing nothing, where this build or CPU lacks it. Invalidates packed operands. The environment variable
   LUTHIER_KERNEL does the same when the library is loaded. */
int lt_gemm_force(const char *name);

/* FLOP/s of the fastest of several products by packed operands in precision p, each of m rows by a team of threads, tried
   for about `seconds`; 0 if memory is short. */
double lt_product_rate(int p, int64_t m, int64_t n, int64_t k, int threads, double seconds);
/* Peak multiply-add rate on registers, in FLOP/s, over a team of threads, measured for about `seconds`. */
double lt_peak_flops(int p, int threads, double seconds);
/* Bytes per second that the team reads from uncached memory; 0 if memory is short. */
double lt_read_bandwidth(int threads, double seconds);

/* to[row * columns + column] = from[row + column * between], of elements of 1, 2, 4 or 8 bytes (transpose.c). */
void lt_transpose(void *to, const void *from, int64_t rows, int64_t columns, int64_t between, int bytes);

/* ---- Convolutions by 3x3 filters with stride 1 (winograd*.c) ------------------------------------------------------ */

/* An image in memory, strides in elements; channels are contiguous float32. */
typedef struct {
  void *data;
  int64_t batch, row, column;
} lt_image;

/* A filter [3, 3, channels, filters], strides in elements. */
typedef struct {
  const float *data;
  int64_t row, column, channel, filter;
} lt_filter;

/* The windows of y [batch, down, across, filters] over x [batch, height, width, channels]: window (i, j) begins at cell
   (i - above, j - before); cells outside of x are zeros. */
typedef struct {
  int64_t batch, height, width, channels, down, across, filters, above, before;
} lt_convolution;

/* With LT_BFLOAT16, x, filters and dy are rounded to bf16; all else is float32. Errors are relative to the largest
   sums in a tile of 4x4 results, two to ten times those of plain sums.

   The transformed filters, packed; every thread makes its share. Then, after a barrier, every thread its share of y.
   A tile with an infinity or a NaN is computed plainly. Scratch is per thread, aligned to 64 bytes. */
int64_t lt_winograd_filter_bytes(const lt_convolution *s);
int64_t lt_winograd_scratch_bytes(const lt_convolution *s);
void lt_winograd_filters(int p, const lt_convolution *s, lt_filter w, void *packed, void *scratch, int thread, int threads);
void lt_winograd(int p, const lt_convolution *s, lt_image x, lt_filter w, const void *packed, lt_image y, void *scratch,
                 int thread, int threads);

/* The gradient by the filters: every thread makes its share of the sums over parts of the tiles, in memory of all threads.
   Then, after a barrier, every thread adds its share of them to dw [3, 3, channels, filters]. The parts follow from the
   shapes: any number of threads gives the same bits. An infinity or a NaN is computed plainly. */
int64_t lt_winograd_sums_bytes(const lt_convolution *s);
int64_t lt_winograd_gradient_scratch_bytes(const lt_convolution *s);
void lt_winograd_sums(int p, const lt_convolution *s, lt_image x, lt_image dy, void *sums, void *scratch, int thread,
                      int threads);
void lt_winograd_gradient(int p, const lt_convolution *s, lt_image x, lt_image dy, const void *sums, float *dw, int thread,
                          int threads);

/* ---- Convolutions of each channel by a filter of its own (depthwise.c) ---------------------------------------------- */

/* Windows along an axis of `size` cells: tap t of window i is at cell i * stride + t * dilation - before; cells outside of
   the axis are left out. */
typedef struct {
  int64_t size, count, taps, stride, dilation, before;
} lt_windows;

typedef struct {
  int64_t batch, channels;
  lt_windows down, across;
} lt_depthwise;

/* y of x and the contiguous filter w [down.taps, across.taps, channels], and the gradient dx; every thread its share.
   Scratch is per thread, aligned to 64 bytes. */
int64_t lt_depthwise_scratch_bytes(const lt_depthwise *s);
void lt_depthwise_forward(const lt_depthwise *s, lt_image x, const float *w, lt_image y, void *scratch, int thread,
                          int threads);
void lt_depthwise_backward(const lt_depthwise *s, lt_image dy, const float *w, lt_image dx, void *scratch, int thread,
                           int threads);

/* The gradient by the filter: every thread makes its share of the sums over parts of the rows, in memory of all threads.
   Then, after a barrier, every thread adds its share of them to dw. Any number of threads gives the same bits. */
int64_t lt_depthwise_sums_bytes(const lt_depthwise *s);
void lt_depthwise_sums(const lt_depthwise *s, lt_image x, lt_image dy, float *sums, int thread, int threads);
void lt_depthwise_filter(const lt_depthwise *s, const float *sums, float *dw, int thread, int threads);

/* ---- Attention (attention.c) --------------------------------------------------------------------------------- */

/* Heads in memory, strides in elements; a head's own dimension is contiguous. head == 0: one head shared by all; `shared`
   (0: 1) consecutive heads are one in memory. Keys and values of the forward pass may be integers, LT_INT8 or LT_INT32, each
   row times a number of `scales`, which has strides of its own. */
typedef struct {
  void *data;
  int32_t type;
  int64_t batch, time, head, shared;
  const float *scales;
  int64_t scales_batch, scales_time, scales_head;
} lt_heads;

/* A bound of a window that hides nothing. */
#define LT_ALL ((int64_t)1 << 40)

/* Softmax attention. Query t is at key t + keys - queries, and sees the keys from `before` keys before to `after` keys
   after that one, of its segment where there are segments (NULL for none): int32 [batch, queries] and [batch, keys], each
   with a stride from batch to batch. Of the first prefix[b] keys (NULL: none) it sees those to `prefix_after` keys after its
   own. visible[b] (NULL: all) keys of a batch item are valid: it has no others, and as many rows. logit_cap 0: none, else the logits are logit_cap * tanh(logit / logit_cap). mask (may
   be NULL) is added to the logits; strides 0 broadcast. keep 0: all weights count; else they are divided by keep, and weight
   (b, h, t, j) counts if the uniform number at position ((b heads + h) queries + t) drop_row + j of the words drop_key[0]
   and drop_key[drop_stride] is below keep. sinks[h * sink_stride] (NULL: none) is a head's logit beside those of the keys: its
   weight is for no value. */
typedef struct {
  int64_t batch, heads, queries, keys, dims, value_dims;
  float scale, logit_cap;
  int64_t before, after;
  const float *mask;
  int64_t mask_batch, mask_head, mask_query, mask_key;
  const int32_t *query_segments, *key_segments;
  int64_t query_segments_batch, key_segments_batch;
  const int32_t *drop_key;
  int64_t drop_stride, drop_row;
  float keep;
  const int32_t *prefix, *visible;
  int64_t prefix_batch, visible_batch, prefix_after;
  const float *sinks;
  int64_t sink_stride;
  int64_t coded; /* whether keys and values are integers with scales */
} lt_attention;

/* Scratch bytes per thread, for these shapes or fewer keys. */
int64_t lt_attention_scratch_bytes(int p, const lt_attention *s, int backward);

/* lse: float32 [batch, heads, queries], the logarithm of the sum of exponentials, a sink's among them; NULL without gradients. NaN in
   gives NaN out; a query that sees no key gives 0 and has no gradient. Threads divide the items (batch, head), and
   in the forward pass their queries; any number of threads gives the same bits. In the gradient, heads with a shared
   dk or dv (head == 0) are one item, summed in order. Scratch is aligned to 64 bytes. */
void lt_attention_forward(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out, float *lse,
                          void *scratch, int thread, int threads);
void lt_attention_backward(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out,
                           lt_heads dout, const float *lse, lt_heads dq, lt_heads dk, lt_heads dv, void *scratch,
                           int thread, int threads);

/* The gradient by the mask, dmask[b batch + h head + t query + key key] of its strides (0: summed), which begins as zeros.
   Scratch is that of the gradient. Threads divide batch items, heads or queries, whichever the mask has: any number gives
   the same bits. */
typedef struct {
  float *data;
  int64_t batch, head, query, key;
} lt_mask_gradient;

void lt_attention_mask_gradient(int p, const lt_attention *s, lt_heads q, lt_heads k, lt_heads v, lt_heads out,
                                lt_heads dout, const float *lse, lt_mask_gradient dmask, void *scratch, int thread,
                                int threads);

/* The gradient by the sinks, dsinks[head * stride]. Threads divide the heads: any number gives the same bits. */
void lt_attention_sink_gradient(const lt_attention *s, lt_heads out, lt_heads dout, const float *lse, float *dsinks,
                                int64_t stride, int thread, int threads);

/* ---- Indexing (indexing.c) ----------------------------------------------------------------------------------- */

/* out[ids[r], c] += x[r, c] over rows r in order; ids outside [0, segments) are dropped. x is float32 or bf16, with
   contiguous columns. out is zeroed first unless accumulate. Threads divide the columns, or the segments where there are
   more of them than rows: any number gives the same bits. */
void lt_segment_sum(const void *x, int32_t type, int64_t rs, const int32_t *ids, int64_t ids_stride, int64_t rows,
                    int64_t columns, float *out, int64_t out_rs, int64_t segments, int accumulate, int thread,
                    int threads);

/* out is x [size, columns] with rows[i] as its row indices[i], in order, so that of equal indices the last counts; indices
   outside [0, size) are dropped. All are row-major. out may be x: only these rows are written. Threads divide the columns. */
void lt_update_rows(const float *x, const float *rows, const int32_t *indices, int64_t count, int64_t columns, float *out,
                    int64_t size, int thread, int threads);

/* Sums of the elements up to each (exclusive: before it), from the end if reverse. out may be x. Integers wrap. */
void lt_cumsum_f32(const float *x, int64_t stride, float *out, int64_t out_stride, int64_t n, int exclusive,
                   int reverse);
void lt_cumsum_i32(const int32_t *x, int64_t stride, int32_t *out, int64_t out_stride, int64_t n, int exclusive,
                   int reverse);

/* The k <= n largest elements in descending order, equal ones by ascending index; NaN ranks above all. indices and
   values may not overlap x. scratch: lt_top_k_scratch_bytes(k), aligned to 8. */
int64_t lt_top_k_scratch_bytes(int64_t k);
void lt_top_k_f32(const float *x, int64_t stride, int64_t n, int64_t k, float *values, int64_t values_stride,
                  int32_t *indices, int64_t indices_stride, void *scratch);
void lt_top_k_i32(const int32_t *x, int64_t stride, int64_t n, int64_t k, int32_t *values, int64_t values_stride,
                  int32_t *indices, int64_t indices_stride, void *scratch);

/* ---- Random numbers (draws.c) -------------------------------------------------------------------------------- */

/* An array and its distribution: N(0, scale^2), uniform in [-scale, scale), or the constant scale. */
enum { LT_NORMAL = 0, LT_UNIFORM = 1, LT_SAME = 2 };
typedef struct {
  float *out;
  int64_t count;
  double scale;
  uint32_t key[2];
  int64_t distribution;
} lt_draw;

/* Fills all arrays on a team of threads. A number depends on key, scale and index alone; src/compiler/draws.ts gives
   the same bits. */
void lt_fill(int threads, const lt_draw *draws, int64_t count);

/* Distributions inside programs (random.c). */
enum { LT_RANDOM_NORMAL = 0, LT_RANDOM_TRUNCATED = 1, LT_RANDOM_GUMBEL = 2 };

/* This thread's share of `count` numbers of the distribution, by the words key[0] and key[stride]. Any number of threads
   gives the same bits. */
void lt_random(int distribution, const int32_t *key, int64_t stride, float *out, int64_t count, int thread, int threads);

/* ---- Products by weights of few bits (quantized*.c) ----------------------------------------------------------- */

/* Weights [channels, depth] in 8 bits, or in 4, of which depth is a multiple of 32: of each 32, byte i has weight i in its lower
   bits and weight 16 + i in its upper ones, both plus 8. A weight is its code times the scale of its group, scales being
   [channels, groups]; groups are of equal size, and of a multiple of 32 where there are several. A code, or pair of codes, has
   `code_bytes` in memory, 1 or 4. With 8 row_bits, rows of x are rounded to codes from -127 to 127 as well, with a scale for each
   group that its largest element is 127 times of, and products are sums of integers; with 0, they are as they are. */
typedef struct {
  const void *codes, *scales;
  int32_t bits, scale_type, code_bytes, row_bits;
  int64_t depth, groups;
} lt_quantized;

/* c [rows, channels] = x [rows, depth] times the weights of the channels from `first` on, for a team of threads. x has
   contiguous rows. */
int64_t lt_quantized_scratch_bytes(const lt_quantized *w, int64_t rows);
void lt_quantized_product(const lt_quantized *w, int64_t first, int64_t channels, lt_matrix x, int64_t rows, float *c,
                          int64_t ldc, void *scratch, int thread, int threads);

#ifdef __cplusplus
}
#endif

#endif
