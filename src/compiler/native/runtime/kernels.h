/* kernels.h: internal to the runtime: microkernels, and the packing that products and attention share. */
#ifndef LUTHIER_KERNELS_H
#define LUTHIER_KERNELS_H

#include <stddef.h>

#include "luthier.h"

/* Packed operands are sequences of panels. A panel holds `width` rows of a left operand (columns of a right one) as
   32-bit words: word [w * width + i] is element i at depth w; with depth == 2 it is a pair of bf16, the even depth
   in the lower half. Elements beyond the operand's edge are zero. */

/* A word of any type in memory. */
typedef uint32_t lt_word __attribute__((may_alias));

/* c[m, n] = alpha * a b (+ c), from the `words` words at a and b. Prefetches `ahead` lines from `next` on: one per
   word, or as many as b has if that is more. */
typedef void lt_tile(const uint32_t *a, const uint32_t *b, int64_t words, int64_t width, void *c, int32_t c_type,
                     int64_t ldc, int64_t m, int64_t n, float alpha, int accumulate, const char *next, int64_t ahead);

/* Packs k elements of each of `vectors` vectors into panels that start `size` words apart, the last one padded with zeros:
   element (i, d) is from[i * across + d * along] of the given type. */
typedef void lt_pack(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across, int64_t along,
                     int64_t vectors, int64_t k);

typedef struct lt_kernel {
  const char *name;
  int32_t rows;    /* of a tile: the width of left panels */
  int32_t lanes;   /* of a vector: right panels are multiples of this wide */
  int32_t columns; /* of a tile: the largest width of right panels */
  int32_t depth;   /* elements of k in a word: 1 (float32) or 2 (bf16) */

  lt_pack *pack;

  /* The function for tiles of m <= rows by n <= columns, both positive. */
  lt_tile *(*tile)(int64_t m, int64_t n);

  /* NULL where depth is 2. c[m, n] = a b (+ c) over `words` words, for a left operand that isn't packed: element (i, w)
     is a[i * row + w * step]. b's panels start `size` words apart; n is a number of whole vectors. Reads no rows
     beyond m. */
  void (*multiply)(const lt_word *a, int64_t row, int64_t step, const uint32_t *b, int64_t size, int64_t width,
                   int64_t words, float *c, int64_t ldc, int64_t m, int64_t n, int accumulate);

  /* `rounds` multiply-adds on every register of a tile: 2 * rows * columns * depth operations each. */
  float (*burn)(int64_t rounds);

  /* NULL, or packs right panels instead of `pack`, with pairs of bf16 in a word; the tiles widen them, and take left panels
     of one element a word. */
  lt_pack *pack_pairs;

  /* NULL, or packs left panels instead of `pack`, in an order of the kernel's own, in pieces of k that begin at a multiple of
     `group` words, as products of several parts of k do for all kernels. */
  lt_pack *pack_left;
  int32_t group;
} lt_kernel;

/* The kernel selected for products of precision p. */
const lt_kernel *lt_kernel_of(int p);

/* The kernel of attention's products, whose panels all have the order above. */
const lt_kernel *lt_attention_kernel_of(int p);

/* How a kernel packs left panels. */
static inline lt_pack *lt_left_pack(const lt_kernel *kernel) { return kernel->pack_left ? kernel->pack_left : kernel->pack; }

/* Words of a panel of k elements; the width of the panels of n columns. */
static inline int64_t lt_words(const lt_kernel *kernel, int64_t k) { return kernel->depth == 2 ? (k + 1) >> 1 : k; }
/* Elements of k in a word of a right panel. */
static inline int64_t lt_right_depth(const lt_kernel *kernel) { return kernel->pack_pairs ? 2 : kernel->depth; }
static inline int64_t lt_right_words(const lt_kernel *kernel, int64_t k) {
  return lt_right_depth(kernel) == 2 ? (k + 1) >> 1 : k;
}
int64_t lt_panel_width(const lt_kernel *kernel, int64_t n);

/* Element (i, j) of a matrix. */
static inline const void *lt_element(lt_matrix a, int64_t i, int64_t j) {
  return (const char *)a.data + (i * a.rs + j * a.cs) * (a.type == LT_BFLOAT16 ? 2 : 4);
}

/* Bytes of a packed left operand a[m, k]. */
int64_t lt_packed_left_bytes(int p, int64_t m, int64_t k);

/* Packs the row panels [first, last) of a left operand a[m, k]; its size is lt_packed_left_bytes(p, m, k). */
void lt_pack_left(int p, void *packed, lt_matrix a, int64_t m, int64_t k, int64_t first, int64_t last);

/* The products of a list that have parts (gemmParts.c): their sums; then, after a barrier, c. */
void lt_multiply_parts(int p, const lt_product *products, int64_t count, char *scratch, int thread, int threads);
void lt_add_parts(int p, const lt_product *products, int64_t count, int thread, int threads);

#endif
