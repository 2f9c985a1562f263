/* gemmGroups.c: products of groups of rows, whose sizes are known at run time alone. */
/* flags: -O2 */
#include <string.h>

#include "kernels.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t sizeOf(int32_t type) { return type == LT_BFLOAT16 ? 2 : 4; }
static void *elementOf(lt_matrix c, int64_t i) { return (char *)c.data + i * c.rs * sizeOf(c.type); }

/* The end of a group that begins at a row: no group has a negative size, or reaches beyond the rows. */
static int64_t endOf(const lt_groups *g, int64_t group, int64_t begin) {
  const int64_t size = g->sizes[group];
  return size < 0 ? begin : least(g->rows, begin + size);
}

/* Each group's operands are padded to whole panels, and to two words more where a depth is halved into slabs. */
enum { PADDING = 8 };

int64_t lt_group_rows_bytes(int p, int32_t type, int64_t groups, int64_t rows, int64_t k, int64_t n) {
  const int64_t panels = rows + groups * lt_kernel_of(p)->rows;
  return lt_slabs_left_bytes(p, type, panels, k) + groups * (lt_slabs_bytes(p, type, k, n) + 128);
}

int64_t lt_group_sums_bytes(int p, int64_t groups, int64_t rows, int64_t m, int64_t n) {
  const int64_t depth = rows + groups * PADDING;
  return lt_packed_left_bytes(p, m, depth) + lt_packed_bytes(p, depth, n) + groups * 256;
}

static void *take(char **free, int64_t bytes) {
  void *const taken = *free;
  *free += (bytes + 63) / 64 * 64;
  return taken;
}

void lt_group_rows(int p, const lt_groups *g, lt_matrix x, lt_matrix w, int64_t next, int64_t k, int64_t n, lt_matrix y,
                   void *workspace, int thread, int threads) {
  lt_product products[g->count];
  char *free = workspace;
  int64_t begin = 0, used = 0;
  for (int64_t e = 0; e < g->count; e++) {
    const int64_t end = endOf(g, e, begin), m = end - begin;
    if (m > 0)
      products[used++] = (lt_product){
          .m = m, .n = n, .k = k,
          .a = {lt_element(x, begin, 0), x.type, x.rs, x.cs},
          .b = {(const char *)w.data + e * next * sizeOf(w.type), w.type, w.rs, w.cs},
          .c = elementOf(y, begin), .c_type = y.type, .ldc = y.rs, .alpha = 1,
          .packed_a = take(&free, lt_slabs_left_bytes(p, y.type, m, k)),
          .packed_b = take(&free, lt_slabs_bytes(p, y.type, k, n))};
    begin = end;
  }
  const int64_t rest = g->rows - begin;
  for (int64_t i = begin + rest * thread / threads; i < begin + rest * (thread + 1) / threads; i++)
    memset(elementOf(y, i), 0, (size_t)(n * sizeOf(y.type)));
  lt_products(p, products, used, NULL, thread, threads);
}

void lt_group_sums(int p, const lt_groups *g, lt_matrix x, lt_matrix dy, int64_t m, int64_t n, float *dw, void *workspace,
                   int thread, int threads) {
  lt_product products[g->count];
  char *free = workspace;
  int64_t begin = 0;
  for (int64_t e = 0; e < g->count; e++) {
    const int64_t end = endOf(g, e, begin), k = end - begin;
    products[e] = (lt_product){
        .m = m, .n = n, .k = k,
        .a = {lt_element(x, begin, 0), x.type, x.cs, x.rs},
        .b = {lt_element(dy, begin, 0), dy.type, dy.rs, dy.cs},
        .c = dw + e * m * n, .c_type = LT_FLOAT32, .ldc = n, .alpha = 1,
        .packed_a = take(&free, lt_slabs_left_bytes(p, LT_FLOAT32, m, k)),
        .packed_b = take(&free, lt_slabs_bytes(p, LT_FLOAT32, k, n))};
    begin = end;
  }
  lt_products(p, products, g->count, NULL, thread, threads);
}
