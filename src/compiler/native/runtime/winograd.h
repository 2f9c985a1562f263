/* winograd.h: internal to winograd*.c: transforms of tiles, for convolutions by 3x3 filters with stride 1 with a quarter of
   the multiplications: F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).

   A tile of 4x4 results y of a filter g and 6x6 cells x is y = A' ((G g G') . (B' x B)) A, where . multiplies element by
   element: sums over channels are 36 matrix products. The filter's gradient is g = G' ((B' x B) . (A y A')) G. */
#ifndef LUTHIER_WINOGRAD_H
#define LUTHIER_WINOGRAD_H

#include "lanes.h"

enum { TILE = 4, CELLS = 6, PLACES = CELLS * CELLS };

static inline int64_t aligned(int64_t bytes) { return ceilDivide(bytes, 64) * 64; }
static inline int64_t rounded(int64_t n) { return ceilDivide(n, LANES) * LANES; }

/* Floats between the matrices of two places; a power of two would put all of them into the same sets of a cache. */
static inline int64_t apart(int64_t rows, int64_t columns) { return rows * rounded(columns) + 16; }

/* ---- Transforms of six, four or three values ------------------------------------------------------------------------- */

/* Polynomials are evaluated at 0, +-P, +-Q and infinity. Errors are half of those of the usual 1 and 2, and twice those
   of plain sums. P, Q and their squares are exact. */
#define P 0.625f
#define Q 1.5f
#define PP (P * P)
#define QQ (Q * Q)

/* B' x */
INLINE void transformCells(vector *x) {
  const vector evenP = x[4] - QQ * x[2], oddP = P * (x[3] - QQ * x[1]);
  const vector evenQ = x[4] - PP * x[2], oddQ = Q * (x[3] - PP * x[1]);
  x[0] = (PP * QQ) * x[0] - (PP + QQ) * x[2] + x[4];
  x[5] = (PP * QQ) * x[1] - (PP + QQ) * x[3] + x[5];
  x[1] = evenP + oddP;
  x[2] = evenP - oddP;
  x[3] = evenQ + oddQ;
  x[4] = evenQ - oddQ;
}

/* A' x: six values to four */
INLINE void toResults(vector *x) {
  const vector sumP = x[1] + x[2], gapP = P * (x[1] - x[2]), sumQ = x[3] + x[4], gapQ = Q * (x[3] - x[4]);
  x[0] = x[0] + sumP + sumQ;
  x[1] = gapP + gapQ;
  x[2] = PP * sumP + QQ * sumQ;
  x[3] = PP * gapP + QQ * gapQ + x[5];
}

/* A y: four values to six */
INLINE void fromResults(vector *y) {
  const vector evenP = y[0] + PP * y[2], oddP = P * (y[1] + PP * y[3]);
  const vector evenQ = y[0] + QQ * y[2], oddQ = Q * (y[1] + QQ * y[3]);
  y[5] = y[3];
  y[1] = evenP + oddP;
  y[2] = evenP - oddP;
  y[3] = evenQ + oddQ;
  y[4] = evenQ - oddQ;
}

/* What the other transforms leave out: the products of each place's differences to the others. */
#define AT_0 (1 / (PP * QQ))
#define AT_P (1 / (2 * PP * (PP - QQ)))
#define AT_Q (1 / (2 * QQ * (QQ - PP)))

/* G g: three values to six */
INLINE void fromFilter(vector *g) {
  const vector evenP = AT_P * (g[0] + PP * g[2]), oddP = (AT_P * P) * g[1];
  const vector evenQ = AT_Q * (g[0] + QQ * g[2]), oddQ = (AT_Q * Q) * g[1];
  g[5] = g[2];
  g[0] = AT_0 * g[0];
  g[1] = evenP + oddP;
  g[2] = evenP - oddP;
  g[3] = evenQ + oddQ;
  g[4] = evenQ - oddQ;
}

/* G' u: six values to three */
INLINE void toFilter(vector *u) {
  const vector sumP = AT_P * (u[1] + u[2]), gapP = AT_P * (u[1] - u[2]);
  const vector sumQ = AT_Q * (u[3] + u[4]), gapQ = AT_Q * (u[3] - u[4]);
  u[0] = AT_0 * u[0] + sumP + sumQ;
  u[1] = P * gapP + Q * gapQ;
  u[2] = PP * sumP + QQ * sumQ + u[5];
}

/* Applies a transform to the columns, then to the rows, of values [6][6] of which `from` x `from` are given. */
#define TRANSFORM(transform, values, from, to)                                                                         \
  do {                                                                                                                 \
    UNROLL for (int j = 0; j < (from); j++) {                                                                          \
      vector column[CELLS];                                                                                            \
      UNROLL for (int i = 0; i < (from); i++) column[i] = (values)[i * CELLS + j];                                     \
      transform(column);                                                                                               \
      UNROLL for (int i = 0; i < (to); i++) (values)[i * CELLS + j] = column[i];                                       \
    }                                                                                                                  \
    UNROLL for (int i = 0; i < (to); i++) transform((values) + i * CELLS);                                             \
  } while (0)

/* ---- Tiles of images -------------------------------------------------------------------------------------------------- */

/* Cells [row, row + size) x [column, column + size) of an image; those outside of it are padding. */
typedef struct {
  float *data; /* of the first cell, which may not exist */
  int64_t top, bottom, left, right; /* the existing cells are [top, bottom) x [left, right) */
} region;

static inline region regionOf(lt_image x, int64_t height, int64_t width, int64_t item, int64_t row, int64_t column, int size) {
  return (region){(float *)x.data + item * x.batch + row * x.row + column * x.column,
                  most(0, -row), least(size, height - row), most(0, -column), least(size, width - column)};
}

/* Transforms `size` x `size` cells of all channels, and writes place i of tile `tile` to to[i * apart]. */
#define TRANSFORM_REGION(name, transform, size)                                                                        \
  INLINE void name##As(int p, int whole, region r, lt_image x, int64_t channels, float *to, int64_t between) {         \
    for (int64_t c = 0; c < channels; c += LANES) {                                                                    \
      vector values[PLACES];                                                                                           \
      for (int i = 0; i < (size); i++)                                                                                 \
        UNROLL for (int j = 0; j < (size); j++) {                                                                      \
          const int inside = whole || (i >= r.top && i < r.bottom && j >= r.left && j < r.right);                      \
          values[i * CELLS + j] = inside ? load(p, r.data + i * x.row + j * x.column + c, channels - c) : (vector){0}; \
        }                                                                                                              \
      TRANSFORM(transform, values, size, CELLS);                                                                       \
      UNROLL for (int i = 0; i < PLACES; i++) *(loose *)(to + i * between + c) = values[i];                            \
    }                                                                                                                  \
  }                                                                                                                    \
  INLINE void name##Of(int p, region r, lt_image x, int64_t channels, float *to, int64_t between) {                    \
    if (r.top == 0 && r.left == 0 && r.bottom == (size) && r.right == (size) && channels % LANES == 0)                 \
      name##As(p, 1, r, x, channels, to, between);                                                                     \
    else                                                                                                               \
      name##As(p, 0, r, x, channels, to, between);                                                                     \
  }                                                                                                                    \
  static void name(int p, region r, lt_image x, int64_t channels, float *to, int64_t between) {                        \
    if (p != LT_FLOAT32)                                                                                               \
      name##Of(LT_BFLOAT16, r, x, channels, to, between);                                                              \
    else                                                                                                               \
      name##Of(LT_FLOAT32, r, x, channels, to, between);                                                               \
  }
TRANSFORM_REGION(writeCells, transformCells, CELLS)

/* Where a tile's results are. */
typedef struct {
  int64_t item, row, column;
} position;

static inline int64_t tilesOf(const lt_convolution *s) { return s->batch * ceilDivide(s->down, TILE) * ceilDivide(s->across, TILE); }

static inline position positionOf(const lt_convolution *s, int64_t tile) {
  const int64_t across = ceilDivide(s->across, TILE), down = ceilDivide(s->down, TILE);
  return (position){tile / (across * down), tile / across % down * TILE, tile % across * TILE};
}

static inline region cellsAt(const lt_convolution *s, lt_image x, position at) {
  return regionOf(x, s->height, s->width, at.item, at.row - s->above, at.column - s->before, CELLS);
}

static inline region resultsAt(const lt_convolution *s, lt_image y, position at) {
  return regionOf(y, s->down, s->across, at.item, at.row, at.column, TILE);
}

#endif
