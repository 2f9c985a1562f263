/* winograd.c: convolutions by 3x3 filters with stride 1, and their gradients by the filter, with a quarter of the
   multiplications: F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).

   A tile of 4x4 results y of a filter g and 6x6 cells x is y = A' ((G g G') . (B' x B)) A, where . multiplies element by
   element: sums over channels are 36 matrix products. The filter's gradient is g = G' ((B' x B) . (A y A')) G. */
#include <string.h>

#include "kernels.h"

enum { LANES = 8, TILE = 4, CELLS = 6, PLACES = CELLS * CELLS, SLAB = 16, TILES = 48, MORE_TILES = 96 };

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t words __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t aligned(int64_t bytes) { return ceilDivide(bytes, 64) * 64; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t rounded(int64_t n) { return ceilDivide(n, LANES) * LANES; }

/* Floats between the matrices of two places; a power of two would put all of them into the same sets of a cache. */
static int64_t apart(int64_t rows, int64_t columns) { return rows * rounded(columns) + 16; }

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

/* ---- Vectors of channels ---------------------------------------------------------------------------------------------- */

/* bf16 of the elements, as floats. */
INLINE vector toBfloat16(vector x) {
  words u;
  memcpy(&u, &x, sizeof u);
  const words nan = (u & 0x7fffffff) > 0x7f800000;
  u = ((~nan & (u + 0x7fff + ((u >> 16) & 1))) | (nan & (u | 0x400000))) & (int32_t)0xffff0000;
  memcpy(&x, &u, sizeof x);
  return x;
}

INLINE vector load(int p, const float *from, int64_t count) {
  vector x = {0};
  if (count >= LANES)
    x = *(const loose *)from;
  else
    memcpy(&x, from, (size_t)count * 4);
  return p == LT_BFLOAT16 ? toBfloat16(x) : x;
}

INLINE void store(float *to, vector x, int64_t count) {
  if (count >= LANES)
    *(loose *)to = x;
  else
    memcpy(to, &x, (size_t)count * 4);
}

/* ---- Tiles of images -------------------------------------------------------------------------------------------------- */

/* Cells [row, row + size) x [column, column + size) of an image; those outside of it are padding. */
typedef struct {
  float *data; /* of the first cell, which may not exist */
  int64_t top, bottom, left, right; /* the existing cells are [top, bottom) x [left, right) */
} region;

static region regionOf(lt_image x, int64_t height, int64_t width, int64_t item, int64_t row, int64_t column, int size) {
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
  static void name(int p, region r, lt_image x, int64_t channels, float *to, int64_t between) {                        \
    if (p == LT_BFLOAT16)                                                                                              \
      name##As(LT_BFLOAT16, 0, r, x, channels, to, between);                                                           \
    else if (r.top == 0 && r.left == 0 && r.bottom == (size) && r.right == (size) && channels % LANES == 0)            \
      name##As(LT_FLOAT32, 1, r, x, channels, to, between);                                                            \
    else                                                                                                               \
      name##As(LT_FLOAT32, 0, r, x, channels, to, between);                                                            \
  }
TRANSFORM_REGION(writeCells, transformCells, CELLS)
TRANSFORM_REGION(writeResults, fromResults, TILE)

/* Where a tile's results are. */
typedef struct {
  int64_t item, row, column;
} position;

static int64_t tilesOf(const lt_convolution *s) { return s->batch * ceilDivide(s->down, TILE) * ceilDivide(s->across, TILE); }

static position positionOf(const lt_convolution *s, int64_t tile) {
  const int64_t across = ceilDivide(s->across, TILE), down = ceilDivide(s->down, TILE);
  return (position){tile / (across * down), tile / across % down * TILE, tile % across * TILE};
}

static region cellsAt(const lt_convolution *s, lt_image x, position at) {
  return regionOf(x, s->height, s->width, at.item, at.row - s->above, at.column - s->before, CELLS);
}

static region resultsAt(const lt_convolution *s, lt_image y, position at) {
  return regionOf(y, s->down, s->across, at.item, at.row, at.column, TILE);
}

/* ---- Filters ---------------------------------------------------------------------------------------------------------- */

static int64_t placeBytes(const lt_convolution *s) { return aligned(lt_packed_bytes(LT_FLOAT32, s->channels, s->filters)); }

int64_t lt_winograd_filter_bytes(const lt_convolution *s) { return PLACES * placeBytes(s); }

int64_t lt_winograd_scratch_bytes(const lt_convolution *s) {
  const int64_t operands = PLACES * (apart(TILES, s->channels) + apart(TILES, s->filters)) * 4;
  const int64_t filters = PLACES * apart(SLAB, s->filters) * 4;
  return aligned(most(operands, filters)) + lt_gemm_scratch_bytes(LT_FLOAT32, TILES, s->channels);
}

INLINE float filterElement(int p, const lt_filter *w, int64_t tap, int64_t c, int64_t m) {
  const float x = w->data[tap / 3 * w->row + tap % 3 * w->column + c * w->channel + m * w->filter];
  return p == LT_BFLOAT16 ? lt_from_bf16(lt_to_bf16(x)) : x;
}

void lt_winograd_filters(int p, const lt_convolution *s, lt_filter w, void *packed, void *scratch, int thread, int threads) {
  const int64_t slabs = ceilDivide(s->channels, SLAB), width = rounded(s->filters), between = apart(SLAB, s->filters);
  for (int64_t slab = slabs * thread / threads; slab < slabs * (thread + 1) / threads; slab++) {
    const int64_t c0 = slab * SLAB, c1 = least(s->channels, c0 + SLAB);
    for (int64_t c = c0; c < c1; c++)
      for (int64_t m = 0; m < s->filters; m += LANES) {
        vector values[PLACES];
        for (int64_t tap = 0; tap < 9; tap++) {
          vector taps = {0};
          for (int64_t lane = 0; lane < least(LANES, s->filters - m); lane++)
            taps[lane] = filterElement(p, &w, tap, c, m + lane);
          values[tap / 3 * CELLS + tap % 3] = taps;
        }
        TRANSFORM(fromFilter, values, 3, CELLS);
        for (int i = 0; i < PLACES; i++)
          *(loose *)((float *)scratch + i * between + (c - c0) * width + m) = values[i];
      }
    for (int i = 0; i < PLACES; i++) {
      /* The slab's first row stands where the whole matrix would have it. */
      const lt_matrix b = {(const float *)scratch + i * between - c0 * width, LT_FLOAT32, width, 1};
      lt_pack_slab(LT_FLOAT32, (char *)packed + i * placeBytes(s), b, s->channels, s->filters, c0, c1);
    }
  }
}

/* ---- The convolution -------------------------------------------------------------------------------------------------- */

/* Without the transforms: they spread an infinity, or a NaN, over the tile. */
static __attribute__((noinline)) void computePlainly(int p, const lt_convolution *s, lt_image x, lt_filter w, lt_image y,
                                                     position at) {
  const region cells = cellsAt(s, x, at), results = resultsAt(s, y, at);
  for (int64_t i = 0; i < results.bottom; i++)
    for (int64_t j = 0; j < results.right; j++)
      for (int64_t m = 0; m < s->filters; m++) {
        float sum = 0;
        for (int64_t tap = 0; tap < 9; tap++) {
          const int64_t row = i + tap / 3, column = j + tap % 3;
          if (row < cells.top || row >= cells.bottom || column < cells.left || column >= cells.right) continue;
          const float *from = cells.data + row * x.row + column * x.column;
          for (int64_t c = 0; c < s->channels; c++)
            sum += (p == LT_BFLOAT16 ? lt_from_bf16(lt_to_bf16(from[c])) : from[c]) * filterElement(p, &w, tap, c, m);
        }
        results.data[i * y.row + j * y.column + m] = sum;
      }
}

/* Stores a tile's results; returns whether all are finite. */
static int writeTile(region r, lt_image y, int64_t filters, const float *from, int64_t between) {
  vector special = {0};
  for (int64_t m = 0; m < filters; m += LANES) {
    vector values[PLACES];
    UNROLL for (int i = 0; i < PLACES; i++) values[i] = load(LT_FLOAT32, from + i * between + m, filters - m);
    TRANSFORM(toResults, values, CELLS, TILE);
    for (int64_t i = 0; i < r.bottom; i++)
      for (int64_t j = 0; j < r.right; j++) {
        special += values[i * CELLS + j] * 0.0f;
        store(r.data + i * y.row + j * y.column + m, values[i * CELLS + j], filters - m);
      }
  }
  float total = 0;
  for (int lane = 0; lane < LANES; lane++) total += special[lane];
  return total == 0;
}

void lt_winograd(int p, const lt_convolution *s, lt_image x, lt_filter w, const void *packed, lt_image y, void *scratch,
                 int thread, int threads) {
  const int64_t tiles = tilesOf(s), blocks = ceilDivide(tiles, TILES), inside = apart(TILES, s->channels);
  const int64_t outside = apart(TILES, s->filters), wide = rounded(s->channels), broad = rounded(s->filters);
  float *const cells = scratch, *const results = cells + PLACES * inside;
  void *const work = (char *)scratch + lt_winograd_scratch_bytes(s) - lt_gemm_scratch_bytes(LT_FLOAT32, TILES, s->channels);
  for (int64_t block = blocks * thread / threads; block < blocks * (thread + 1) / threads; block++) {
    const int64_t first = block * TILES, count = least(TILES, tiles - first);
    for (int64_t t = 0; t < count; t++)
      writeCells(p, cellsAt(s, x, positionOf(s, first + t)), x, s->channels, cells + t * wide, inside);
    for (int i = 0; i < PLACES; i++)
      lt_gemm(LT_FLOAT32, count, s->filters, s->channels, (lt_matrix){cells + i * inside, LT_FLOAT32, wide, 1},
              (const char *)packed + i * placeBytes(s), 0, lt_panels(LT_FLOAT32, s->filters), results + i * outside,
              LT_FLOAT32, broad, 1.0f, 0, work);
    for (int64_t t = 0; t < count; t++) {
      const position at = positionOf(s, first + t);
      if (!writeTile(resultsAt(s, y, at), y, s->filters, results + t * broad, outside)) computePlainly(p, s, x, w, y, at);
    }
  }
}

/* ---- The gradient by the filter --------------------------------------------------------------------------------------- */

static int64_t sumsBytes(const lt_convolution *s) { return aligned(PLACES * s->channels * s->filters * 4); }

static int64_t operandsBytes(const lt_convolution *s) {
  return aligned(PLACES * (apart(MORE_TILES, s->channels) + apart(MORE_TILES, s->filters)) * 4);
}

int64_t lt_winograd_gradient_scratch_bytes(const lt_convolution *s) {
  return sumsBytes(s) + operandsBytes(s) + aligned(lt_packed_bytes(LT_FLOAT32, MORE_TILES, s->filters)) +
         lt_gemm_scratch_bytes(LT_FLOAT32, s->channels, MORE_TILES);
}

void lt_winograd_sums(int p, const lt_convolution *s, lt_image x, lt_image dy, void *scratch, int thread, int threads) {
  const int64_t tiles = tilesOf(s), blocks = ceilDivide(tiles, MORE_TILES), inside = apart(MORE_TILES, s->channels);
  const int64_t outside = apart(MORE_TILES, s->filters), wide = rounded(s->channels), broad = rounded(s->filters);
  const int64_t from = blocks * thread / threads, to = blocks * (thread + 1) / threads;
  const int64_t panels = lt_panels(LT_FLOAT32, s->filters);
  float *const sums = scratch, *const cells = (float *)((char *)scratch + sumsBytes(s)), *const results = cells + PLACES * inside;
  char *const packed = (char *)cells + operandsBytes(s);
  void *const work = packed + aligned(lt_packed_bytes(LT_FLOAT32, MORE_TILES, s->filters));
  if (from >= to) memset(sums, 0, (size_t)sumsBytes(s));
  for (int64_t block = from; block < to; block++) {
    const int64_t first = block * MORE_TILES, count = least(MORE_TILES, tiles - first);
    for (int64_t t = 0; t < count; t++) {
      const position at = positionOf(s, first + t);
      writeCells(p, cellsAt(s, x, at), x, s->channels, cells + t * wide, inside);
      writeResults(p, resultsAt(s, dy, at), dy, s->filters, results + t * broad, outside);
    }
    for (int i = 0; i < PLACES; i++) {
      const lt_matrix b = {results + i * outside, LT_FLOAT32, broad, 1};
      lt_pack_panels(LT_FLOAT32, packed, b, count, s->filters, 0, panels);
      lt_gemm(LT_FLOAT32, s->channels, s->filters, count, (lt_matrix){cells + i * inside, LT_FLOAT32, 1, wide}, packed, 0,
              panels, sums + i * s->channels * s->filters, LT_FLOAT32, s->filters, 1.0f, block > from, work);
    }
  }
}

/* The taps' gradients of one channel and filter, without the transforms. */
static __attribute__((noinline)) void sumPlainly(int p, const lt_convolution *s, lt_image x, lt_image dy, int64_t c, int64_t m,
                                                 float *dw) {
  for (int64_t tap = 0; tap < 9; tap++) {
    const int64_t above = s->above - tap / 3, before = s->before - tap % 3;
    float sum = 0;
    for (int64_t item = 0; item < s->batch; item++)
      for (int64_t i = most(0, above); i < least(s->down, s->height + above); i++)
        for (int64_t j = most(0, before); j < least(s->across, s->width + before); j++) {
          const float cell = ((const float *)x.data)[item * x.batch + (i - above) * x.row + (j - before) * x.column + c];
          const float result = ((const float *)dy.data)[item * dy.batch + i * dy.row + j * dy.column + m];
          sum += p == LT_BFLOAT16 ? lt_from_bf16(lt_to_bf16(cell)) * lt_from_bf16(lt_to_bf16(result)) : cell * result;
        }
    dw[tap * s->channels * s->filters] = sum;
  }
}

void lt_winograd_gradient(int p, const lt_convolution *s, lt_image x, lt_image dy, const void *scratch, int64_t stride,
                          float *dw, int thread, int threads) {
  const int64_t size = s->channels * s->filters, groups = ceilDivide(size, LANES);
  for (int64_t group = groups * thread / threads; group < groups * (thread + 1) / threads; group++) {
    const int64_t at = group * LANES, count = least(LANES, size - at);
    vector values[PLACES], special = {0};
    for (int i = 0; i < PLACES; i++) {
      values[i] = (vector){0};
      for (int t = 0; t < threads; t++)
        values[i] += load(LT_FLOAT32, (const float *)((const char *)scratch + t * stride) + i * size + at, count);
    }
    TRANSFORM(toFilter, values, CELLS, 3);
    for (int tap = 0; tap < 9; tap++) {
      special += values[tap / 3 * CELLS + tap % 3] * 0.0f;
      store(dw + tap * size + at, values[tap / 3 * CELLS + tap % 3], count);
    }
    for (int64_t lane = 0; lane < count; lane++)
      if (special[lane] != 0)
        sumPlainly(p, s, x, dy, (at + lane) / s->filters, (at + lane) % s->filters, dw + at + lane);
  }
}
