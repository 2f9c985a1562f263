/* indexing.c: segment sums (the gradient of a gather), replaced rows, cumulative sums, and the k largest elements of a row. */
#include <string.h>

#include "luthier.h"

/* Columns per unit of work: a cache line of float32, so that no two threads write to the same line. */
enum { COLUMN_GROUP = 16 };

/* The first column of a thread's share, and the end of it. */
static int64_t share_of_columns(int64_t columns, int thread, int threads, int64_t *first) {
  int64_t groups = (columns + COLUMN_GROUP - 1) / COLUMN_GROUP;
  int64_t last = groups * (thread + 1) / threads * COLUMN_GROUP;
  *first = groups * thread / threads * COLUMN_GROUP;
  if (last > columns) last = columns;
  return last;
}

static void add_row_f32(float *restrict out, const float *restrict x, int64_t columns) {
#pragma omp simd
  for (int64_t c = 0; c < columns; c++) out[c] += x[c];
}

static void add_row_bf16(float *restrict out, const bf16 *restrict x, int64_t columns) {
#pragma omp simd
  for (int64_t c = 0; c < columns; c++) out[c] += lt_from_bf16(x[c]);
}

void lt_segment_sum(const void *x, int32_t type, int64_t rs, const int32_t *ids, int64_t ids_stride, int64_t rows,
                    int64_t columns, float *out, int64_t out_rs, int64_t segments, int accumulate, int thread,
                    int threads) {
  /* Each thread processes all rows in order for its own part of out, so that summation order does not depend on the
     number of threads: columns, or, where zeros are most of what is written, segments, which are longer runs. */
  int64_t first = 0, last = columns, from = 0, to = segments;
  if (segments > rows) {
    from = segments * thread / threads;
    to = segments * (thread + 1) / threads;
  } else {
    last = share_of_columns(columns, thread, threads, &first);
  }
  if (first >= last || from >= to) return;
  if (!accumulate && last - first == out_rs)
    memset(out + from * out_rs, 0, (size_t)((to - from) * out_rs) * sizeof(float));
  else if (!accumulate)
    for (int64_t s = from; s < to; s++) memset(out + s * out_rs + first, 0, (size_t)(last - first) * sizeof(float));
  for (int64_t r = 0; r < rows; r++) {
    int64_t id = ids[r * ids_stride];
    if (id < from || id >= to) continue;
    float *sums = out + id * out_rs + first;
    if (type == LT_BFLOAT16)
      add_row_bf16(sums, (const bf16 *)x + r * rs + first, last - first);
    else
      add_row_f32(sums, (const float *)x + r * rs + first, last - first);
  }
}

void lt_update_rows(const float *x, const float *rows, const int32_t *indices, int64_t count, int64_t columns, float *out,
                    int64_t size, int thread, int threads) {
  int64_t first, last = share_of_columns(columns, thread, threads, &first);
  if (first >= last) return;
  size_t bytes = (size_t)(last - first) * sizeof(float);
  if (out != x)
    for (int64_t r = 0; r < size; r++) memcpy(out + r * columns + first, x + r * columns + first, bytes);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = indices[i];
    if (at < 0 || at >= size) continue;
    memcpy(out + at * columns + first, rows + i * columns + first, bytes);
  }
}

/* Each input is read before its output is written: out may be x. */
void lt_cumsum_f32(const float *x, int64_t stride, float *out, int64_t out_stride, int64_t n, int exclusive,
                   int reverse) {
  float sum = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = reverse ? n - 1 - i : i;
    float before = sum;
    sum += x[at * stride];
    out[at * out_stride] = exclusive ? before : sum;
  }
}

void lt_cumsum_i32(const int32_t *x, int64_t stride, int32_t *out, int64_t out_stride, int64_t n, int exclusive,
                   int reverse) {
  uint32_t sum = 0; /* unsigned: wraps around, while signed overflow is undefined */
  for (int64_t i = 0; i < n; i++) {
    int64_t at = reverse ? n - 1 - i : i;
    uint32_t before = sum;
    sum += (uint32_t)x[at * stride];
    out[at * out_stride] = (int32_t)(exclusive ? before : sum);
  }
}

/* ---- The k largest ------------------------------------------------------------------------------------------- */
/* An element and its index form one integer: the value's order in the upper half, the complement of the index in the
   lower, so that of equal values the lower index ranks higher. Such integers are never equal. */

static uint64_t ranked(uint32_t order, int64_t index) { return (uint64_t)order << 32 | (uint32_t)~(uint32_t)index; }

static int64_t index_of(uint64_t rank) { return (int64_t)(uint32_t)~(uint32_t)rank; }

/* Order-preserving map from floats to unsigned integers; -0 equals 0, and NaN ranks above infinity, so that it
   shows. */
static uint32_t order_f32(float value) {
  uint32_t bits;
  if (value != value) return UINT32_MAX;
  value += 0.0f; /* -0 + 0 = 0 */
  memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static uint32_t order_i32(int32_t value) { return (uint32_t)value ^ 0x80000000u; }

/* Replaces the heap's least element, the root, and restores the heap. */
static void replace_least(uint64_t *heap, int64_t count, uint64_t rank) {
  int64_t at = 0;
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= rank) break;
    heap[at] = heap[child];
  }
  heap[at] = rank;
}

static void add_to_heap(uint64_t *heap, int64_t count, uint64_t rank) {
  int64_t at = count;
  for (int64_t parent; at > 0 && heap[parent = (at - 1) / 2] > rank; at = parent) heap[at] = heap[parent];
  heap[at] = rank;
}

static void offer(uint64_t *heap, int64_t index, int64_t k, uint64_t rank) {
  if (index < k)
    add_to_heap(heap, index, rank);
  else if (rank > heap[0])
    replace_least(heap, k, rank);
}

/* Sorts a min-heap in descending order. */
static void sort_heap(uint64_t *heap, int64_t count) {
  for (int64_t last = count - 1; last > 0; last--) {
    uint64_t least = heap[0];
    replace_least(heap, last, heap[last]);
    heap[last] = least;
  }
}

int64_t lt_top_k_scratch_bytes(int64_t k) { return k * (int64_t)sizeof(uint64_t); }

void lt_top_k_f32(const float *x, int64_t stride, int64_t n, int64_t k, float *values, int64_t values_stride,
                  int32_t *indices, int64_t indices_stride, void *scratch) {
  uint64_t *heap = scratch;
  if (k <= 0) return;
  for (int64_t i = 0; i < n; i++) offer(heap, i, k, ranked(order_f32(x[i * stride]), i));
  sort_heap(heap, k);
  for (int64_t i = 0; i < k; i++) {
    int64_t index = index_of(heap[i]);
    values[i * values_stride] = x[index * stride];
    indices[i * indices_stride] = (int32_t)index;
  }
}

void lt_top_k_i32(const int32_t *x, int64_t stride, int64_t n, int64_t k, int32_t *values, int64_t values_stride,
                  int32_t *indices, int64_t indices_stride, void *scratch) {
  uint64_t *heap = scratch;
  if (k <= 0) return;
  for (int64_t i = 0; i < n; i++) offer(heap, i, k, ranked(order_i32(x[i * stride]), i));
  sort_heap(heap, k);
  for (int64_t i = 0; i < k; i++) {
    int64_t index = index_of(heap[i]);
    values[i * values_stride] = x[index * stride];
    indices[i * indices_stride] = (int32_t)index;
  }
}
