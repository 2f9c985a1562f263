/* gemmProducts.c: products of the native runtime against plain loops in doubles; run by kernels.test.ts and kernels.long.ts,
   which read the output: one line a group of cases, "ok" or what was wrong first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"
#include "share.h"

static uint32_t state = 12345;
static uint32_t drawn(void) { return lt_mix(state++); }
static int64_t upTo(int64_t n) { return 1 + drawn() % n; }
static float real(void) { return (float)(int32_t)drawn() * 0x1p-31f; }

/* A matrix of random numbers in memory of exactly its size, so that the sanitizer sees what reads beyond it. */
typedef struct {
  lt_matrix view;
  void *memory;
} stored;

enum { ROWS, COLUMNS, ROWS_APART, COLUMNS_APART, SCATTERED, LAYOUTS };

static stored matrix(int64_t rows, int64_t columns, int type, int layout) {
  stored s = {{NULL, type, 0, 0}, NULL};
  const int64_t gap = 1 + drawn() % 5;
  s.view.rs = layout == ROWS ? columns : layout == ROWS_APART ? columns + gap : layout == SCATTERED ? 2 * columns + gap : 1;
  s.view.cs = layout == COLUMNS ? rows : layout == COLUMNS_APART ? rows + gap : layout == SCATTERED ? 2 : 1;
  const int64_t size = (rows - 1) * s.view.rs + (columns - 1) * s.view.cs + 1, bytes = type == LT_BFLOAT16 ? 2 : 4;
  s.memory = malloc((size_t)(size * bytes));
  for (int64_t i = 0; i < size; i++) {
    if (type == LT_BFLOAT16)
      ((bf16 *)s.memory)[i] = lt_to_bf16(real());
    else
      ((float *)s.memory)[i] = real();
  }
  s.view.data = s.memory;
  return s;
}

static float at(lt_matrix a, int64_t i, int64_t j) {
  const int64_t place = i * a.rs + j * a.cs;
  return a.type == LT_BFLOAT16 ? lt_from_bf16(((const bf16 *)a.data)[place]) : ((const float *)a.data)[place];
}

static double operandOf(int p, lt_matrix a, int64_t i, int64_t j) {
  const float x = at(a, i, j);
  return p != LT_FLOAT32 ? lt_from_bf16(lt_to_bf16(x)) : x;
}

static int failures;
static char first[400];

/* Whether got, one element of c, is what the loop gives: not further off than float32 sums of k terms may be. */
static void compare(const char *what, double got, double expected, double bound, int64_t m, int64_t n, int64_t k) {
  const int same = isnan(expected) ? isnan(got) : isinf(expected) ? got == expected : fabs(got - expected) <= bound;
  if (!same && !failures++)
    snprintf(first, sizeof first, "%s m=%d n=%d k=%d: %.9g instead of %.9g", what, (int)m, (int)n, (int)k, got, expected);
}

static void report(const char *kernel, const char *group) {
  if (failures)
    printf("%s %s: %d wrong, first %s\n", kernel, group, failures, first);
  else
    printf("%s %s: ok\n", kernel, group);
  failures = 0;
}

/* All operands of a matrix, row by row. */
static double *operandsOf(int p, lt_matrix a, int64_t rows, int64_t columns) {
  double *const values = malloc((size_t)(rows * columns) * sizeof *values);
  for (int64_t i = 0; i < rows * columns; i++) values[i] = operandOf(p, a, i / columns, i % columns);
  return values;
}

static void check(const char *what, int p, lt_matrix a, lt_matrix b, lt_matrix c, const float *before, int64_t m, int64_t n,
                  int64_t k, float alpha, int accumulate) {
  double *const left = operandsOf(p, a, m, k);
  double *const right = operandsOf(p, (lt_matrix){b.data, b.type, b.cs, b.rs}, n, k);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, size = 0;
#pragma omp simd reduction(+ : sum, size)
      for (int64_t d = 0; d < k; d++) {
        const double term = left[i * k + d] * right[j * k + d];
        sum += term;
        size += fabs(term);
      }
      const double old = accumulate ? before[i * n + j] : 0, expected = alpha * sum + old;
      double bound = (fabs(alpha) * size + fabs(old)) * ((double)k * 6e-8 + 3e-7) + 1e-30;
      if (c.type == LT_BFLOAT16) bound += fabs(expected) * 0x1p-8;
      compare(what, at(c, i, j), expected, bound, m, n, k);
    }
  }
  free(left), free(right);
}

static void *aligned(int64_t bytes) {
  void *p = NULL;
  if (posix_memalign(&p, 64, (size_t)(bytes + (bytes == 0)))) abort();
  memset(p, 0xff, (size_t)bytes);
  return p;
}

static void packRight(int p, void *packed, lt_matrix b, int64_t k, int64_t n) {
  if (b.cs == 1 && drawn() % 2) {
    const int64_t middle = k > 16 ? drawn() % (k / 16 + 1) * 16 : 0;
    lt_pack_slab(p, packed, b, k, n, middle, k);
    lt_pack_slab(p, packed, b, k, n, 0, middle);
  } else {
    const int64_t panels = lt_panels(p, n), middle = drawn() % (uint32_t)(panels + 1);
    lt_pack_panels(p, packed, b, k, n, middle, panels);
    lt_pack_panels(p, packed, b, k, n, 0, middle);
  }
}

/* ---- Packing --------------------------------------------------------------------------------------------------- */

/* A packed element of vector i at depth d. */
static uint32_t packedWord(const lt_kernel *kernel, int p, lt_matrix a, int64_t i, int64_t d, int64_t vectors, int64_t k) {
  uint32_t word = 0;
  for (int64_t half = kernel->depth - 1; half >= 0; half--) {
    const int64_t at_d = d * kernel->depth + half;
    const float x = i < vectors && at_d < k ? at(a, i, at_d) : 0;
    uint32_t u;
    memcpy(&u, &x, 4);
    if (p != LT_FLOAT32) u = (uint32_t)lt_to_bf16(x) << 16;
    word = kernel->depth == 2 ? word << 16 | u >> 16 : u;
  }
  return word;
}

/* Panels apart from each other: every word as the layout says, what lies between them untouched. */
static void packingCase(int p, int64_t vectors, int64_t k) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int64_t width = drawn() % 2 ? kernel->rows : kernel->lanes * upTo(kernel->columns / kernel->lanes);
  const int64_t words = lt_words(kernel, k), size = width * words + upTo(40), panels = (vectors + width - 1) / width;
  const stored a = matrix(vectors, k, drawn() % 2, drawn() % LAYOUTS);
  uint32_t *packed = malloc((size_t)(panels * size) * 4);
  memset(packed, 0x5a, (size_t)(panels * size) * 4);
  kernel->pack(packed, size, width, a.memory, a.view.type, a.view.rs, a.view.cs, vectors, k);
  for (int64_t i = 0; i < panels * size; i++) {
    const int64_t place = i % size, inside = place < width * words;
    const uint32_t expected =
        inside ? packedWord(kernel, p, a.view, i / size * width + place % width, place / width, vectors, k) : 0x5a5a5a5au;
    if (packed[i] != expected && !failures++)
      snprintf(first, sizeof first, "%d vectors of %d, strides %d and %d, type %d, width %d: word %d is %08x, not %08x",
               (int)vectors, (int)k, (int)a.view.rs, (int)a.view.cs, a.view.type, (int)width, (int)i, packed[i], expected);
  }
  free(a.memory), free(packed);
}

static void packing(int p) {
  for (int i = 0; i < CASES(300); i++) packingCase(p, upTo(70), upTo(70));
  for (int i = 0; i < CASES(60); i++) packingCase(p, upTo(330), upTo(40));
  for (int i = 0; i < CASES(20); i++) packingCase(p, upTo(60), 1000 + upTo(1200));
}

/* ---- Single products ------------------------------------------------------------------------------------------- */

/* One lt_gemm with everything drawn but the size. */
static void gemmCase(int p, int64_t m, int64_t n, int64_t k) {
  static const float alphas[] = {1.0f, 0.125f, -1.7f};
  const int cType = drawn() % 3 == 0, accumulate = !cType && drawn() % 2;
  const float alpha = alphas[drawn() % 3];
  const stored a = matrix(m, k, drawn() % 2, drawn() % LAYOUTS), b = matrix(k, n, drawn() % 2, drawn() % LAYOUTS);
  const stored c = matrix(m, n, cType, drawn() % 2 ? ROWS : ROWS_APART);
  float *before = malloc((size_t)(m * n) * sizeof(float));
  for (int64_t i = 0; i < m * n; i++) before[i] = at(c.view, i / n, i % n);
  void *packed = aligned(lt_packed_bytes(p, k, n)), *scratch = aligned(lt_gemm_scratch_bytes(p, m, k));
  packRight(p, packed, b.view, k, n);
  const int64_t panels = lt_panels(p, n), middle = drawn() % (uint32_t)(panels + 1);
  lt_gemm(p, m, n, k, a.view, packed, middle, panels, c.memory, cType, c.view.rs, alpha, accumulate, scratch);
  lt_gemm(p, m, n, k, a.view, packed, 0, middle, c.memory, cType, c.view.rs, alpha, accumulate, scratch);
  check("gemm", p, a.view, b.view, c.view, before, m, n, k, alpha, accumulate);
  free(a.memory), free(b.memory), free(c.memory), free(before), free(packed), free(scratch);
}

/* The same sums, whether the right operand is packed in words or in half as much memory: of any depth, and few rows or many. */
static void keptCase(int64_t m, int64_t n, int64_t k) {
  const stored a = matrix(m, k, drawn() % 2, drawn() % LAYOUTS), b = matrix(k, n, drawn() % 2, drawn() % LAYOUTS);
  float *results[2];
  for (int kept = 0; kept < 2; kept++) {
    const int p = kept ? LT_ROUNDED_KEPT : LT_ROUNDED;
    void *packed = aligned(lt_packed_bytes(p, k, n)), *scratch = aligned(lt_gemm_scratch_bytes(p, m, k));
    packRight(p, packed, b.view, k, n);
    results[kept] = malloc((size_t)(m * n) * sizeof(float));
    lt_gemm(p, m, n, k, a.view, packed, 0, lt_panels(p, n), results[kept], LT_FLOAT32, n, 1.0f, 0, scratch);
    free(packed), free(scratch);
  }
  if (memcmp(results[0], results[1], (size_t)(m * n) * sizeof(float)) && !failures++)
    snprintf(first, sizeof first, "m=%d n=%d k=%d: kept operands give other bits", (int)m, (int)n, (int)k);
  const int64_t whole = lt_packed_bytes(LT_ROUNDED, k, n), half = lt_packed_bytes(LT_ROUNDED_KEPT, k, n);
  if (k % 32 == 0 && 2 * half != whole && !failures++) snprintf(first, sizeof first, "%d bytes of %d", (int)half, (int)whole);
  free(a.memory), free(b.memory), free(results[0]), free(results[1]);
}

/* ---- Several products on several threads ---------------------------------------------------------------------- */

enum { PRODUCTS = 4 };
typedef struct {
  int p;
  const lt_product *products;
  char *scratch;
  int64_t scratchBytes; /* of a thread */
} job;

static void work(void *arg, int thread, int threads) {
  const job *j = arg;
  /* One that packs late shows whether others wait. */
  if (thread % 2) usleep(300);
  lt_products(j->p, j->products, PRODUCTS, j->scratch == NULL ? NULL : j->scratch + thread * j->scratchBytes, thread, threads);
}

/* isForAll: without scratch, so that threads pack nothing for themselves. */
static void onThreads(int p, const lt_product *products, int threads, int isForAll) {
  job j = {.p = p, .products = products};
  for (const lt_product *q = products; q < products + PRODUCTS; q++) {
    const int64_t bytes = q->parts ? lt_parts_scratch_bytes(p, q->m, q->n, q->k, q->parts) : lt_products_scratch_bytes(p, q->c_type, q->k);
    if (bytes > j.scratchBytes) j.scratchBytes = (bytes + 63) / 64 * 64;
  }
  j.scratch = isForAll ? NULL : aligned(threads * j.scratchBytes);
  lt_team_run(threads, work, &j);
  free(j.scratch);
}

/* Four products: the second shares the left operand of the first, the last one its right operand. Deep ones have several slabs. */
static void productsCase(int p, int threads, int isDeep) {
  lt_product products[PRODUCTS];
  lt_matrix lefts[PRODUCTS], rights[PRODUCTS];
  stored as[PRODUCTS], bs[PRODUCTS], cs[PRODUCTS];
  float *before[PRODUCTS];
  for (int q = 0; q < PRODUCTS; q++) {
    const int shareLeft = q == 1, shareRight = q == 3;
    const int64_t m = shareLeft ? products[0].m : upTo(isDeep ? 30 : 300);
    const int64_t n = shareRight ? products[0].n : upTo(isDeep ? 40 : 200);
    const int64_t depth = isDeep ? 1000 + upTo(600) : upTo(drawn() % 8 ? 150 : 2500);
    const int64_t k = shareLeft || shareRight ? products[0].k : depth;
    /* Operands that are packed once have the same slabs. */
    const int cType = shareLeft || shareRight ? cs[0].view.type : drawn() % 3 == 0;
    as[q] = matrix(m, k, drawn() % 2, drawn() % LAYOUTS);
    bs[q] = matrix(k, n, drawn() % 2, drawn() % LAYOUTS);
    cs[q] = matrix(m, n, cType, ROWS_APART);
    lefts[q] = shareLeft ? as[0].view : as[q].view;
    rights[q] = shareRight ? bs[0].view : bs[q].view;
    before[q] = malloc((size_t)(m * n) * sizeof(float));
    for (int64_t i = 0; i < m * n; i++) before[q][i] = at(cs[q].view, i / n, i % n);
    products[q] = (lt_product){m, n, k, lefts[q], rights[q], cs[q].memory, cs[q].view.type, cs[q].view.rs, 0.5f,
                               cs[q].view.type == LT_FLOAT32 && q % 2,
                               shareLeft ? products[0].packed_a : aligned(lt_slabs_left_bytes(p, cType, m, k)),
                               shareRight ? products[0].packed_b : aligned(lt_slabs_bytes(p, cType, k, n)), 0};
    if (shareLeft) products[q].a.data = NULL;
    if (shareRight) products[q].b.data = NULL;
  }
  onThreads(p, products, threads, 0);
  for (int q = 0; q < PRODUCTS; q++)
    check("products", p, lefts[q], rights[q], cs[q].view, before[q], products[q].m, products[q].n, products[q].k, 0.5f,
          products[q].accumulate);
  for (int q = 0; q < PRODUCTS; q++) {
    if (q != 1) free(products[q].packed_a);
    if (q != 3) free(products[q].packed_b);
    free(as[q].memory), free(bs[q].memory), free(cs[q].memory), free(before[q]);
  }
}

/* Two products in parts, of any layout, beside two that are packed slab by slab: results as they should be, and the same
   bits whichever threads do the parts. Some parts have no terms. */
static void partsCase(int p) {
  lt_product products[PRODUCTS];
  stored as[PRODUCTS], bs[PRODUCTS], cs[PRODUCTS];
  float *before[PRODUCTS];
  for (int q = 0; q < PRODUCTS; q++) {
    const int64_t m = upTo(drawn() % 4 ? 40 : 150), n = upTo(drawn() % 3 ? 60 : 12), k = upTo(drawn() % 3 ? 4000 : 100);
    const int64_t parts = q % 2 ? 0 : upTo(12);
    const int cType = drawn() % 3 == 0;
    as[q] = matrix(m, k, drawn() % 2, drawn() % LAYOUTS);
    bs[q] = matrix(k, n, drawn() % 2, drawn() % LAYOUTS);
    cs[q] = matrix(m, n, cType, ROWS_APART);
    before[q] = malloc((size_t)(m * n) * sizeof(float));
    for (int64_t i = 0; i < m * n; i++) before[q][i] = at(cs[q].view, i / n, i % n);
    products[q] = (lt_product){m, n, k, as[q].view, bs[q].view, cs[q].memory, cType, cs[q].view.rs, -1.5f,
                               cType == LT_FLOAT32 && drawn() % 2,
                               aligned(parts ? lt_parts_bytes(p, m, n, k, parts) : lt_slabs_left_bytes(p, cType, m, k)),
                               parts ? NULL : aligned(lt_slabs_bytes(p, cType, k, n)), parts};
  }
  static const int teams[] = {1, 2, 3, 4, 7};
  float *once[PRODUCTS] = {NULL};
  for (unsigned t = 0; t < sizeof teams / sizeof *teams; t++) {
    for (int q = 0; q < PRODUCTS; q++) /* what is added to */
      for (int64_t i = 0; i < products[q].m * products[q].n; i++) {
        const int64_t place = i / products[q].n * products[q].ldc + i % products[q].n;
        if (products[q].c_type == LT_FLOAT32) ((float *)products[q].c)[place] = before[q][i];
      }
    onThreads(p, products, teams[t], 0);
    for (int q = 0; q < PRODUCTS; q++) {
      const int64_t size = products[q].m * products[q].n;
      if (!t) {
        check("parts", p, as[q].view, bs[q].view, cs[q].view, before[q], products[q].m, products[q].n, products[q].k, -1.5f,
              products[q].accumulate);
        once[q] = malloc((size_t)size * sizeof(float));
      }
      for (int64_t i = 0; i < size; i++) {
        const float got = at(cs[q].view, i / products[q].n, i % products[q].n);
        if (!t) once[q][i] = got;
        if (memcmp(&got, &once[q][i], 4) && !failures++)
          snprintf(first, sizeof first, "%d threads give other bits than one: %.9g, %.9g", teams[t], got, once[q][i]);
      }
    }
  }
  for (int q = 0; q < PRODUCTS; q++) {
    free(products[q].packed_a), free(products[q].packed_b), free(once[q]);
    free(as[q].memory), free(bs[q].memory), free(cs[q].memory), free(before[q]);
  }
}

/* The same bits whichever threads compute an element, and whoever packs its operands. */
static void sameBits(int p) {
  static const int64_t sizes[][2] = {{203, 607}, {607, 203}, {70, 1000}};
  for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t m = sizes[s][0], n = sizes[s][1], k = 1500;
    const stored a = matrix(m, k, 0, COLUMNS), b = matrix(k, n, 0, ROWS);
    float *results[8];
    for (int t = 0; t < 8; t++) {
      float *c = results[t] = malloc((size_t)(m * n) * sizeof(float));
      lt_product products[PRODUCTS] = {{m, n, k, a.view, b.view, c, 0, n, 1.0f, 0, aligned(lt_slabs_left_bytes(p, 0, m, k)),
                                        aligned(lt_slabs_bytes(p, 0, k, n)), 0}};
      onThreads(p, products, t / 2 + 1, t % 2);
      if (memcmp(c, results[0], (size_t)(m * n) * sizeof(float)) && !failures++)
        snprintf(first, sizeof first, "%d threads, %s packed for all, give other bits than one", t / 2 + 1,
                 t % 2 ? "both operands" : "one operand");
      free(products[0].packed_a), free(products[0].packed_b);
    }
    for (int t = 0; t < 8; t++) free(results[t]);
    free(a.memory), free(b.memory);
  }
}

/* ---- Special numbers ------------------------------------------------------------------------------------------ */

static void specials(int p) {
  const float values[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 3e38f, 1.0f};
  const int64_t m = 9, n = 50, k = 37;
  for (int type = 0; type < 2; type++) {
    for (unsigned v = 0; v < sizeof values / sizeof *values; v++) {
      for (int layout = 0; layout < LAYOUTS; layout++) {
        stored a = matrix(m, k, type, layout), b = matrix(k, n, type, layout), c = matrix(m, n, 0, ROWS);
        const int64_t left = drawn() % m * a.view.rs + drawn() % k * a.view.cs;
        const int64_t right = drawn() % k * b.view.rs + drawn() % n * b.view.cs;
        if (type) {
          ((bf16 *)a.memory)[left] = lt_to_bf16(values[v]);
          ((bf16 *)b.memory)[right] = lt_to_bf16(values[v]);
        } else {
          ((float *)a.memory)[left] = values[v];
          ((float *)b.memory)[right] = values[v];
        }
        void *packed = aligned(lt_packed_bytes(p, k, n)), *scratch = aligned(lt_gemm_scratch_bytes(p, m, k));
        packRight(p, packed, b.view, k, n);
        lt_gemm(p, m, n, k, a.view, packed, 0, lt_panels(p, n), c.memory, 0, n, 1.0f, 0, scratch);
        for (int64_t i = 0; i < m; i++) {
          for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t d = 0; d < k; d++) {
              const double term = operandOf(p, a.view, i, d) * operandOf(p, b.view, d, j);
              sum += term, size += fabs(term);
            }
            if (fabs(sum) < 1e38 || !isfinite(sum)) compare("special", at(c.view, i, j), sum, size * 1e-5, m, n, k);
          }
        }
        free(a.memory), free(b.memory), free(c.memory), free(packed), free(scratch);
      }
    }
  }
}

/* A sum of no terms is 0, and no rows or columns are no work. */
static void empty(int p) {
  float c[6] = {1, 2, 3, 4, 5, 6};
  const lt_matrix none = {c, LT_FLOAT32, 0, 1};
  void *packed = aligned(64), *scratch = aligned(64);
  lt_gemm(p, 2, 3, 0, none, packed, 0, lt_panels(p, 3), c, LT_FLOAT32, 3, 1.0f, 0, scratch);
  for (int i = 0; i < 6; i++) compare("empty sum", c[i], 0, 0, 2, 3, 0);
  c[0] = 7;
  lt_gemm(p, 2, 3, 0, none, packed, 0, lt_panels(p, 3), c, LT_FLOAT32, 3, 1.0f, 1, scratch);
  compare("empty sum added", c[0], 7, 0, 2, 3, 0);
  lt_gemm(p, 0, 3, 2, none, packed, 0, lt_panels(p, 3), c, LT_FLOAT32, 3, 1.0f, 0, scratch);
  lt_gemm(p, 2, 0, 2, none, packed, 0, lt_panels(p, 0), c, LT_FLOAT32, 3, 1.0f, 0, scratch);
  compare("no rows", c[0], 7, 0, 0, 3, 2);
  free(packed), free(scratch);
}

int main(int argc, char **argv) {
  if (argc == 1) { /* what the environment chose */
    printf("%s %s\n", lt_gemm_kernel(LT_FLOAT32), lt_gemm_kernel(LT_BFLOAT16));
    return 0;
  }
  if (!lt_gemm_force(argv[1])) {
    printf("%s: not here\n", argv[1]);
    return 0;
  }
  const int64_t larger[][3] = {{130, 65, 40}, {257, 17, 33}, {7, 400, 300}, {64, 96, 1100}, {33, 64, 2100}, {12, 48, 4200}};
  for (int p = 0; p <= LT_ROUNDED_KEPT; p++) {
    const char *const precision = (const char *[]){"float32", "bfloat16", "rounded", "kept"}[p];
    printf("%s runs %s\n", precision, lt_gemm_kernel(p));
    packing(p);
    report(precision, "packing");
    for (int i = 0; i < CASES(400); i++) gemmCase(p, upTo(67), upTo(67), upTo(67));
    for (int m = 1; m <= 8; m++) gemmCase(p, m, 150 + m, 67 + m);
    for (int i = 0; i < (SHARE > 1 ? 6 : 24); i++) gemmCase(p, larger[i % 6][0], larger[i % 6][1], larger[i % 6][2]);
    report(precision, "gemm");
    if (p == LT_ROUNDED_KEPT) {
      for (int i = 0; i < CASES(200); i++) keptCase(upTo(20), upTo(120), upTo(100));
      for (int i = 0; i < 6; i++) keptCase(larger[i][0], larger[i][1], larger[i][2] + i % 2);
    } else {
      for (int i = 0; i < (SHARE > 1 ? 4 : 12); i++) productsCase(p, 1 + i % 4, i % 2);
      sameBits(p);
      for (int i = 0; i < CASES(24); i++) partsCase(p);
    }
    report(precision, "products");
    specials(p);
    empty(p);
    report(precision, "special cases");
    const double rate = lt_product_rate(p, 5, 100, 70, 2, 0.001);
    if (!(rate > 0 && rate < INFINITY) && !failures++) snprintf(first, sizeof first, "%g", rate);
    const double one = lt_peak_flops(p, 1, 0.001), two = lt_peak_flops(p, 2, 0.001);
    if (!(one > 0 && one < INFINITY && two > 0 && two < INFINITY) && !failures++) snprintf(first, sizeof first, "%g, %g", one, two);
    report(precision, "peak");
  }
  return 0;
}
