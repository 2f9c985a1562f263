/* packSteps.c: packing of right operands, each thread its share: rows, if these are contiguous, else columns. */
#include "program.h"

/* Bytes that are packed between two times that memory is given back. */
enum { AT_ONCE = 1 << 22, SLAB = 16 };

/* Rows or columns of an operand in memory. */
typedef struct {
  const char *data;
  int64_t bytes, step; /* of one, and to the next one */
} lines;

static lines linesOf(const lt_matrix *b, int64_t length, int64_t stride, int64_t step) {
  const int64_t size = b->type == LT_BFLOAT16 ? 2 : 4;
  return (lines){b->data, ((length - 1) * stride + 1) * size, step * size};
}

/* How many of `groups`, of so many lines each, to pack at once. */
static int64_t atOnce(int isKept, const lines *of, int64_t group, int64_t groups) {
  return isKept ? lt_larger(1, AT_ONCE / lt_larger(1, of->step * group)) : lt_larger(1, groups);
}

static void giveBack(const lines *of, int64_t first, int64_t last) {
  if (first < last) lt_give_back(of->data + first * of->step, (last - 1 - first) * of->step + of->bytes);
}

static inline void pack(int p, void *packed, lt_matrix b, int64_t k, int64_t n, const lt_frame *frame, int isKept) {
  if (b.cs == 1) {
    const lines rows = linesOf(&b, n, 1, b.rs);
    const int64_t slabs = (k + SLAB - 1) / SLAB, end = LT_TO(slabs), most = atOnce(isKept, &rows, SLAB, slabs);
    for (int64_t i = LT_FROM(slabs); i < end; i += most) {
      const int64_t k0 = i * SLAB, k1 = lt_smaller(k, lt_smaller(i + most, end) * SLAB);
      lt_pack_slab(p, packed, b, k, n, k0, k1);
      if (isKept) giveBack(&rows, k0, k1);
    }
  } else {
    const lines columns = linesOf(&b, k, b.rs, b.cs);
    const int64_t panels = lt_panels(p, n), width = panels == 0 ? 1 : (n + panels - 1) / panels, end = LT_TO(panels);
    const int64_t most = atOnce(isKept, &columns, width, panels);
    for (int64_t i = LT_FROM(panels); i < end; i += most) {
      const int64_t last = lt_smaller(i + most, end);
      lt_pack_panels(p, packed, b, k, n, i, last);
      if (isKept) giveBack(&columns, i * n / panels, last * n / panels);
    }
  }
}

void lt_pack_share(int p, void *packed, lt_matrix b, int64_t k, int64_t n, const lt_frame *frame) {
  pack(p, packed, b, k, n, frame, 0);
}

void lt_pack_kept(int p, void *packed, lt_matrix b, int64_t k, int64_t n, const lt_frame *frame) {
  pack(p, packed, b, k, n, frame, 1);
}
