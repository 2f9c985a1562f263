/* gemmProducts.c: products of packed operands: tile order, and the division of several products among threads. */
/* flags: -O2 */
#include "kernels.h"

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

enum {
  DEPTH_WORDS = 1024, /* of k at a time: a block of rows of this depth stays in the second-level cache */
  BLOCK_ROWS = LT_BLOCK_ROWS,   /* of c at a time */
  SLAB_WORDS = 512, /* of k packed at a time: slabs of both operands stay in the caches */
  STREAM_WORDS = 2048 /* prefetched where b is read once */
};

/* A packed operand of panels of `width` vectors and `words` words each. */
typedef struct {
  const uint32_t *data;
  int64_t width, words;
} operand;

typedef struct {
  void *data;
  int32_t type;
  int64_t ld;
} target;

static char *elementOf(target c, int64_t i, int64_t j) {
  return (char *)c.data + (i * c.ld + j) * (c.type == LT_BFLOAT16 ? 2 : 4);
}

/* The rows [i0, i1) (i0 a multiple of the tile's rows) of the panels [j0, j1) of c, which has n columns. How sums
   over k are split depends on k alone, so that no element depends on the region that it is computed in. */
static void multiplyRegion(const lt_kernel *kernel, operand a, operand b, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                           int64_t n, int64_t words, target c, float alpha, int accumulate) {
  const int64_t parts = c.type == LT_BFLOAT16 || words == 0 ? 1 : ceilDivide(words, DEPTH_WORDS);
  const int64_t part = ceilDivide(ceilDivide(words, parts), kernel->group) * kernel->group, tiles = ceilDivide(i1 - i0, kernel->rows);
  const int64_t panels = j1 - j0, widened = lt_right_depth(kernel) / kernel->depth; /* left words for one of b */
  for (int64_t step = 0; step < parts * panels; step++) {
    /* A single row of tiles reads b in memory order; otherwise each piece of a's rows stays in the cache. */
    const int64_t p = tiles == 1 ? step % parts : step / panels, j = j0 + (tiles == 1 ? step / parts : step % panels);
    const int64_t w = p * part, count = least(part, words - w), left = j + 1 < j1;
    const int64_t share = left * ceilDivide(ceilDivide(b.width * ceilDivide(count, widened), 16), tiles); /* of the next panel's lines */
    const uint32_t *right = b.data + (j * b.words + w / widened) * b.width;
    const char *next = (const char *)(right + left * (tiles == 1 ? STREAM_WORDS : b.words * b.width));
    const int64_t columns = least(b.width, n - j * b.width);
    lt_tile *tile = NULL;
    for (int64_t i = i0; i < i1; i += kernel->rows, next += share * 64) {
      const int64_t rows = least(kernel->rows, i1 - i);
      if (tile == NULL || rows < kernel->rows) tile = kernel->tile(rows, columns);
      tile(a.data + i * a.words + w * a.width, right, count, b.width, elementOf(c, i, j * b.width), c.type, c.ld, rows,
           columns, alpha, accumulate || p > 0, next, share);
    }
  }
}

/* ---- lt_gemm -------------------------------------------------------------------------------------------------- */

/* Rows per block when m is divided evenly into blocks of at most BLOCK_ROWS. */
static int64_t rowsAtOnce(const lt_kernel *kernel, int64_t m) {
  if (m <= 0) return kernel->rows;
  const int64_t blocks = ceilDivide(m, BLOCK_ROWS);
  return ceilDivide(ceilDivide(m, blocks), kernel->rows) * kernel->rows;
}

int64_t lt_gemm_scratch_bytes(int p, int64_t m, int64_t k) {
  return lt_packed_left_bytes(p, least(m, rowsAtOnce(lt_kernel_of(p), m)), k);
}

void lt_gemm(int p, int64_t m, int64_t n, int64_t k, lt_matrix a, const void *packed_b, int64_t first_panel,
             int64_t last_panel, void *c, int32_t c_type, int64_t ldc, float alpha, int accumulate, void *scratch) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int64_t words = lt_words(kernel, k), block = rowsAtOnce(kernel, m);
  const operand b = {packed_b, n > 0 ? lt_panel_width(kernel, n) : kernel->columns, lt_right_words(kernel, k)};
  for (int64_t i = 0; i < m && n > 0; i += block) {
    const int64_t rows = least(block, m - i);
    const target to = {c, c_type, ldc};
    if (a.data != NULL) {
      const lt_matrix part = {lt_element(a, i, 0), a.type, a.rs, a.cs};
      lt_pack_left(p, scratch, part, rows, k, 0, ceilDivide(rows, kernel->rows));
    }
    multiplyRegion(kernel, (operand){scratch, kernel->rows, words}, b, 0, rows, first_panel, last_panel, n, words,
                   (target){elementOf(to, i, 0), c_type, ldc}, alpha, accumulate);
  }
}

/* ---- lt_products ---------------------------------------------------------------------------------------------- */

/* A thread's share of a list of jobs, each divided into units of equal work. */
typedef struct {
  double total, from, to, done;
} share;

static share shareOf(double total, int thread, int threads) {
  return (share){total, total * thread / threads, total * (thread + 1) / threads, 0};
}

/* The share's units [first, last) of the next job: those that begin in it, rounded to the nearest. */
static void takeUnits(share *s, double work, int64_t units, int64_t *first, int64_t *last) {
  const double scale = work > 0 ? (double)units / work : 0;
  const double low = (s->from - s->done) * scale, high = (s->to - s->done) * scale;
  s->done += work;
  *first = low <= 0 ? 0 : low >= (double)units ? units : (int64_t)(low + 0.5);
  *last = high <= 0 ? 0 : high >= (double)units || s->to >= s->total ? units : (int64_t)(high + 0.5);
}

/* Slabs of k, all but the last of equal depth. Packed ones alternate between two places, so that a thread packs the
   next one while others still multiply this one. Sums that are stored as bf16 between slabs would lose digits: they
   have one slab. */
static int64_t slabsOf(const lt_kernel *kernel, int32_t c_type, int64_t k) {
  return c_type == LT_BFLOAT16 || k == 0 ? 1 : ceilDivide(lt_words(kernel, k), SLAB_WORDS);
}

static int64_t slabDepth(const lt_kernel *kernel, int32_t c_type, int64_t k) {
  const int64_t slabs = slabsOf(kernel, c_type, k);
  return slabs == 1 ? k : ceilDivide(lt_words(kernel, k), slabs) * kernel->depth;
}

int64_t lt_slabs_left_bytes(int p, int32_t c_type, int64_t m, int64_t k) {
  const lt_kernel *kernel = lt_kernel_of(p);
  return lt_packed_left_bytes(p, m, slabDepth(kernel, c_type, k)) * least(2, slabsOf(kernel, c_type, k));
}

int64_t lt_slabs_bytes(int p, int32_t c_type, int64_t k, int64_t n) {
  const lt_kernel *kernel = lt_kernel_of(p);
  return lt_packed_bytes(p, slabDepth(kernel, c_type, k), n) * least(2, slabsOf(kernel, c_type, k));
}

/* A product's slab s, as a product of its own. */
static lt_product slabOf(int p, const lt_kernel *kernel, const lt_product *q, int64_t s) {
  const int64_t depth = slabDepth(kernel, q->c_type, q->k), k0 = s * depth;
  lt_product slab = *q;
  slab.k = least(depth, q->k - k0);
  slab.accumulate = q->accumulate || s > 0;
  slab.packed_a = (char *)q->packed_a + s % 2 * lt_packed_left_bytes(p, q->m, depth);
  slab.packed_b = (char *)q->packed_b + s % 2 * lt_packed_bytes(p, depth, q->n);
  if (q->a.data) slab.a.data = lt_element(q->a, 0, k0);
  if (q->b.data) slab.b.data = lt_element(q->b, k0, 0);
  return slab;
}

enum { PACK_ROWS = 64 }; /* of k per unit of packing, where memory is read row by row */

/* Packs a thread's share of one operand: `across` is the stride between its vectors, `along` that along k. */
static void packShare(const lt_kernel *kernel, lt_pack *pack, share *s, void *packed, const void *data, int32_t type, int64_t across,
                      int64_t along, int64_t vectors, int64_t width, int64_t k) {
  const int64_t panels = ceilDivide(vectors, width), words = lt_words(kernel, k), size = type == LT_BFLOAT16 ? 2 : 4;
  const int byRows = across == 1 && along != 1;
  int64_t first, last;
  takeUnits(s, (double)vectors * (double)k, byRows ? ceilDivide(k, PACK_ROWS) : panels, &first, &last);
  if (first >= last) return;
  const int64_t d0 = byRows ? first * PACK_ROWS : 0, d1 = byRows ? least(k, last * PACK_ROWS) : k;
  const int64_t i0 = byRows ? 0 : first * width, i1 = byRows ? vectors : least(vectors, last * width);
  pack((uint32_t *)packed + i0 * words + d0 / kernel->depth * width, width * words, width,
       (const char *)data + (i0 * across + d0 * along) * size, type, across, along, i1 - i0, d1 - d0);
}

/* The units [first, last) of a product: panels of columns within blocks of rows, block by block. */
static void multiplyUnits(const lt_kernel *kernel, const lt_product *q, int64_t block, int64_t panels, int64_t first,
                          int64_t last) {
  const int64_t words = lt_words(kernel, q->k);
  const operand a = {q->packed_a, kernel->rows, words}, b = {q->packed_b, lt_panel_width(kernel, q->n), words};
  while (first < last) {
    const int64_t i = first / panels, j0 = first % panels, j1 = least(panels, j0 + last - first);
    multiplyRegion(kernel, a, b, i * block, least(q->m, (i + 1) * block), j0, j1, q->n, words,
                   (target){q->c, q->c_type, q->ldc}, q->alpha, q->accumulate);
    first += j1 - j0;
  }
}

/* Rows per unit: as in lt_gemm, but fewer where that would leave too few units to divide evenly. */
static int64_t blockOf(const lt_kernel *kernel, int64_t m, int64_t panels, int threads) {
  int64_t block = rowsAtOnce(kernel, m);
  while (threads > 1 && block >= 2 * kernel->rows && ceilDivide(m, block) * panels < 8 * threads)
    block = ceilDivide(block / 2, kernel->rows) * kernel->rows;
  return block;
}

/* Operands of a product that each thread packs for itself. */
typedef enum { NEITHER, LEFT, RIGHT } side;

enum { OWN_WORDS = 1 << 17 }; /* of an operand that a thread packs for itself: they stay in the second-level cache */

/* Of tile rows, and of panels, as many as a thread packs for itself at a time. */
static int64_t ownRows(const lt_kernel *kernel, int64_t words) {
  const int64_t fit = OWN_WORDS / (kernel->rows * (words > 0 ? words : 1));
  return fit < 1 ? 1 : least(fit, BLOCK_ROWS / kernel->rows);
}
static int64_t ownPanels(int64_t width, int64_t words) {
  const int64_t fit = OWN_WORDS / (width * (words > 0 ? words : 1));
  return fit < 1 ? 1 : fit;
}

int64_t lt_products_scratch_bytes(int p, int32_t c_type, int64_t k) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int64_t words = lt_words(kernel, slabDepth(kernel, c_type, k));
  const int64_t widest = kernel->columns > kernel->rows ? kernel->columns : kernel->rows;
  return 4 * (OWN_WORDS > widest * words ? OWN_WORDS : widest * words);
}

static double multiplyWork(const lt_product *q) { return (double)q->m * (double)q->n * (double)(q->k + 1); }

/* The operand that each thread packs for itself: the larger one, of which every thread then needs a part alone, which goes
   no further than its own cache, while the smaller one is packed for all. NEITHER where another product has the operand
   too, or where it has too few units for the tasks that the product's share of the work makes up. */
static side ownSide(int p, const lt_kernel *kernel, const lt_product *products, int64_t count, const lt_product *q, double tasks) {
  int isLeft = q->a.data != NULL, isRight = q->b.data != NULL;
  for (const lt_product *other = products; other < products + count; other++) {
    if (other == q || other->parts) continue;
    if (other->packed_a == q->packed_a) isLeft = 0;
    if (other->packed_b == q->packed_b) isRight = 0;
  }
  isLeft = isLeft && (double)ceilDivide(q->m, kernel->rows) >= 2 * tasks;
  isRight = isRight && (double)lt_panels(p, q->n) >= tasks;
  return isLeft && (q->m > q->n || !isRight) ? LEFT : isRight ? RIGHT : NEITHER;
}

static void packSlab(const lt_kernel *kernel, share *s, const lt_product *q, side own) {
  if (q->a.data && q->m > 0 && own != LEFT)
    packShare(kernel, lt_left_pack(kernel), s, q->packed_a, q->a.data, q->a.type, q->a.rs, q->a.cs, q->m, kernel->rows, q->k);
  if (q->b.data && q->n > 0 && own != RIGHT)
    packShare(kernel, kernel->pack, s, q->packed_b, q->b.data, q->b.type, q->b.cs, q->b.rs, q->n, lt_panel_width(kernel, q->n), q->k);
}

static double packWork(const lt_product *q, side own) {
  return (double)q->k * (double)((q->a.data && own != LEFT ? q->m : 0) + (q->b.data && own != RIGHT ? q->n : 0));
}

/* Packs the tile rows [first, last) for itself, a block at a time, and multiplies them by all panels. */
static void multiplyOwnRows(const lt_kernel *kernel, const lt_product *q, operand b, int64_t panels, int64_t first,
                            int64_t last, void *scratch) {
  const int64_t words = b.words, block = ownRows(kernel, words) * kernel->rows, end = least(q->m, last * kernel->rows);
  for (int64_t i = first * kernel->rows; i < end; i += block) {
    const int64_t rows = least(block, end - i);
    const target c = {q->c, q->c_type, q->ldc};
    lt_left_pack(kernel)(scratch, kernel->rows * words, kernel->rows, lt_element(q->a, i, 0), q->a.type, q->a.rs, q->a.cs, rows,
                         q->k);
    multiplyRegion(kernel, (operand){scratch, kernel->rows, words}, b, 0, rows, 0, panels, q->n, words,
                   (target){elementOf(c, i, 0), q->c_type, q->ldc}, q->alpha, q->accumulate);
  }
}

/* The units [first, last): blocks of rows within panels, panel by panel, so that threads may meet within a panel. Packs
   panels for itself, and multiplies its blocks of all rows by them. */
static void multiplyOwnPanels(const lt_kernel *kernel, const lt_product *q, operand a, int64_t width, int64_t block,
                              int64_t first, int64_t last, void *scratch) {
  const int64_t words = a.words, blocks = ceilDivide(q->m, block), most = ownPanels(width, words);
  for (int64_t j = first / blocks; j * blocks < last; j += most) {
    const int64_t left = q->n - j * width, end = least(j + most, ceilDivide(last, blocks));
    const target c = {q->c, q->c_type, q->ldc};
    kernel->pack(scratch, width * words, width, lt_element(q->b, 0, j * width), q->b.type, q->b.cs, q->b.rs,
                 least(left, (end - j) * width), q->k);
    for (int64_t i = 0; i < blocks; i++) {
      const int64_t from = j + (first > j * blocks + i);
      const int64_t to = last > i ? least(end, ceilDivide(last - i, blocks)) : j;
      if (from < to)
        multiplyRegion(kernel, a, (operand){scratch, width, words}, i * block, least(q->m, (i + 1) * block), from - j, to - j,
                       left, words, (target){elementOf(c, 0, j * width), q->c_type, q->ldc}, q->alpha, q->accumulate);
    }
  }
}

static void multiplySlab(int p, const lt_kernel *kernel, share *s, const lt_product *q, side own, void *scratch, int threads) {
  if (q->m <= 0 || q->n <= 0) return;
  const int64_t panels = lt_panels(p, q->n), width = lt_panel_width(kernel, q->n), words = lt_words(kernel, q->k);
  const int64_t block = blockOf(kernel, q->m, panels, threads);
  const int64_t units = own == LEFT ? ceilDivide(q->m, kernel->rows) : ceilDivide(q->m, block) * panels;
  int64_t first, last;
  takeUnits(s, multiplyWork(q), units, &first, &last);
  if (own == LEFT)
    multiplyOwnRows(kernel, q, (operand){q->packed_b, width, words}, panels, first, last, scratch);
  else if (own == RIGHT)
    multiplyOwnPanels(kernel, q, (operand){q->packed_a, kernel->rows, words}, width, block, first, last, scratch);
  else
    multiplyUnits(kernel, q, block, panels, first, last);
}

/* Virtual threads of each thread: what one that is held up has not begun, others take over. */
enum { TASKS_EACH = 4 };

void lt_products(int p, const lt_product *products, int64_t count, void *scratch, int thread, int threads) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int tasks = threads > 1 ? TASKS_EACH * threads : 1;
  int64_t slabs = 0, split = 0;
  double work = 0;
  for (const lt_product *q = products; q < products + count; q++) {
    const int64_t own = q->parts ? 0 : slabsOf(kernel, q->c_type, q->k);
    slabs = own > slabs ? own : slabs;
    split += q->parts > 0;
    work += q->parts ? 0 : multiplyWork(q);
  }
  if (split) lt_multiply_parts(p, products, count, scratch, thread, threads);
  side sides[count];
  for (int64_t i = 0; i < count; i++)
    sides[i] = scratch ? ownSide(p, kernel, products, count, products + i, tasks * multiplyWork(products + i) / work) : NEITHER;
  for (int64_t s = 0; s < slabs; s++) {
    lt_product now[count];
    side own[count];
    int64_t left = 0;
    double packing = 0, multiplying = 0;
    for (const lt_product *q = products; q < products + count; q++) {
      if (q->parts || s >= slabsOf(kernel, q->c_type, q->k)) continue;
      now[left] = slabOf(p, kernel, q, s);
      own[left] = sides[q - products];
      packing += packWork(now + left, own[left]);
      multiplying += multiplyWork(now + left++);
    }
    LT_TASKS(task, tasks, thread, threads) {
      share packed = shareOf(packing, (int)task, tasks);
      for (int64_t i = 0; i < left; i++) packSlab(kernel, &packed, now + i, own[i]);
    }
    lt_barrier();
    LT_TASKS(task, tasks, thread, threads) {
      share multiplied = shareOf(multiplying, (int)task, tasks);
      for (int64_t i = 0; i < left; i++) multiplySlab(p, kernel, &multiplied, now + i, own[i], scratch, threads);
    }
  }
  if (split && slabs == 0) lt_barrier();
  if (split) lt_add_parts(p, products, count, thread, threads);
}
