/* gemmParts.c: products whose sum over k is split in parts: each has a sum of its own, and one thread at a time. */
/* flags: -O3 */
#include "kernels.h"

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

enum {
  SLAB_WORDS = 1 << 17, /* of both operands, packed at a time: they stay in the second-level cache */
  LEAST_DEPTH = 128,    /* in words: of less, adding to the part's sum would cost more than its terms */
  MOST_DEPTH = 512,
  COLUMNS = 512 /* of a part's sum, added at a time */
};

/* Rows as tiles compute them: those of a partial tile are rounded up to a power of two. */
static int64_t tileRows(const lt_kernel *kernel, int64_t m) {
  const int64_t rest = m % kernel->rows;
  return m - rest + (rest > 4 ? kernel->rows : rest == 3 ? 4 : rest);
}

static int64_t tileColumns(const lt_kernel *kernel, int64_t n) { return ceilDivide(n, kernel->lanes) * kernel->lanes; }

/* A product, or its transpose where that is faster: b's columns become rows. Elements are the same bits. */
typedef struct {
  int64_t m, n, k;
  lt_matrix a, b;
  int64_t depth, slab; /* elements of k of a part, and of what is packed at once */
  int64_t ld;          /* of a part's sum */
  int transposed;
} partition;

static lt_matrix transposed(lt_matrix a) { return (lt_matrix){a.data, a.type, a.cs, a.rs}; }

static partition partitionOf(const lt_kernel *kernel, int64_t m, int64_t n, int64_t k, int64_t parts) {
  const int64_t plain = tileRows(kernel, m) * tileColumns(kernel, n), turned = tileRows(kernel, n) * tileColumns(kernel, m);
  /* Of equal ones, the one with more columns: panels of these are wider, and so packed faster. */
  const int swap = turned < plain || (turned == plain && n < m);
  /* Multiples of 16 begin at whole words. How a part is cut in slabs depends on shapes alone, too. */
  const int64_t depth = ceilDivide(ceilDivide(k, parts), 16) * 16;
  const int64_t words = least(MOST_DEPTH, SLAB_WORDS / (m + n) / 16 * 16);
  const int64_t slab = kernel->depth * (words < LEAST_DEPTH ? LEAST_DEPTH : words);
  return (partition){.m = swap ? n : m, .n = swap ? m : n, .k = k, .depth = depth, .slab = slab,
                     .ld = tileColumns(kernel, swap ? m : n), .transposed = swap};
}

static partition partitionFor(const lt_kernel *kernel, const lt_product *q) {
  partition s = partitionOf(kernel, q->m, q->n, q->k, q->parts);
  s.a = s.transposed ? transposed(q->b) : q->a;
  s.b = s.transposed ? transposed(q->a) : q->b;
  return s;
}

int64_t lt_parts_bytes(int p, int64_t m, int64_t n, int64_t k, int64_t parts) {
  const partition s = partitionOf(lt_kernel_of(p), m, n, k, parts);
  return parts * s.m * s.ld * 4;
}

static int64_t packedBytes(int p, const partition *s) { return lt_packed_bytes(p, least(s->slab, s->depth), s->n); }

int64_t lt_parts_scratch_bytes(int p, int64_t m, int64_t n, int64_t k, int64_t parts) {
  const partition s = partitionOf(lt_kernel_of(p), m, n, k, parts);
  return packedBytes(p, &s) + lt_gemm_scratch_bytes(p, s.m, least(s.slab, s.depth));
}

static void multiplyPart(int p, const lt_kernel *kernel, const lt_product *q, int64_t part, char *scratch) {
  const partition s = partitionFor(kernel, q);
  float *const sum = (float *)q->packed_a + part * s.m * s.ld;
  const int64_t begin = least(q->k, part * s.depth), end = least(q->k, begin + s.depth), panels = lt_panels(p, s.n);
  int64_t k0 = begin;
  do {
    const int64_t k = least(s.slab, end - k0);
    const lt_matrix a = {lt_element(s.a, 0, k0), s.a.type, s.a.rs, s.a.cs};
    const lt_matrix b = {lt_element(s.b, k0, 0), s.b.type, s.b.rs, s.b.cs};
    lt_pack_panels(p, scratch, b, k, s.n, 0, panels);
    lt_gemm(p, s.m, s.n, k, a, scratch, 0, panels, sum, LT_FLOAT32, s.ld, 1, k0 > begin, scratch + packedBytes(p, &s));
    k0 += k;
  } while (k0 < end);
}

static int64_t pieces(const partition *s) { return ceilDivide(s->n, COLUMNS); }

/* Adds the parts of up to COLUMNS neighbours, in order, and stores them in c. */
static void addPiece(const lt_kernel *kernel, const lt_product *q, int64_t piece) {
  const partition s = partitionFor(kernel, q);
  const int64_t i = piece / pieces(&s), j0 = piece % pieces(&s) * COLUMNS, count = least(COLUMNS, s.n - j0);
  const float *from = (const float *)q->packed_a + i * s.ld + j0;
  float sums[COLUMNS];
  for (int64_t j = 0; j < count; j++) sums[j] = from[j];
  for (int64_t part = 1; part < q->parts; part++) {
    from += s.m * s.ld;
    for (int64_t j = 0; j < count; j++) sums[j] += from[j];
  }
  for (int64_t j = 0; j < count; j++) {
    const int64_t at = s.transposed ? (j0 + j) * q->ldc + i : i * q->ldc + j0 + j;
    if (q->c_type == LT_BFLOAT16)
      ((bf16 *)q->c)[at] = lt_to_bf16(q->alpha * sums[j]);
    else
      ((float *)q->c)[at] = q->alpha * sums[j] + (q->accumulate ? ((float *)q->c)[at] : 0);
  }
}

void lt_multiply_parts(int p, const lt_product *products, int64_t count, char *scratch, int thread, int threads) {
  const lt_kernel *kernel = lt_kernel_of(p);
  for (const lt_product *q = products; q < products + count; q++) {
    if (!q->parts || q->m <= 0 || q->n <= 0) continue;
    LT_TASKS(part, q->parts, thread, threads) multiplyPart(p, kernel, q, part, scratch);
  }
}

void lt_add_parts(int p, const lt_product *products, int64_t count, int thread, int threads) {
  const lt_kernel *kernel = lt_kernel_of(p);
  for (const lt_product *q = products; q < products + count; q++) {
    if (!q->parts || q->m <= 0 || q->n <= 0) continue;
    const partition s = partitionFor(kernel, q);
    const int64_t all = s.m * pieces(&s);
    for (int64_t piece = all * thread / threads; piece < all * (thread + 1) / threads; piece++) addPiece(kernel, q, piece);
  }
}
